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
			return out.Print(terminal.Of(c.OutOrStdout()), terminal.View{Data: found, Draw: found.put})
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

// put says how to open it. What is to be pasted stays in one line.
func (f pageFound) put(s *terminal.Screen) {
	if f.Token != "" {
		_, port, _ := net.SplitHostPort(terminal.Clean(f.Address))
		s.Put(0, terminal.Plain, "On this device, or on your computer after ssh -L "+port+":"+terminal.Clean(f.Address)+" root@DEVICE:")
		s.Lines = append(s.Lines, "  http://"+terminal.Clean(f.Address)+"/#token="+terminal.Clean(f.Token), "")
	}
	s.Put(0, terminal.Plain, "From your computer, without a token:")
	s.Lines = append(s.Lines, "  ssh -L 12347:"+f.Socket+" root@DEVICE")
	s.Put(0, terminal.Plain, "and then open http://127.0.0.1:12347/")
	if f.Token == "" {
		s.Gap()
		s.Put(0, terminal.Plain, "The page is not served on 127.0.0.1 of this device (zedkube run --page=on).")
	}
}
