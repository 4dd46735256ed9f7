package health

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pkg/operate/topicview"
	"github.com/zedkube/zedkube/types"
)

func judgeFiles(f filesFacts) types.Finding {
	if len(f.found) == 0 {
		if f.err != nil {
			return unknown("Not everything could be checked: %v.", f.err)
		}
		return ok("No override or leftover files found.")
	}
	var texts []string
	for _, l := range f.found[:min(len(f.found), maxNamed)] {
		texts = append(texts, l.path+" "+l.what)
	}
	more := ""
	if n := len(f.found) - maxNamed; n > 0 {
		more = fmt.Sprintf(" %d more.", n)
	}
	return warn(remedyForFiles(f.found[:len(texts)]), "%s", strings.Join(texts, "; ")+"."+more)
}

// remedyForFiles says what ends each of them: a command of their own, or their
// removal.
func remedyForFiles(found []leftover) string {
	var ends, litter, acts []string
	for _, l := range found {
		switch {
		case l.undo != "":
			ends = append(ends, "for "+path.Base(path.Dir(l.path))+": "+l.undo)
		case l.does:
			acts = append(acts, l.path)
		default:
			litter = append(litter, l.path)
		}
	}
	if len(acts) > 0 {
		ends = append(ends, "if it is no longer needed: rm "+strings.Join(acts, " "))
	}
	if len(litter) > 0 {
		ends = append(ends, "if it is not in use: rm "+strings.Join(litter, " "))
	}
	return strings.Join(ends, "; ")
}

// How many percent of a disk should be free, in bytes and in files: below five the
// kubelet of k3s evicts pods. A large part of a small disk may be too little.
const (
	littleRoom = 5
	noRoom     = 1
	fewBytes   = 64 << 20
)

func findDiskFull(o seen, tell func(types.Finding)) {
	for _, d := range o.Disks {
		if f := judgeDisk(d); f.Severity != types.SeverityOK {
			tell(f.Of(d.Path, time.Time{}))
		}
	}
}

func judgeDisks(disks []overview.Disk, err error) types.Finding {
	var room []string
	for _, d := range disks {
		room = append(room, fmt.Sprintf("%s has %s free of %s", d.Path, bytesText(d.Free), bytesText(d.Size)))
	}
	all := ok("%s.", strings.Join(room, ", "))
	if err != nil {
		all = unknown("Not everything can be checked: %v.", err)
	}
	for _, d := range disks {
		all = worse(all, judgeDisk(d))
	}
	return all
}

func judgeDisk(d overview.Disk) types.Finding {
	remedy := "Remove what is not needed, such as images, volumes, snapshots or old logs below /persist/newlog: du -x " + d.Path + " | sort -n | tail"
	full := "The disk of " + d.Path + " is full: %s. What the agent publishes can no longer be written."
	nearly := "The disk of " + d.Path + " is nearly full: %s."
	bytes := fmt.Sprintf("%s of %s are free", bytesText(d.Free), bytesText(d.Size))
	files := fmt.Sprintf("%d more files of at most %d can be created", d.FreeFiles, d.Files)
	switch room, nodes := percent(d.Free, d.Size), percent(d.FreeFiles, d.Files); {
	case room < noRoom || room < littleRoom && d.Free < fewBytes:
		return bad(remedy, full, bytes)
	case nodes < noRoom:
		return bad(remedy, full, files)
	case room < littleRoom:
		return warn(remedy, nearly, bytes)
	case nodes < littleRoom:
		return warn(remedy, nearly, files)
	}
	return ok("%s has enough free space.", d.Path)
}

// percent of a whole that is left; all of what counts nothing.
func percent(left, whole uint64) uint64 {
	if whole == 0 {
		return 100
	}
	return uint64(float64(left) / float64(whole) * 100)
}

func findUnreadable(o seen, tell func(types.Finding)) {
	for _, t := range o.Unreadable {
		tell(warn("Its writer replaces it with the next update. If it stays, check the file and the disk.", "%s.", strings.TrimRight(t.Why, ".")).Of(t.File, time.Time{}))
	}
}

const (
	nearLimit = 80 // percent in use
	atLimit   = 97
)

func judgeLimits(limits []limit) types.Finding {
	all := unknown("The limits cannot be read.")
	for i, l := range limits {
		f := judgeLimit(l)
		if i == 0 {
			all = ok("Nothing is near its limit.")
		}
		all = worse(all, f)
	}
	return all
}

