package health

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

func judgeFiles(f filesFacts) types.Finding {
	if len(f.found) == 0 {
		if f.err != nil {
			return unknown("Not all could be looked at: %v.", f.err)
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
		all = unknown("Not all can be looked at: %v.", err)
	}
	for _, d := range disks {
		all = worse(all, judgeDisk(d))
	}
	return all
}

func judgeDisk(d overview.Disk) types.Finding {
	remedy := "Remove what is not needed, such as images, volumes, snapshots or old logs below /persist/newlog: du -x " + d.Path + " | sort -n | tail"
	full := "The disk of " + d.Path + " is full: %s. What the agent says is not written any more."
	nearly := "The disk of " + d.Path + " is nearly full: %s."
	bytes := fmt.Sprintf("%s of %s are free", bytesText(d.Free), bytesText(d.Size))
	files := fmt.Sprintf("it can hold %d more files of %d", d.FreeFiles, d.Files)
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
	return ok("%s has room.", d.Path)
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
