package draincmd

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

// newDrainStatusCommand explains the drain from the files of the device.
func newDrainStatusCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	c := &cobra.Command{
		Use:   "status [--watch]",
		Short: "Show the progress of the drain, what blocks it and what to do about it",
		Long: "Show the progress of this node's drain, what blocks it and what to do about it.\n" +
			"It reads only files below <root>/run: neither the agent nor the API server has to run.\n\n" + exitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.Parse(); err != nil {
				return err
			}
			p := o.Paths()
			t := terminal.Of(c.OutOrStdout())
			read := func() drainRecord { return readDrain(p, time.Now()) }
			if out.Watch {
				return out.Follow(c.Context(), t, terminal.Watch{Look: watch(read), Every: terminal.WatchEvery})
			}
			return showDrain(t, read(), &out)
		},
	}
	out.Flag(c)
	c.Flags().BoolVarP(&out.Watch, "watch", "w", false, "keep showing it until the drain has ended; exit code 0: complete, 3: failed or withdrawn")
	return c
}

// showDrain prints the record once.
func showDrain(t terminal.Terminal, r drainRecord, out *terminal.Outputs) error {
	if err := out.Print(t, view(r)); err != nil {
		return err
	}
	if r.Progress == nil && r.Status == nil {
		return errors.New("no status of a drain could be read")
	}
	return nil
}
