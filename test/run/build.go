package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// step is one program to build: the target of the Makefile that does it, its
// name in what that prints, and the packages it compiles.
type step struct {
	target, name, dir string
	packages          []string
}

var steps = []step{
	{"build", "zedkube", ".", []string{"./cmd/zedkube"}},
	{"cluster", "devkube", "test/devcluster/devkube", []string{"."}},
	{"cluster", "kwok", "test/devcluster/kwok", []string{"sigs.k8s.io/kwok/cmd/kwok"}},
	{"bin/demo", "demo", ".", []string{"./test/demo", "./test/devcluster/cmd/devcluster"}},
}

// counted is how devcluster says how far it is; it does not name each package.
var counted = regexp.MustCompile(`^devcluster: (building|ended) (\S+): (\d+) of `)

// source is what a step compiles that no earlier one does.
type source struct {
	packages int
	size     int64
	compiled int64 // of size, where devcluster counts
}

// build knows how far the build is, by the size of the source that is compiled:
// how fast this machine compiles is measured as it goes.
type build struct {
	began time.Time

	mu       sync.Mutex
	sizes    map[string]int64    // of a package's source, by its directory
	dirs     map[string][]string // by import path
	sources  map[string]*source  // by a step's name
	all      int64
	done     map[string]bool // directories
	finished int64           // where each package is named
	now      string          // the target that is being made
	line     []byte          // not whole yet
}

func newBuild(now time.Time) *build {
	return &build{began: now, sizes: map[string]int64{}, dirs: map[string][]string{}, sources: map[string]*source{}, done: map[string]bool{}}
}

// run makes the targets one after the other; what they print goes to the log.
func (b *build) run(ctx context.Context, log io.Writer) error {
	var weighing sync.WaitGroup
	weighing.Go(func() {
		for _, s := range steps {
			b.weigh(ctx, s)
		}
	})
	defer weighing.Wait()
	var made string
	for _, s := range steps {
		if s.target == made {
			continue
		}
		made = s.target
		b.mu.Lock()
		b.now = s.target
		b.mu.Unlock()
		if err := makeTarget(ctx, s.target, io.MultiWriter(log, b)); err != nil {
			return err
		}
	}
	return nil
}

// weigh finds out what a step compiles. Where that fails the step does too, and
// says why.
func (b *build) weigh(ctx context.Context, s step) {
	args := append([]string{
		"list", "-deps", "-tags", "kustomize_disable_go_plugin_support",
		"-f", `{{.ImportPath}}|{{.Dir}}|{{join .GoFiles "|"}}`,
	}, s.packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	of := &source{}
	b.sources[s.name] = of
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		name, dir := f[0], f[1]
		if _, known := b.sizes[dir]; known {
			continue
		}
		var size int64
		for _, file := range f[2:] {
			if info, err := os.Stat(filepath.Join(dir, file)); err == nil {
				size += info.Size()
			}
		}
		// The same package in another version has another directory.
		b.sizes[dir], b.dirs[name] = size, append(b.dirs[name], dir)
		b.all += size
		of.packages++
		of.size += size
	}
}

// Write implements io.Writer for what the go command prints: the name of each
// package as it begins with it.
func (b *build) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.line = append(b.line, text...)
	for {
		line, rest, ok := bytes.Cut(b.line, []byte("\n"))
		if !ok {
			return len(text), nil
		}
		b.line = rest
		b.compiled(strings.TrimSpace(string(line)))
	}
}

// compiled counts a package that is named, or those that devcluster has counted.
func (b *build) compiled(line string) {
	if m := counted.FindStringSubmatch(line); m != nil {
		if of := b.sources[m[2]]; of != nil && of.packages > 0 {
			n, _ := strconv.Atoi(m[3])
			of.compiled = of.size * int64(min(n, of.packages)) / int64(of.packages)
			if m[1] == "ended" {
				of.compiled = of.size
			}
		}
		return
	}
	for _, dir := range b.dirs[line] {
		if !b.done[dir] {
			b.done[dir] = true
			b.finished += b.sizes[dir]
			return
		}
	}
}

// progress is one line: what is being made, how much is done, and how long the
// rest takes at the speed so far. What the go command has in its cache it does not
// name, so that may be less.
func (b *build) progress(now time.Time) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	took := now.Sub(b.began).Round(time.Second)
	line := fmt.Sprintf("Building meanwhile: make %s, for %s", b.now, took)
	finished := b.finished
	for _, of := range b.sources {
		finished += of.compiled
	}
	if finished == 0 || len(b.sources) < len(steps) {
		return line + "; its size is not known yet"
	}
	line += fmt.Sprintf("; %d of %d MB of source are compiled", finished/1e6, b.all/1e6)
	if finished*50 < b.all {
		return line // too little to go by
	}
	rest := time.Duration(float64(took) * float64(b.all-finished) / float64(finished))
	return line + ", at this speed at most " + rest.Round(10*time.Second).String() + " to go"
}
