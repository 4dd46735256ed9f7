package supportcmd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/actions"
)

// edgeProgram is the program that runs KubeEdge (docs/decisions/0048-edge-is-a-program.md).
const edgeProgram = "zedkube-edge"

// errSaid is for what that program has said itself.
var errSaid = errors.New("")

// NewEdgeCommand runs the program zedkube-edge with the words that follow.
func NewEdgeCommand(_ *device.Options) *cobra.Command {
	return &cobra.Command{
		Use: "edge", Short: "Run zedkube-edge, which runs KubeEdge in the cluster", Hidden: true,
		DisableFlagParsing: true, // they are that program's
		RunE: func(c *cobra.Command, args []string) error {
			path, err := EdgeProgram("")
			if err != nil {
				return err
			}
			p := exec.CommandContext(c.Context(), path, args...) //nolint:gosec // what the operator has typed, to a program of that name
			p.Stdin, p.Stdout, p.Stderr = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
			p.Cancel, p.WaitDelay = func() error { return p.Process.Signal(os.Interrupt) }, 5*time.Second
			err = p.Run()
			if ended, is := errors.AsType[*exec.ExitError](err); is {
				return terminal.ExitWith(max(ended.ExitCode(), 1), errSaid)
			}
			return err
		},
	}
}

// EdgeProgram finds zedkube-edge beside a program, "" for this one, or where a shell would.
func EdgeProgram(beside string) (path string, err error) {
	if beside == "" {
		beside, err = os.Executable()
	}
	if path = filepath.Join(filepath.Dir(beside), edgeProgram); err == nil && executable(path) {
		return path, nil
	}
	if path, err = exec.LookPath(edgeProgram); err != nil {
		return "", fmt.Errorf("%w: \"make edge\" builds it, see docs/edge.md", actions.ErrNoEdge)
	}
	return path, nil
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
