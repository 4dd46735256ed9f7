package health

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pkg/operate/topicview"
	"github.com/zedkube/zedkube/types"
)

const (
	// forgottenAfter is how old a leftover is, of what is there for moments.
	forgottenAfter = time.Hour
	// requestAfter is how long a request of an operator may well stand.
	requestAfter = 7 * 24 * time.Hour
	// journalAfter is longer than a drain may take as EVE's settings are.
	journalAfter = 48 * time.Hour
)

// leftover is a file that is present.
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

// lookForFiles finds what was forgotten.
func (d *Device) lookForFiles() (f filesFacts) {
	for _, told := range d.Seen.Drain.Forced {
		f.add(told.File, true, "overrides the drain status that EVE sees")
	}
	if marker := d.Seen.Drain.Held; marker != nil {
		f.add(marker.File, true, "keeps every drain from completing")
	}
	if a := d.Seen.Agent; a.PID > 0 && !a.Runs && !a.Hung && d.live() {
		f.add(types.PathPID, false, "names a process that no longer exists")
	}
	for _, part := range []string{"/persist/vault/.k3s-user-override.yaml.part", "/run/edgeview/VncParams/.vmiVNC.run.part", "/run/edgeview/VncParams/.vmiVNC.run.old"} {
		d.forgotten(&f, part, forgottenAfter, "was left by an interrupted write")
	}
	d.requests(&f)
	d.journal(&f)
	d.temporary(&f)
	d.unclaimed(&f)
	return f
}

func (f *filesFacts) add(path string, does bool, what string) {
	f.found = append(f.found, leftover{path: path, what: what, does: does})
}

// requests finds what an operator asked for long ago. The command that takes it
// back says what that does.
func (d *Device) requests(f *filesFacts) {
	for _, r := range []struct{ topic, undo string }{{"NodeDrainRequest", "zedkube drain cancel"}, {"ClusterLeaveRequest", "zedkube leave --cancel"}} {
		path := filepath.Join("/run/zedkube-cli", r.topic, types.Global+".json")
		if info, err := os.Lstat(d.in(path)); err == nil && d.Now.Sub(info.ModTime()) > requestAfter {
			f.found = append(f.found, leftover{path: path, what: "is a pending request of an operator", undo: r.undo})
		}
	}
}

func (d *Device) forgotten(f *filesFacts, path string, after time.Duration, what string) {
	if info, err := os.Lstat(d.in(path)); err == nil && d.Now.Sub(info.ModTime()) > after {
		f.add(path, false, what)
	}
}

// journal finds a drain that the journal has, and nobody works on. To remove it
// is no remedy: it is all that the drain remembers over a restart and a reboot.
func (d *Device) journal(f *filesFacts) {
	const path = "/persist/status/zedkube/NodeDrainJournal/global.json"
	j, at, err := overview.ReadFile[types.NodeDrainJournal](d.in(path))
	if err == nil && (j.Phase == types.PhaseGates || j.Phase == types.PhaseEmptying) && d.Now.Sub(at) > journalAfter {
		f.found = append(f.found, leftover{path: path, what: "has a drain in progress and was not written for a long time", undo: "zedkube drain status"})
	}
}

// maxLeft bounds the leftovers that are named.
const maxLeft = 20

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
	const base = "/persist/pubsub-large"
	agents, _ := os.ReadDir(d.in(base)) // none is fine
	for _, agent := range agents {
		topics, _ := os.ReadDir(d.in(filepath.Join(base, agent.Name())))
		for _, topic := range topics {
			d.old(f, filepath.Join(base, agent.Name(), topic.Name()), func(name string) bool { return strings.HasPrefix(name, "pubsub-file-") }, "is a large field that was never read")
		}
	}
}

func (d *Device) old(f *filesFacts, dir string, is func(name string) bool, what string) {
	entries, _ := os.ReadDir(d.in(dir)) // gone meanwhile
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && is(e.Name()) && e.Type()&fs.ModeDir == 0 && d.Now.Sub(info.ModTime()) > forgottenAfter && len(f.found) < maxLeft {
			f.add(filepath.Join(dir, e.Name()), false, what)
		}
	}
}
