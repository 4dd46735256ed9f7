package main

import (
	"cmp"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// newDrainStatusCommand explains the drain from the files of the device.
func newDrainStatusCommand(o *options) *cobra.Command {
	var out outputs
	c := &cobra.Command{
		Use:   "status [--watch]",
		Short: "Show how far the drain is, what is in its way and what to do about it",
		Long: "Show how far the drain of this node is, what is in its way and what to do about it.\n" +
			"It reads the files below <root>/run only: neither agent nor API server need to run.\n\n" + exitCodes,
		Args: words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.parse(); err != nil {
				return err
			}
			p := o.paths()
			t := terminalOf(c.OutOrStdout())
			if out.watch {
				w := watcher{read: func() drainRecord { return readDrain(p, time.Now()) }, out: t, outputs: &out}
				return w.run(c.Context())
			}
			return showDrain(t, readDrain(p, time.Now()), &out)
		},
	}
	out.flag(c)
	c.Flags().BoolVarP(&out.watch, "watch", "w", false, "show it live until the drain has ended; exit code 0 complete, 3 failed or taken back")
	return c
}

// showDrain prints the record once.
func showDrain(t terminal, r drainRecord, out *outputs) error {
	lines := func(width int, colour bool) []string { return drainLines(r, width, colour) }
	if err := out.print(t, shown{data: r, lines: lines}); err != nil {
		return err
	}
	if r.Progress == nil && r.Status == nil {
		return errors.New("no record of a drain could be read")
	}
	return nil
}

// terminal is where output goes, and what that can do.
type terminal struct {
	io.Writer
	fd     int // -1 for no terminal
	live   bool
	colour bool
}

// terminalOf finds out what out can do. Colour and a live screen are for
// terminals that obey, which a "dumb" one does not.
func terminalOf(out io.Writer) terminal {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return terminal{Writer: out, fd: -1}
	}
	able := cmp.Or(os.Getenv("TERM"), "dumb") != "dumb"
	return terminal{Writer: out, fd: int(f.Fd()), live: able, colour: able && os.Getenv("NO_COLOR") == ""}
}

// The size of a terminal that does not tell, as over a serial line; and where
// there is none lines stay whole, for those who search them.
const (
	usualWidth  = 80
	usualHeight = 24
	wholeLines  = 10000
)

// size is asked for at each drawing: windows change.
func (t terminal) size() (width, height int) {
	if t.fd < 0 {
		return wholeLines, usualHeight
	}
	width, height, err := term.GetSize(t.fd)
	if err != nil || width < 20 || height < 4 {
		return usualWidth, usualHeight
	}
	return width, height
}
