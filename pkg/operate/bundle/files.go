package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/pkg/base/redact"
	"github.com/zedkube/zedkube/pkg/operate/topicview"
)

type file struct {
	path  string // below the root
	form  Form
	tail  int64            // how much of its end, in bytes; 0 for all of it
	topic *topicview.Topic // whose value it is; only what may leave the device is taken of it
}

const (
	logTail    = 4 << 20 // of one log
	deviceTail = 2 << 20 // of one file of the device's log
	maxLogs    = 4       // files of the device's log, the newest
	maxFormer  = 3       // former logs of upgrade-component, as many as EVE keeps
)

// place is a file, or the files of a directory whose names match.
type place struct {
	dir   string
	match string // as of path.Match
	form  Form
	tail  int64
	most  int // only the newest; 0 for all
}

// places are those outside pubsub, in the order in which they are wanted
// (docs/wire.md, "Files").
func places() []place {
	return []place{
		{dir: "run", match: "zedkube.pid", form: Plain},
		{dir: "run", match: "zedkube.touch", form: Plain},
		{dir: "run", match: "eve-hv-type", form: Plain},
		{dir: "run", match: "eve-release", form: Plain},
		{dir: "run/watchdog/file", match: "zedkube.touch", form: Plain},
		{dir: "proc/sys/kernel/random", match: "boot_id", form: Plain},
		{dir: "run/.kube/k3s", match: "k3s.yaml", form: YAML},
		{dir: "tmp", match: "force-NodeDrainStatus-global.json", form: JSON},
		{dir: "tmp", match: "DrainStatus_FaultInjection_Wait"},
		{dir: "persist/kube-status", match: "force-NodeDrainStatus-global.json", form: JSON},
		{dir: "run/edgeview/VncParams", match: "vmiVNC.run", form: JSON},
		{dir: "run/zedkube", match: "vmiVNC.run"},
		{dir: "run/kube", match: "cluster-change-wait-ongoing"},
		{dir: "persist/zedkube/audit", match: "*"},
		{dir: "persist/kubelog", match: "detach.log", tail: logTail},
		{dir: "persist/kubelog", match: "initial_k3s_version", form: Plain},
		{dir: "proc", match: "version", form: Plain},
		{dir: "proc", match: "uptime", form: Plain},
		{dir: "proc", match: "loadavg", form: Plain},
		{dir: "proc", match: "meminfo", form: Plain},
		{dir: "persist/kube-status", match: "zedkube-applogs.jsonl", tail: logTail},
		{dir: "run", match: "zedkube.applogs", tail: logTail},
		{dir: "persist/kubelog", match: "k3s-install.log", tail: logTail},
		{dir: "persist/kubelog", match: "upgrade-component.log", tail: logTail},
		{dir: "persist/kubelog", match: "upgrade-component-*.log", tail: logTail / 4, most: maxFormer},
		{dir: "persist/kubelog", match: "k3s.log", tail: logTail},
		{dir: "persist/kubelog", match: "k3s.log.1", tail: logTail / 4}, // k3s.log may have been rotated a moment ago
		{dir: "persist/newlog/collect", match: "dev.log*", tail: deviceTail, most: maxLogs},
	}
}

// secretFiles teach what is secret, and stay where they are.
var secretFiles = []string{"persist/vault/k3s-user-override.yaml", "persist/vault/manifests/registration.yaml"}

func neverPacked() []Lack {
	return []Lack{
		{"persist/vault", "it contains secrets"},
		{"persist/certs", "it contains keys"},
		{"persist/newlog", "application logs belong to their owners; of the device's log the newest files are included"},
	}
}

func find(root *os.Root, a *archive, include []string) (files []file) {
	topics, err := topicview.List(root.Name())
	if err != nil {
		a.lack("run", err.Error())
	}
	for _, t := range topics {
		of := &t
		if slices.Contains(include, t.String()) {
			of = nil
		}
		for _, base := range []string{"run", "persist/status"} {
			p := place{dir: path.Join(base, t.Agent, t.Name), match: "*", form: JSON}
			for _, f := range p.files(root, a, func(name string) bool {
				return strings.Contains(name, ".json") && !strings.HasPrefix(name, "tmp") || name == "restarted"
			}) {
				if path.Base(f.path) != "restarted" {
					f.topic = of
				}
				files = append(files, f)
			}
		}
	}
	for _, p := range places() {
		files = append(files, p.files(root, a, func(string) bool { return true })...)
	}
	return files
}

