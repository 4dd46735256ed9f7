package joincmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/pkg/base/reach"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

// ProbeName is the program of EVE's kube container that asks a status server whether it
// may join (docs/wire.md, "Process"). Under this name ours takes its place.
const ProbeName = "cluster-status-probe"

// NewProbeCommand asks a status server once, by TLS only. The kube container reads
// its output and exit code.
func NewProbeCommand(*device.Options) *cobra.Command { return newProbe(joinPatience) }

func newProbe(patience time.Duration) *cobra.Command {
	return &cobra.Command{
		Use:                ProbeName + " host port",
		Short:              "Print the answer of a status server, asked by TLS with the join token on stdin",
		Hidden:             true,
		PersistentPreRunE:  func(*cobra.Command, []string) error { return nil }, // whatever the root is
		DisableFlagParsing: true,                                                // it has no flags, whatever a host begins with
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return terminal.ExitWith(terminal.ExitProbeUsage, errors.New("usage: "+ProbeName+" <host> <port> < join-token"))
			}
			body, err := probe(c.Context(), args[0], args[1], c.InOrStdin(), patience)
			if err == nil {
				_, err = fmt.Fprintln(c.OutOrStdout(), body)
			}
			return err
		},
	}
}

// probe asks one server, within patience in all and at each address of its name. No
// answer but one by TLS counts.
func probe(ctx context.Context, host, port string, stdin io.Reader, patience time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	token, err := readToken(ctx, "-", stdin)
	if err != nil {
		return "", err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return "", fmt.Errorf("port %q: want a number from 1 to 65535", port)
	}
	if host == "" {
		return "", errors.New("host: want an address or a name")
	}
	byTLS := func(netip.Addr) clusterauth.Peer { return clusterauth.Peer{Stamp: clusterauth.StampTLS} }
	q := newAsker(reach.Dialer(netip.Addr{}), byTLS, 0, int(number))
	q.patience = patience
	q.take(uuid.Nil, token)
	body, none := q.statusOf(ctx, host, maxExplanation)
	switch {
	case none.Reason == "StatusDowngrade":
		none.Why = fmt.Sprintf("the status server of %s, port %d, does not speak TLS: an older EVE runs there", terminal.Clean(host), number)
	case len(body) > maxExplanation:
		none.Why = fmt.Sprintf("the status server of %s, port %d, answers with more than %d bytes", terminal.Clean(host), number, maxExplanation)
	}
	if none.Why != "" {
		return "", errors.New(none.Why)
	}
	return strings.TrimSpace(body), nil
}
