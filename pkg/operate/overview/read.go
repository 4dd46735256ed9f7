package overview

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

// The agents whose topics are read.
const (
	self     = "zedkube"
	commands = "zedkube-cli"
)

// At the root of an unpacked support bundle, and what the agent answered when it was made.
const (
	bundleFile  = "zedkube-bundle.json"
	bundleNodes = "zedkube-bundle/kubernetes/nodes.json"
)

// Read reads the files below root, "" for the device itself. What is missing or
// cannot be read is said in what it returns; it judges nothing.
func Read(root string, now time.Time) Overview {
	r := reader{root: root, left: maxRead, o: Overview{ReadAt: UTC(now)}}
	r.copied()
	r.node()
	r.o.Agent = AgentOf(r.path(types.PathPID), r.path(types.PathTouch), r.o.Copied, r.o.ReadAt)
	r.cluster()
	r.drain()
	r.lease()
	r.report()
	r.bundledNodes()
	r.storage()
	r.apps()
	r.volumes()
	r.conditions()
	r.object()
	r.override()
	r.k3s()
	r.api()
	if !r.o.Copied {
		r.o.Disks, _ = DisksOf(r.root) // of a device that has no /persist
	}
	return r.o
}

// reader fills an overview part by part.
type reader struct {
	root string
	left int // bytes that may still be read
	o    Overview

	info types.KubeClusterInfo // of the node that reports
}

func (r *reader) path(file string) string { return filepath.Join(r.root, file) }

// copied notices a support bundle, whose moment is when it was made.
func (r *reader) copied() {
	if made, is := CopyMade(r.root); is {
		r.o.Copied, r.o.ReadAt = true, made
	}
}

// CopyMade reports whether root is an unpacked support bundle, and when that was made.
func CopyMade(root string) (made time.Time, is bool) {
	v, _, err := ReadFile[struct {
		Made time.Time `json:"made"`
	}](filepath.Join(root, bundleFile))
	if root == "" || err != nil || v.Made.IsZero() {
		return time.Time{}, false
	}
	return UTC(v.Made), true
}

// bundledNodes takes the nodes of a support bundle, which every member of a cluster has:
// they say more than the report of the one that reports.
func (r *reader) bundledNodes() {
	if !r.o.Copied {
		return
	}
	nodes, t := one[Nodes](r, "/"+bundleNodes)
	if !t.Known() || len(nodes.List) == 0 {
		return
	}
	nodes.List, nodes.Source = first(nodes.List), Source{File: t.File, At: UTC(nodes.At)}
	r.o.Nodes = nodes
}

// one reads a file into v. What cannot be read is noted.
func one[T any](r *reader, file string) (v T, t Source) {
	t.File = file
	path, size := r.path(file), 0
	if info, err := os.Stat(path); err == nil {
		size = int(min(info.Size(), maxFile))
	}
	if r.left < size {
		t.Why = fmt.Sprintf("there are more than %d bytes to read", maxRead)
		r.bad(t)
		return v, t
	}
	v, at, err := ReadFile[T](path)
	switch {
	case err == nil:
		t.At = UTC(at)
		r.left -= size
	case !missing(err):
		t.Why = strings.ReplaceAll(err.Error(), path, file)
		r.bad(t)
	}
	return v, t
}

type row[T any] struct {
	v      T
	source Source
}

// many reads all keys of a topic, in their order.
func many[T any](r *reader, agent, topic string) (list []row[T]) {
	dir := plain(agent, topic)
	names, err := safefile.Names(r.path(dir), maxKeys+1)
	if err != nil && !missing(err) {
		r.bad(Source{File: dir, Why: strings.ReplaceAll(err.Error(), r.path(dir), dir)})
	}
	if len(names) > maxKeys {
		names = names[:maxKeys]
		r.bad(Source{File: dir, Why: fmt.Sprintf("it contains more than %d files", maxKeys)})
	}
	slices.Sort(names)
	for _, name := range names {
		if !strings.HasSuffix(name, ".json") || name == ".json" {
			continue
		}
		if v, t := one[T](r, filepath.Join(dir, name)); t.Known() {
			list = append(list, row[T]{v, t})
		}
	}
	return list
}

const maxBad = 100 // files that are named as unreadable

func (r *reader) bad(t Source) {
	if len(r.o.Unreadable) < maxBad {
		r.o.Unreadable = append(r.o.Unreadable, t)
	}
}

// plain is the directory of a topic that is not persistent (docs/wire.md, "Names").
func plain(agent, topic string) string { return filepath.Join(types.PathTopics, agent, topic) }

func global(dir string) string { return filepath.Join(dir, types.Global+".json") }

// present notes a file by its presence alone.
func (r *reader) present(file string) (Source, bool) {
	info, err := os.Lstat(r.path(file))
	if err != nil {
		return Source{File: file}, false
	}
	return Source{File: file, At: UTC(info.ModTime())}, true
}

// Steady is o without what changes by itself, to learn whether anything else
// has changed.
func Steady(o Overview) Overview {
	o.ReadAt, o.Agent.Seen = time.Time{}, time.Time{}
	o.Disks = nil
	raw, err := json.Marshal(o)
	var out Overview
	if err != nil || json.Unmarshal(raw, &out) != nil {
		return o
	}
	out.Nodes.Edge = SteadyEdge(out.Nodes.Edge)
	// A topic that is rewritten with the same content has not changed.
	for _, t := range []*Source{
		&out.Node.Source, &out.API.Kubeconfig, &out.Cluster.Source, &out.Cluster.Membership.Source, &out.Cluster.Members.Source, &out.Cluster.Object.Source, &out.Drain.Source,
		&out.Lease.Source, &out.Report.Source, &out.Report.Info, &out.Storage.Source, &out.Apps.Source, &out.Nodes.Source, &out.Conditions.Source,
	} {
		t.At = time.Time{}
	}
	return out
}

const (
	// maxFile bounds what is read of a file. A topic's value has at most 64 KiB
	// and large fields, at most three, of less than 1 MiB each.
	maxFile = 4 << 20
	// maxObjects bounds how much a file may become in memory: no agent writes
	// a hundredth of that.
	maxObjects = 100_000
	maxKeys    = 1024 // bounds the files of a topic, and maxRead the bytes of all
	maxRead    = 64 << 20
)

// ReadFile reads the JSON of a topic's value, and when it was written. What is
// no regular file, too large, half written or of another shape is an error.
func ReadFile[T any](path string) (v T, written time.Time, err error) {
	raw, written, err := content(path)
	if err != nil {
		return v, written, err
	}
	if bytes.Count(raw, []byte("{")) > maxObjects || bytes.Count(raw, []byte(",")) > 5*maxObjects {
		return v, time.Time{}, fmt.Errorf("%s is larger than any agent writes", path)
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		var none T // not a part of it
		return none, time.Time{}, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	return v, written, nil
}

// content is the bytes of a file that could be a topic's value.
func content(path string) ([]byte, time.Time, error) {
	f, info, err := safefile.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer f.Close()
	raw, err := safefile.All(f, maxFile)
	switch {
	case err != nil:
		return nil, time.Time{}, err
	case bytes.Equal(bytes.TrimSpace(raw), []byte("null")):
		return nil, time.Time{}, fmt.Errorf("%s is empty", path)
	}
	return raw, info.ModTime(), nil
}

// missing reports that a file is simply not there.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// UTC is a time that JSON can hold: a file may claim any.
func UTC(t time.Time) time.Time {
	t = t.UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}
