package statuscmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/cluster/k3scerts"
	"github.com/zedkube/zedkube/pkg/cluster/k3supdate"
	"github.com/zedkube/zedkube/types"
)

// certificates is what zedkube k3s certs shows.
type certificates struct {
	ReadAt                time.Time
	At                    time.Time // when the agent published them
	Items                 []certificate
	types.K3sCertificates                        // of which Leaves and Authorities are what Items was called before
	Restart               types.K3sRestartStatus `json:",omitzero"` // of k3s, to renew them
}

// certificate is one of either kind.
type certificate struct {
	types.K3sCertificate
	Authority bool // k3s never renews it
}

// NewCertsCommand shows when the certificates of k3s expire.
func NewCertsCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	c := terminal.List[certificate](&out, &cobra.Command{
		Use:   "certs",
		Short: "Show when the certificates of k3s on this node expire",
		Long: "Show when the certificates of k3s on this node expire, as the agent found them in files and handshakes. k3s renews those\n" +
			"that expire within 120 days when it starts: Renewable. Due: within 60 days, Urgent: within 14. zedkube restarts it for\n" +
			"those that are Due, one node a day. k3s never renews its authorities. See docs/operations.md, \"Certificates and outside changes\".\n\n" + terminal.ShowExitCodes,
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
			l, _, _ := device.ReadRecord[types.KubeLifecycle](o.Paths().TopicFile(device.Self, "KubeLifecycle")) // there is none before its first decision
			v := certificatesOf(found, func(all []certificate) []certificate { return terminal.Selected(&out, all) })
			v.ReadAt, v.At, v.Restart = device.Now(o.Root), at, l.Restart
			view := terminal.View{Data: v, Draw: func(s *terminal.Screen) {
				device.PutAgent(s, o.Paths(), v.ReadAt)
				v.draw(s)
			}}
			for _, one := range v.Items {
				view.Names = append(view.Names, one.Name)
			}
			return out.Print(terminal.Of(c.OutOrStdout()), view)
		},
	}, "certificate", certificatesTable())
	c.AddCommand(newCertsResetCommand(o))
	return c
}

// certificatesOf are those that are wanted of what was found.
func certificatesOf(found types.K3sCertificates, wanted func([]certificate) []certificate) certificates {
	v := certificates{Items: []certificate{}, K3sCertificates: found}
	v.Leaves, v.Authorities = []types.K3sCertificate{}, []types.K3sCertificate{}
	var all []certificate
	for _, c := range found.Leaves {
		all = append(all, certificate{c, false})
	}
	for _, c := range found.Authorities {
		all = append(all, certificate{c, true})
	}
	for _, c := range wanted(all) {
		v.Items = append(v.Items, c)
		if c.Authority {
			v.Authorities = append(v.Authorities, c.K3sCertificate)
		} else {
			v.Leaves = append(v.Leaves, c.K3sCertificate)
		}
	}
	return v
}

const exitNothing = 3

func newCertsResetCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	force := false
	c := out.Flag(&cobra.Command{
		Use:   "reset [--force]",
		Short: "Renew the certificates of k3s on this node that expire soon",
		Long: "Renew the certificates of k3s on this node that expire within 120 days (90 with k3s before April 2025): k3s is restarted\n" +
			"under the drain lock, when nothing is in the way. Virtual machines and pods go on. What is in the way at this moment and\n" +
			"may be done without is printed, and done without. What it waits for: zedkube topics zedkube/KubeLifecycle.\n" +
			"With --force all that a server made are renewed: their files are moved aside, and put back if k3s does not come up.\n" +
			"Authorities are never renewed. See docs/operations.md, \"Certificates and outside changes\".\n\n" + `Exit codes:
  0   requested
  1   wrong usage, interrupted, or failed
  2   the request could not be written, or what is known of certificates could not be read
  3   nothing was changed: the last line gives the reason
  99  unknown command`,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return out.RunAction(c, func(w io.Writer) error { return resetCerts(w, o.Paths(), force, time.Now()) })
		},
	})
	c.Flags().BoolVar(&force, "force", false, "also renew those that do not expire soon; their files are moved aside")
	return c
}

func resetCerts(out io.Writer, p device.Paths, force bool, now time.Time) error {
	certs, _, err1 := device.ReadRecord[types.K3sCertificates](p.PersistentFile(device.Self, "K3sCertificates"))
	l, _, err2 := device.ReadRecord[types.KubeLifecycle](p.TopicFile(device.Self, "KubeLifecycle"))
	version, _, err3 := device.ReadRecord[types.K3sVersionStatus](p.TopicFile(device.Self, "K3sVersionStatus"))
	if err := errors.Join(err1, err2, err3); err != nil {
		return terminal.ExitWith(terminal.ExitNotPublished, fmt.Errorf("read what is known of certificates of k3s: %w", err))
	}
	request, err := types.AskCertsReset(certs, l, version.Version, force, now)
	if err != nil {
		return terminal.ExitWith(exitNothing, errors.New(terminal.Clean(err.Error())))
	}
	if force {
		request.Files = k3supdate.LeafFiles{Dirs: []string{p.In(k3scerts.DefaultDir), p.In(k3scerts.OtherDir)}}.Files()
	}
	if err := device.AskAgent(p, request); err != nil {
		return err
	}
	for _, name := range request.Files {
		fmt.Fprintln(out, "This file is moved aside:", name)
	}
	if len(request.Without) > 0 {
		fmt.Fprintf(out, "It does without: %s.\n", terminal.Clean(strings.Join(request.Without, ", ")))
	}
	fmt.Fprint(out, "k3s is restarted under the drain lock when nothing else is in the way.\nTo watch it: zedkube topics zedkube/KubeLifecycle --watch\n")
	return nil
}

func certificatesTable() terminal.Table {
	return terminal.Table{Columns: []terminal.Column{{Title: "CERTIFICATE"}, {Title: "STATE"}, {Title: "EXPIRES"}, {Title: "LEFT", Keep: 3, Right: true}, {Title: "WHERE", Keep: 2, Middle: "..."}}}
}

func (v certificates) draw(s *terminal.Screen) {
	t := certificatesTable()
	for _, c := range v.Items {
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
		s.Put(0, terminal.Plain, "k3s renews what is Renewable, Due or Urgent when it starts. zedkube restarts it for what is Due, one node a day; now: zedkube k3s certs reset")
	}
	if v.Restart.Failed != "" {
		s.Put(0, terminal.Red, terminal.Clean(v.Restart.Failed))
	}
	if v.Restart.Reason != "" {
		s.Put(0, terminal.Yellow, terminal.Clean(v.Restart.Reason))
	}
	if isDue(v.Authorities) {
		s.Put(0, terminal.Plain, "k3s never renews an authority: docs/operations.md, \"Rotating the CA\".")
	}
	s.Foot("by the agent, " + terminal.Age(v.At, v.ReadAt))
}

func isDue(list []types.K3sCertificate) bool {
	return slices.ContainsFunc(list, func(c types.K3sCertificate) bool { return c.State == types.CertDue || c.State == types.CertUrgent })
}
