package membercmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/base/peer"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/cluster/k3supdate"
	"github.com/zedkube/zedkube/types"
)

// maxHoldReason is as much of the file as is shown.
const maxHoldReason = 150

func newK3sHoldCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	var end bool
	c := out.Flag(&cobra.Command{
		Use:   "hold [REASON] | hold --end",
		Short: "Keep k3s on this node at its version until the hold is ended",
		Long: "Keep k3s on this node at its version, whatever the setting k3s.version says, until the hold is ended; it survives reboots.\n" +
			"The nodes that change after this one wait as well. A change that has begun to run goes on.\n" +
			"The file is " + k3supdate.DefaultHoldFile + ", with the reason, who holds, and since when.\n\n" + k3sExitCodes,
		Args: terminal.Words(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if reason := strings.Join(args, ""); len(reason) > maxHoldReason || end && reason != "" {
				return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("a reason has at most %d bytes, and there is none with --end", maxHoldReason))
			}
			p, act, op := o.Paths(), holdK3s, "hold k3s"
			if end {
				act, op = endK3sHold, "end hold of k3s"
			}
			return out.RunAction(c, func(w io.Writer) error {
				said, err := act(p.In(k3supdate.DefaultHoldFile), strings.Join(args, ""), time.Now())
				ctx := types.Because(types.ActAs(c.Context(), "command"), "OPERATOR", strings.TrimSpace("zedkube k3s hold "+strings.Join(args, "")))
				types.Did(ctx, device.CommandRecord(p), op, "file/"+k3supdate.DefaultHoldFile, err)
				fmt.Fprint(w, said)
				return err
			})
		},
	})
	c.Flags().BoolVar(&end, "end", false, "end the hold")
	return c
}

// holdK3s writes the hold file, in the place of one that is there.
func holdK3s(path, reason string, now time.Time) (said string, err error) {
	// Not its parent: where /persist is not mounted the hold would be lost.
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", terminal.ExitWith(terminal.ExitNotPublished, err)
	}
	text := strings.Join(strings.Fields(reason+"; since "+now.UTC().Format(time.RFC3339)+", by "+peer.Self().Who()), " ")
	if err := safefile.Replace(path, path+".part", strings.TrimPrefix(text, "; ")+"\n", 0o600); err != nil {
		return "", terminal.ExitWith(terminal.ExitNotPublished, err)
	}
	return "k3s on this node is held at its version.\nTo end it: zedkube k3s hold --end\n", nil
}

func endK3sHold(path, _ string, _ time.Time) (said string, err error) {
	switch err := os.Remove(path); {
	case errors.Is(err, fs.ErrNotExist):
		return "k3s on this node is not held.\n", nil
	case err != nil:
		return "", terminal.ExitWith(terminal.ExitNotPublished, err)
	}
	return "k3s on this node is no longer held.\n", nil
}