// files are those of a place. A directory that is a link, or below one, has none.
func (p place) files(root *os.Root, a *archive, wanted func(name string) bool) (files []file) {
	if err := directory(root, p.dir); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			a.lack(p.dir, err.Error())
		}
		return nil
	}
	if !strings.Contains(p.match, "*") { // one file of a directory that may be large
		if _, err := root.Lstat(path.Join(p.dir, p.match)); err != nil {
			return nil
		}
		return []file{{path: path.Join(p.dir, p.match), form: p.form, tail: p.tail}}
	}
	entries, err := fs.ReadDir(root.FS(), p.dir)
	if err != nil {
		a.lack(p.dir, err.Error())
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		is, _ := path.Match(p.match, e.Name())
		return !is || e.IsDir() || !wanted(e.Name())
	})
	if p.most > 0 {
		entries = newest(entries, p.most)
	}
	for _, e := range entries {
		files = append(files, file{path: path.Join(p.dir, e.Name()), form: p.form, tail: p.tail})
	}
	return files
}

func newest(entries []fs.DirEntry, most int) []fs.DirEntry {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		x, xerr := a.Info()
		y, yerr := b.Info()
		if xerr != nil || yerr != nil {
			return strings.Compare(b.Name(), a.Name())
		}
		return y.ModTime().Compare(x.ModTime())
	})
	return entries[:min(len(entries), most)]
}

// directory refuses a path with a link in it: it may lead to what is not to be
// packed.
func directory(root *os.Root, dir string) error {
	at := ""
	for part := range strings.SplitSeq(dir, "/") {
		at = path.Join(at, part)
		info, err := root.Lstat(at)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", at)
		}
	}
	return nil
}

// learn has the redactor know the secrets of a file by heart.
func (f file) learn(root *os.Root, r *redact.Redactor) {
	if f.form != JSON && f.form != YAML {
		return
	}
	raw, _, _, err := f.read(root)
	switch {
	case err != nil: // file says so
	case f.form == YAML:
		r.LearnYAML(raw)
	default:
		r.LearnJSON(raw)
	}
}

func (a *archive) file(root *os.Root, f file) error {
	raw, info, cut, err := f.read(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // gone meanwhile
	case err != nil:
		a.lack(f.path, err.Error())
		return nil
	}
	if f.topic != nil {
		if raw, err = allowed(*f.topic, raw); err != nil {
			a.lack(f.path, err.Error())
			return nil
		}
	}
	return a.add(f.path, info.ModTime(), raw, f.form, cut)
}

// allowed is the part of a topic's value that may leave the device.
func allowed(t topicview.Topic, raw []byte) ([]byte, error) {
	if topicview.Own(t.Agent) {
		return raw, nil // as it is, though it is no JSON: what is wrong with it may be the question
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if v = topicview.Allowed(t.Agent, t.Name, v); v == nil {
		return nil, fmt.Errorf("zedkube does not know what this topic may contain; --include-topic %s includes it", t)
	}
	return json.Marshal(v)
}

// read reads a file, or its end from the beginning of a line.
func (f file) read(root *os.Root) (raw []byte, info fs.FileInfo, cut int64, err error) {
	r, info, err := topicview.Open(root, f.path)
	if err != nil {
		return nil, nil, 0, err
	}
	defer r.Close()
	if f.tail > 0 && info.Size() > f.tail {
		cut = info.Size() - f.tail
		if _, err := r.Seek(cut, io.SeekStart); err != nil {
			return nil, nil, 0, err
		}
	}
	raw, err = io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = fmt.Errorf("it is longer than %d bytes", maxFile)
	}
	if cut > 0 {
		if _, rest, found := bytes.Cut(raw, []byte("\n")); found {
			cut += int64(len(raw) - len(rest))
			raw = rest
		}
	}
	return raw, info, cut, err
}
