package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// built is what this program was made of.
type built struct {
	Version  string
	Commit   string // "" where it was not built from a repository
	Modified bool   // there were changes beside that commit
	Time     string // of the commit, RFC 3339; "" for unknown
	Go       string
	Platform string
}

// newVersionCommand prints the version; for people in one word, as ever.
func newVersionCommand(version string) *cobra.Command {
	var out outputs
	c := &cobra.Command{
		Use: "version", Short: "Print the version", Args: words(0),
		Long: "Print the version; with -o json its commit, its Go version and its platform, too.",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.parse(); err != nil {
				return err
			}
			return out.show(c.Context(), terminalOf(c.OutOrStdout()), 0, func(context.Context) shown {
				b := buildOf(version)
				return shown{data: b, lines: func(int, bool) []string { return []string{b.Version} }}
			})
		},
	}
	out.flag(c)
	return c
}

// buildOf reads what the Go toolchain has left in the program.
func buildOf(version string) built {
	b := built{Version: version, Go: runtime.Version(), Platform: fmt.Sprintf("%s/%s", runtime.GOOS, runtime.GOARCH)}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
