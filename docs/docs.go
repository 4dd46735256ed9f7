// Package docs is what the program carries of its documents: those that an operator reads on a
// device.
package docs

import "embed"

// Files are these documents, by name.
//
//go:embed runbook.md operations.md alerts.md files.md
var Files embed.FS
