// Package bundle writes what is needed to understand a device into one archive,
// without its secrets and of bounded size. Unpacked, it is a root that the commands
// of this program can read.
package bundle

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	// ManifestFile is at the root of the archive, and written last. Its "made" is
	// the moment ages count from.
	ManifestFile = "zedkube-bundle.json"
	// Extras is the directory of what is no file of the device.
	Extras = "zedkube-bundle"
	// DefaultLimit bounds the archive, in bytes.
	DefaultLimit = 64 << 20

	// maxFile bounds one file, and unpacked how much longer than the archive its
	// content may be.
	maxFile  = 16 << 20
	unpacked = 8
	// maxFiles and maxLeftOut bound the manifest, for which reserve is kept.
	maxFiles   = 10_000
	maxLeftOut = 1_000
	reserve    = 1 << 20
)

// Bundle is an archive to write.
type Bundle struct {
	Root    string // whose files; "" for the device itself
	Node    string // its name, "" for unknown
	Version string // of this program
	Made    time.Time
	Limit   int64    // of the archive, in bytes
	Extras  []Source // what is no file; they go first
	Include []string // topics of other agents, agent/topic, of which all fields go in
}

// Source is something that is no file of the device: an answer, the output of a
// command.
type Source struct {
	Name string // path below Extras
	Form Form
	Get  func(ctx context.Context) ([]byte, error)
}

// Form is what redaction has to know of a content.
type Form int

// The forms.
const (
	Text  Form = iota // also lines that are JSON each
	JSON              // one document
	YAML              // one document
	Plain             // nothing that could hold a secret: a number, a version
)

// Manifest says what an archive holds and what it lacks.
type Manifest struct {
	Version string    `json:"version"`
	Node    string    `json:"node,omitzero"`
	Made    time.Time `json:"made"`
	Limit   int64     `json:"limit"`
	Include []string  `json:"includedTopics,omitzero"` // of which all fields are here, by request
	Files   []Entry   `json:"files"`
	LeftOut []Lack    `json:"leftOut"`
	Omitted int       `json:"omitted,omitzero"` // further entries of leftOut
}

// Entry is one file of the archive.
type Entry struct {
	Path     string `json:"path"`
	Bytes    int64  `json:"bytes"`
	Redacted int    `json:"redacted,omitzero"` // places, at least
	Cut      int64  `json:"cut,omitzero"`      // bytes that are missing at its front
}

// Lack is what the archive lacks, and why.
type Lack struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Write writes the archive to w and returns what it holds. Where a part cannot be
// had, the archive lacks it and says so; an error is of w, of Root or of ctx.
func (b Bundle) Write(ctx context.Context, w io.Writer) (Manifest, error) {
	dir := b.Root
	if dir == "" {
		dir = "/"
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Manifest{}, fmt.Errorf("open %s: %w", dir, err)
	}
	defer root.Close()
	a := newArchive(w, b)
	files := find(root, a, b.Include)
	learnAway(root, a.redactor)
	for _, f := range files {
		f.learn(root, a.redactor)
	}
	for _, s := range b.Extras {
		if err := a.source(ctx, s); err != nil {
			return a.manifest, err
		}
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return a.manifest, err
		}
		if err := a.file(root, f); err != nil {
			return a.manifest, err
		}
	}
	return a.manifest, a.close()
}
