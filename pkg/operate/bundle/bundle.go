// Package bundle writes what is needed to understand a device into one archive,
// without its secrets and of bounded size. Unpacked, it is a root that the commands
// of this program can read.
package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/zedkube/zedkube/pkg/base/redact"
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
	for _, name := range secretFiles {
		file{path: name, form: YAML}.learn(root, a.redactor)
	}
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

type archive struct {
	redactor  *redact.Redactor
	out       *counter
	gz        *gzip.Writer
	tar       *tar.Writer
	unflushed int64 // bytes since it is known how many were written
	left      int64 // bytes of content that may still come
	made      time.Time
	manifest  Manifest
}

type counter struct {
	io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}

func newArchive(w io.Writer, b Bundle) *archive {
	out := &counter{Writer: w}
	gz := gzip.NewWriter(out)
	return &archive{
		redactor: &redact.Redactor{}, out: out, gz: gz, tar: tar.NewWriter(gz), left: unpacked * b.Limit, made: b.Made,
		manifest: Manifest{Version: b.Version, Node: b.Node, Made: b.Made.UTC(), Limit: b.Limit, Include: b.Include, Files: []Entry{}, LeftOut: neverPacked()},
	}
}

func (a *archive) source(ctx context.Context, s Source) error {
	name := Extras + "/" + s.Name
	content, err := s.Get(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		a.lack(name, err.Error())
		return nil
	}
	return a.add(name, a.made, content, s.Form, 0)
}

// add redacts and writes one file, unless it would be too large.
func (a *archive) add(name string, at time.Time, content []byte, form Form, cut int64) error {
	if len(content) > maxFile {
		a.lack(name, fmt.Sprintf("it is longer than %d bytes", maxFile))
		return nil
	}
	before := a.redactor.Places()
	content = redacted(a.redactor, content, form)
	entry := Entry{Path: name, Bytes: int64(len(content)), Redacted: a.redactor.Places() - before, Cut: cut}
	if why, err := a.space(entry.Bytes); err != nil {
		return err
	} else if why != "" {
		a.lack(name, why)
		return nil
	}
	if err := a.put(name, at, content); err != nil {
		return err
	}
	a.left -= entry.Bytes
	a.manifest.Files = append(a.manifest.Files, entry)
	return nil
}

func redacted(r *redact.Redactor, content []byte, form Form) []byte {
	switch form {
	case JSON:
		return r.JSON(content)
	case YAML:
		return r.YAML(content)
	case Plain:
		return content
	}
	return r.Lines(content)
}

const head = 4 << 10 // more than what an entry costs besides its content

// space says why that many more bytes do not fit, "" where they do. What was
// compressed and not yet written counts as if it were not compressed.
func (a *archive) space(bytes int64) (why string, err error) {
	switch {
	case len(a.manifest.Files) >= maxFiles:
		return fmt.Sprintf("there are more than %d files", maxFiles), nil
	case bytes > a.left:
		return "all files together are too large", nil
	}
	fits := func() bool { return a.out.n+a.unflushed+bytes+head+reserve <= a.manifest.Limit }
	if !fits() {
		if err := a.gz.Flush(); err != nil {
			return "", fmt.Errorf("write: %w", err)
		}
		a.unflushed = 0
	}
	if !fits() {
		return fmt.Sprintf("the archive may have at most %d bytes", a.manifest.Limit), nil
	}
	a.unflushed += bytes + head
	return "", nil
}

func (a *archive) put(name string, at time.Time, content []byte) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o600, ModTime: at, Format: tar.FormatPAX}
	if err := a.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if _, err := a.tar.Write(content); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (a *archive) lack(path, why string) {
	if len(a.manifest.LeftOut) >= maxLeftOut {
		a.manifest.Omitted++
		return
	}
	a.manifest.LeftOut = append(a.manifest.LeftOut, Lack{path, a.redactor.Text(why)})
}

func (a *archive) close() error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", " ")
	if err := e.Encode(a.manifest); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if err := a.put(ManifestFile, a.made, b.Bytes()); err != nil {
		return err
	}
	for _, part := range []io.Closer{a.tar, a.gz} {
		if err := part.Close(); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}