func judgeLimit(l limit) types.Finding {
	remedy := "who holds them: ls /proc/*/fd"
	if l.toChange != "" {
		remedy = fmt.Sprintf("sysctl -w %s=%d; who holds them: ls -l /proc/*/fd", l.toChange, 2*l.most)
	}
	used := 100 - percent(l.most-min(l.used, l.most), l.most)
	switch {
	case l.most == 0:
		return ok("No limit is known.")
	case used >= atLimit:
		return bad(remedy, "%d of %d %s are in use.", l.used, l.most, l.what)
	case used >= nearLimit:
		return warn(remedy, "%d of %d %s are in use.", l.used, l.most, l.what)
	}
	return ok("%d of %d.", l.used, l.most)
}

const (
	forgottenAfter = time.Hour          // how old a leftover is, of what is there for moments
	requestAfter   = 7 * 24 * time.Hour // how long a request of an operator may well stand
	journalAfter   = 48 * time.Hour     // longer than a drain may take as EVE's settings are
)

type leftover struct {
	path string
	what string // a sentence
	does bool   // it changes what the agent does, and is not only litter
	undo string // what ends it where removing the file would not, or would do harm; "" to remove it
}

type filesFacts struct {
	found []leftover
	err   error // of looking
}

func (d *Device) lookForFiles() (f filesFacts) {
	for _, told := range d.Seen.Drain.Forced {
		what := "overrides the drain status that EVE sees"
		if told.Ignored != "" {
			what = "is a force file and is ignored, because " + told.Ignored
		}
		f.add(told.File, told.Ignored == "", what)
	}
	if marker := d.Seen.Drain.Held; marker != nil {
		f.add(marker.File, true, "keeps every drain from completing")
	}
	if a := d.Seen.Agent; a.PID > 0 && !a.Runs && !a.Hung && d.live() {
		f.add(types.PathPID, false, "names a process that no longer exists")
	}
	for _, part := range []string{"/persist/vault/.k3s-user-override.yaml.part", "/run/edgeview/VncParams/.vmiVNC.run.part", "/run/edgeview/VncParams/.vmiVNC.run.old"} {
		d.forgotten(&f, forgottenAfter, leftover{path: part, what: "was left by an interrupted write"})
	}
	// The command that withdraws a request says what that does.
	const request = "is a pending request of an operator"
	d.forgotten(&f, requestAfter, leftover{path: "/run/zedkube-cli/NodeDrainRequest/global.json", what: request, undo: "zedkube drain cancel"})
	d.forgotten(&f, requestAfter, leftover{path: "/run/zedkube-cli/ClusterLeaveRequest/global.json", what: request, undo: "zedkube leave --cancel"})
	d.journal(&f)
	d.temporary(&f)
	d.unclaimed(&f)
	return f
}

func (f *filesFacts) add(path string, does bool, what string) {
	f.found = append(f.found, leftover{path: path, what: what, does: does})
}

// forgotten adds a file that is older than it should be.
func (d *Device) forgotten(f *filesFacts, after time.Duration, l leftover) {
	if info, err := os.Lstat(d.in(l.path)); err == nil && d.Seen.ReadAt.Sub(info.ModTime()) > after {
		f.found = append(f.found, l)
	}
}

// journal finds a drain that the journal has, and nobody works on. To remove it
// is no remedy: it is all that the drain remembers over a restart and a reboot.
func (d *Device) journal(f *filesFacts) {
	const path = "/persist/status/zedkube/NodeDrainJournal/global.json"
	j, at, err := overview.ReadFile[types.NodeDrainJournal](d.in(path))
	if err == nil && (j.Phase == types.PhaseGates || j.Phase == types.PhaseEmptying) && d.Seen.ReadAt.Sub(at) > journalAfter {
		f.found = append(f.found, leftover{path: path, what: "has a drain in progress and has not been written for a long time", undo: "zedkube drain status"})
	}
}

const maxLeft = 20 // leftovers that are named

