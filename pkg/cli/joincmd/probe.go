package joincmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"

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
func NewProbeCommand(*device.Options) *cobra.Command {
	return &cobra.Command{
		Use:                ProbeName + " host port",
		Short:              "Print the answer of a status server, asked by TLS with the join token on stdin",
		Hidden:             true,
		DisableFlagParsing: true, // it has no flags, whatever a host begins with
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return terminal.ExitWith(terminal.ExitProbeUsage, errors.New("usage: "+ProbeName+" <host> <port> < join-token"))
			}
			body, err := probe(c.Context(), args[0], args[1], c.InOrStdin())
			if err == nil {
				_, err = fmt.Fprintln(c.OutOrStdout(), body)
			}
			return err
		},
	}
}

// probe asks one server, within joinPatience in all. No answer but one by TLS counts.
func probe(ctx context.Context, host, port string, stdin io.Reader) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	token, err := readToken(ctx, "-", stdin)
	if err != nil {
		return "", err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return "", fmt.Errorf("port %q: want a number from 1 to 65535", port)
	}
	ip, err := netip.ParseAddr(host) // it is one mostly
	if err != nil {
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil || len(found) == 0 {
			return "", fmt.Errorf("find host: %w", cmp.Or(err, errors.New("it has no address")))
		}
		ip = found[0].Unmap()
	}
	byTLS := func(netip.Addr) clusterauth.Peer { return clusterauth.Peer{Stamp: clusterauth.StampTLS} }
	q := newAsker(reach.Dialer(netip.Addr{}), byTLS, 0, int(number))
	q.take(uuid.Nil, token)
	body, none := q.statusOf(ctx, ip, maxExplanation)
	switch {
	case none.Reason == "StatusDowngrade":
		none.Why = fmt.Sprintf("the status server of %s, port %d, does not speak TLS: an older EVE runs there", ip, number)
	case len(body) > maxExplanation:
		none.Why = fmt.Sprintf("the status server of %s, port %d, answers with more than %d bytes", ip, number, maxExplanation)
	}
	if none.Why != "" {
		return "", errors.New(none.Why)
	}
	return strings.TrimSpace(body), nil
}
