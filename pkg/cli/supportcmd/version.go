package supportcmd

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

type built struct {
	Version  string
	Commit   string // "" where it was not built from a repository
	Modified bool   // there were changes beside that commit
	Time     string // of the commit, RFC 3339; "" for unknown
	Go       string
	Platform string
}

// NewVersionCommand prints the version; for people in one word, as ever.
func NewVersionCommand(version string) *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use: "version", Short: "Print the version", Hidden: true, Args: terminal.Words(0),
		Long: "Print the version; with -o json its commit, its Go version and its platform, too.",
		RunE: func(c *cobra.Command, _ []string) error {
			return out.Show(c.Context(), terminal.Of(c.OutOrStdout()), 0, func(context.Context) terminal.View {
				b := buildOf(version)
				return terminal.View{Data: b, Draw: func(s *terminal.Screen) { s.Lines = []string{b.Version} }}
			})
		},
	})
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