// temporary finds what writers of topics left that died before their rename.
func (d *Device) temporary(f *filesFacts) {
	topics, err := topicview.List(d.Root)
	f.err = err
	for _, t := range topics {
		for _, base := range []string{types.PathTopics, types.PathKeptTopics} {
			dir := filepath.Join(base, t.Agent, t.Name)
			d.old(f, dir, func(name string) bool { return strings.HasPrefix(name, "tmp") && !strings.Contains(name, ".json") }, "was left by an interrupted write")
		}
	}
}

// unclaimed finds large fields that no subscriber has taken.
func (d *Device) unclaimed(f *filesFacts) {
	topics, _ := fs.Glob(os.DirFS(d.in("/")), "persist/pubsub-large/*/*") // none is fine
	for _, topic := range topics {
		d.old(f, "/"+topic, func(name string) bool { return strings.HasPrefix(name, "pubsub-file-") }, "is a large field that was never read")
	}
}

func (d *Device) old(f *filesFacts, dir string, is func(name string) bool, what string) {
	entries, _ := os.ReadDir(d.in(dir)) // gone meanwhile
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && is(e.Name()) && e.Type()&fs.ModeDir == 0 && d.Seen.ReadAt.Sub(info.ModTime()) > forgottenAfter && len(f.found) < maxLeft {
			f.add(filepath.Join(dir, e.Name()), false, what)
		}
	}
}

type limit struct {
	what     string
	used     uint64
	most     uint64 // 0 for no limit, or one that is not known
	toChange string // the kernel's setting; "" for none
}

// lookAtLimits reads the kernel's limits below proc, and those of the agent.
func lookAtLimits(ctx context.Context, proc string, agent int) (limits []limit) {
	if used, most, ok := fileTable(proc); ok {
		limits = append(limits, limit{"open files of the machine", used, most, "fs.file-max"})
	}
	instances, watches, whole := inotify(ctx, proc)
	if most, err := number(filepath.Join(proc, "sys/fs/inotify/max_user_instances")); err == nil && whole {
		limits = append(limits, limit{"inotify instances of root", instances, most, "fs.inotify.max_user_instances"})
	}
	if most, err := number(filepath.Join(proc, "sys/fs/inotify/max_user_watches")); err == nil && whole {
		limits = append(limits, limit{"inotify watches of root", watches, most, "fs.inotify.max_user_watches"})
	}
	if agent > 0 {
		own := filepath.Join(proc, strconv.Itoa(agent))
		files, err := os.ReadDir(filepath.Join(own, "fd"))
		if most := openFiles(filepath.Join(own, "limits")); err == nil && most > 0 {
			limits = append(limits, limit{"open files of the agent", uint64(len(files)), most, ""})
		}
	}
	return limits
}

func fileTable(proc string) (used, most uint64, ok bool) {
	text, err := readSmall(filepath.Join(proc, "sys/fs/file-nr"))
	n, serr := fmt.Sscan(text, &used, new(uint64), &most)
	return used, most, err == nil && serr == nil && n == 3
}

func number(path string) (uint64, error) {
	text, err := readSmall(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(text, 10, 64)
}

// openFiles is a process's own limit, 0 for none that is known.
func openFiles(path string) (most uint64) {
	text, _ := readSmall(path) // then there is no such line
	for line := range strings.Lines(text) {
		if rest, is := strings.CutPrefix(line, "Max open files"); is {
			_, _ = fmt.Sscan(rest, &most) // "unlimited" leaves 0
		}
	}
	return most
}

// inotify counts what processes of root have; whole is false where not all could
// be counted in time.
func inotify(ctx context.Context, proc string) (instances, watches uint64, whole bool) {
	processes, err := os.ReadDir(proc)
	if err != nil {
		return 0, 0, false
	}
	for _, p := range processes {
		if _, err := strconv.Atoi(p.Name()); err != nil {
			continue
		}
		if ctx.Err() != nil {
			return instances, watches, false
		}
		dir := filepath.Join(proc, p.Name(), "fd")
		files, _ := os.ReadDir(dir) // of a process that has ended, or another user's
		for _, f := range files {
			target, _ := os.Readlink(filepath.Join(dir, f.Name()))
			if target != "anon_inode:inotify" && target != "inotify" {
				continue
			}
			instances++
			info, _ := readSmall(filepath.Join(proc, p.Name(), "fdinfo", f.Name()))
			watches += uint64(strings.Count(info, "inotify wd:")) //nolint:gosec // a count
		}
	}
	return instances, watches, true
}
