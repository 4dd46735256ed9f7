// Package bundle writes what is needed to understand a device into one archive,
// without its secrets and of bounded size. Unpacked, it is a root that the commands
// of this program can read.
package bundle

import "time"

// DefaultLimit bounds the archive.
const DefaultLimit = 64 << 20

// Manifest says what an archive holds and what it lacks.
type Manifest struct {
	Version string    `json:"version"`
	Made    time.Time `json:"made"`
	Files   []Entry   `json:"files"`
	LeftOut []Lack    `json:"leftOut"`
}

// Entry is one file of the archive.
type Entry struct {
	Path     string `json:"path"`
	Bytes    int64  `json:"bytes"`
	Redacted int    `json:"redacted"` // places
}

// Lack is what the archive lacks, and why.
type Lack struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}
