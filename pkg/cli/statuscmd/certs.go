package statuscmd

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// certificates is what zedkube certs shows.
type certificates struct {
	ReadAt time.Time
	At     time.Time // when the agent published them
	types.K3sCertificates
}

// NewCertsCommand shows when the certificates of k3s expire.
func NewCertsCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use:   "certs",
		Short: "Show when the certificates of k3s on this node expire",
		Long: "Show when the certificates of k3s on this node expire, as the agent found them in files and handshakes. k3s renews those\n" +
			"that expire within 120 days when it starts: Renewable. Due: within 60 days, Urgent: within 14. It never renews its\n" +
			"authorities. See docs/operations.md, \"Certificates and outside changes\".\n\n" + terminal.ShowExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := device.CheckDevice(o.Paths()); err != nil {
				return err
			}
			found, at, err := device.ReadRecord[types.K3sCertificates](o.Paths().PersistentFile(device.Self, "K3sCertificates"))
			switch {
			case errors.Is(err, fs.ErrNotExist) || err == nil && len(found.Leaves) == 0:
				return terminal.ExitWith(terminal.ExitNotPublished, errors.New("the agent has not read any certificate of k3s yet"))
			case err != nil:
				return fmt.Errorf("read certificates of k3s: %w", err)
			}
			v := certificates{time.Now(), at, found}
			return out.Print(terminal.Of(c.OutOrStdout()), terminal.View{Data: v, Draw: v.draw})
		},
	})
}

func (v certificates) draw(s *terminal.Screen) {
	t := terminal.Table{Columns: []terminal.Column{{Title: "CERTIFICATE"}, {Title: "STATE"}, {Title: "EXPIRES"}, {Title: "LEFT", Keep: 3, Right: true}, {Title: "WHERE", Keep: 2, Middle: "..."}}}
	for _, c := range slices.Concat(v.Leaves, v.Authorities) {
		look := map[types.K3sCertificateState]terminal.Style{types.CertDue: terminal.Yellow, types.CertUrgent: terminal.Red}[c.State]
		left := "expired"
		if c.NotAfter.After(v.ReadAt) {
			left = terminal.Span(c.NotAfter.Sub(v.ReadAt))
		}
		state := terminal.Cell{Text: terminal.Clean(string(c.State)), Look: look}
		t.Rows = append(t.Rows, []terminal.Cell{{Text: terminal.Clean(c.Name)}, state, {Text: c.NotAfter.Format(time.DateOnly)}, {Text: left}, {Text: terminal.Clean(c.Where)}})
	}
	t.Draw(s)
	if v.ClockDoubt != "" {
		s.Put(0, terminal.Yellow, "This node's clock may be wrong. "+terminal.Clean(v.ClockDoubt))
	}
	for _, text := range v.Unread {
		s.Put(0, terminal.Plain, "not read: "+terminal.Clean(text))
	}
	if isDue(v.Leaves) {
		s.Put(0, terminal.Plain, "k3s renews what is Renewable, Due or Urgent when it starts. Restart k3s on one node at a time, servers first.")
	}
	if isDue(v.Authorities) {
		s.Put(0, terminal.Plain, "k3s never renews an authority: docs/operations.md, \"Rotating the CA\".")
	}
	s.Put(0, terminal.Plain, "by the agent, "+terminal.Age(v.At, v.ReadAt))
}

func isDue(list []types.K3sCertificate) bool {
	return slices.ContainsFunc(list, func(c types.K3sCertificate) bool { return c.State == types.CertDue || c.State == types.CertUrgent })
}
