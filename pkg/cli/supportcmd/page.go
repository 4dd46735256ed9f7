package supportcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"net"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
)

// NewPageCommand says where the page is, and prints its token.
func NewPageCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use:   "page",
		Short: "Show how to open the page of this device, and print its token",
		Long: "Show how to open the page of this device in a browser, and print the token that it requires if the agent\n" +
			"serves it on 127.0.0.1 (zedkube run --page=on). Anyone who has the token may read all that the page shows, the logs\n" +
			"of applications included, until the agent is restarted. No token is required over the socket.\n\n" +
			"Exit codes:\n  0   shown\n  1   wrong usage, or the token cannot be read\n  99  unknown command",
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			found, err := findPage(o.Paths())
			if err != nil {
				return err
			}
			return out.Print(terminal.Of(c.OutOrStdout()), terminal.View{Data: found, Draw: func(s *terminal.Screen) { s.Lines = found.lines() }})
		},
	})
}

type pageFound struct {
	Socket  string
	Address string `json:",omitempty"` // host:port on loopback, "" where it is not served there
	Token   string `json:",omitempty"`
}

func findPage(p device.Paths) (pageFound, error) {
	found := pageFound{Socket: p.Socket}
	file, _, err := device.ReadRecord[localserver.TokenFile](p.PageToken)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found, nil
	case err != nil:
		return found, fmt.Errorf("read the token: %w", err)
	}
	found.Address, found.Token = file.Address, file.Token
	return found, nil
}

func (f pageFound) lines() []string {
	tunnel := "  ssh -L 12347:" + f.Socket + " root@DEVICE"
	if f.Token == "" {
		return []string{
			"From your computer, without a token:", tunnel, "and then open http://127.0.0.1:12347/",
			"", "The page is not served on 127.0.0.1 of this device (zedkube run --page=on).",
		}
	}
	_, port, _ := net.SplitHostPort(terminal.Clean(f.Address))
	return []string{
		"On this device, or on your computer after ssh -L " + port + ":" + terminal.Clean(f.Address) + " root@DEVICE:",
		"  http://" + terminal.Clean(f.Address) + "/#token=" + terminal.Clean(f.Token),
		"", "From your computer, without a token:", tunnel, "and then open http://127.0.0.1:12347/",
	}
}
