package joincmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/joinplan"
	"github.com/zedkube/zedkube/types"
)

const joinExitCodes = `Exit codes:
  0   this node may join
  1   wrong usage, interrupted, or this device is the one that starts the cluster
  4   the timeout has passed
  5   EdgeNodeClusterStatus was withdrawn: this device is no longer configured to join
  99  unknown command`

// NewWaitJoinCommand waits as the kube container does before it joins a cluster.
func NewWaitJoinCommand(o *device.Options) *cobra.Command {
	var server, cluster, tokenFile string
	var out terminal.Outputs
	var interval, timeout time.Duration
	var apiPort int
	c := &cobra.Command{
		Use:   "wait-join [--server IP] [--cluster UUID] [--timeout 10m]",
		Short: "Wait until this node may join its cluster, and print what it waits for",
		Long: "Wait until this node may join its cluster, as the kube container does, and print what it waits for, a line for each change.\n" +
			"The server's API has to answer, and its status server has to name the cluster: by TLS, authenticated by the cluster token,\n" +
			"or by plain HTTP if an older EVE runs there. What is not given on the command\n" +
			"line is read from this device's EdgeNodeClusterStatus, and its changes are followed.\n\n" + joinExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			t, err := parseTarget(server, cluster)
			if err = cmp.Or(err, checkWait(interval, timeout)); err == nil {
				t.token, err = readToken(c.Context(), tokenFile, c.InOrStdin())
			}
			if err != nil {
				return terminal.ExitWith(terminal.ExitUsage, err)
			}
			ctx := c.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			return joiner{
				own:      &ownStatus{given: t, file: o.Paths().TopicFile(device.Self, "EdgeNodeClusterStatus")},
				asker:    newAsker(&net.Dialer{}, nil, apiPort, types.PortStatus),
				socket:   o.Paths().Socket,
				interval: interval, out: c.OutOrStdout(), outputs: &out,
			}.wait(ctx)
		},
	}
	out.Flag(c)
	flags := c.Flags()
	flags.StringVar(&server, "server", "", "address of the server to join (default: JoinServerIP of EdgeNodeClusterStatus)")
	flags.StringVar(&cluster, "cluster", "", "UUID of this node's cluster (default: ClusterID of EdgeNodeClusterStatus)")
	flags.StringVar(&tokenFile, "token-file", "", tokenFileUsage)
	flags.DurationVar(&interval, "interval", 10*time.Second, "time between two tries")
	flags.DurationVar(&timeout, "timeout", 0, "how long to wait; 0 waits forever")
	flags.IntVar(&apiPort, "api-port", types.PortAPI, "port of the server's API")
	_ = flags.MarkHidden("api-port") // k3s listens there on every device; test clusters do not
	return c
}

// parseTarget reads what the command line says; what it leaves out is zero.
func parseTarget(server, cluster string) (t joinTarget, err error) {
	if server != "" {
		if t.server, err = netip.ParseAddr(server); err != nil || t.server.IsUnspecified() {
			return t, fmt.Errorf("server %q: want an address such as 10.0.0.1 or fd00::1", terminal.Clean(server))
		}
	}
	if cluster != "" {
		if t.cluster, err = uuid.Parse(cluster); err != nil || t.cluster == uuid.Nil {
			return t, fmt.Errorf("cluster %q: want the UUID of a cluster", terminal.Clean(cluster))
		}
	}
	return t, nil
}

func checkWait(interval, timeout time.Duration) error {
	switch {
	case interval <= 0:
		return fmt.Errorf("interval %s: want more than 0", interval)
	case timeout < 0:
		return fmt.Errorf("timeout %s: want 0 (no limit) or more", timeout)
	}
	return nil
}

const (
	tokenFileUsage = "file with the cluster token, - for stdin (default: that of EdgeNodeClusterStatus for this cluster)"
	maxToken       = 64 << 10
)

// readToken reads the cluster token that is given; "" where none is. It never stands on
// a command line, which every program on the machine can read.
func readToken(ctx context.Context, file string, stdin io.Reader) (string, error) {
	var raw []byte
	var err error
	switch file {
	case "":
		return "", nil
	case "-":
		var given []byte
		read := make(chan error, 1)
		go func() { // a read cannot be interrupted; it ends with the process
			var err error
			given, err = io.ReadAll(io.LimitReader(stdin, maxToken+1))
			read <- err
		}()
		select {
		case err = <-read:
			raw = given
		case <-ctx.Done():
			err = fmt.Errorf("stdin has not ended: %w", ctx.Err())
		}
	default:
		raw, err = safefile.Read(file, maxToken)
	}
	token := strings.TrimSpace(string(raw))
	switch {
	case err == nil && len(raw) > maxToken:
		err = fmt.Errorf("it is longer than %d bytes", maxToken)
	case err == nil && token == "":
		err = errors.New("there is none")
	}
	if err != nil {
		return "", terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("read the cluster token: %w", err))
	}
	return token, nil
}

// joinTarget is whom to ask, for what, and with what.
type joinTarget struct {
	server  netip.Addr // zero for unknown
	cluster uuid.UUID  // nil for unknown
	token   string     // of the cluster, not to be shown; "" for unknown
}

func (t joinTarget) whole() bool { return t.server.IsValid() && t.cluster != uuid.Nil }

type joiner struct {
	own      *ownStatus
	asker    asker
	socket   string // of the agent of this device; "" for none
	interval time.Duration
	out      io.Writer
	outputs  *terminal.Outputs // nil for people
}

// wait returns nil when the node may join.
func (j joiner) wait(ctx context.Context) error {
	var last joinplan.Answer
	for {
		t, a, err := j.own.look()
		if err != nil {
			return err
		}
		next := time.NewTimer(j.interval)
		if t.whole() {
			j.take(ctx, t)
			a = j.asker.mayJoin(ctx, t)
		}
		if now, _, err := j.own.look(); a.May && (err != nil || now != t) {
			continue // what was asked is of no interest any more
		}
		if ctx.Err() == nil && a != last {
			last = a
			if err := j.tell(t, a); err != nil {
				return err
			}
		}
		switch {
		case a.May:
			return nil
		case j.pause(ctx, next, t) != nil:
			return waitEnded(ctx.Err(), last)
		}
	}
}

// take takes the tokens that count now: of one that is given nobody knows which was before.
func (j joiner) take(ctx context.Context, t joinTarget) {
	j.asker.take(t.cluster, t.token)
	if j.own.given.token == "" && j.socket != "" {
		j.asker.knows.Keys.AskAgent(ctx, j.socket, j.asker.patience)
	}
}

// pause waits for the next try, and no longer than things stay as they are. It
// fails when ctx is done.
func (j joiner) pause(ctx context.Context, next *time.Timer, t joinTarget) error {
	look := time.NewTicker(ownStatusEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next.C:
			return nil
		case <-look.C:
			if now, _, err := j.own.look(); err != nil || now != t {
				return nil
			}
		}
	}
}

// waitEnded is the error for a wait that did not come to its end.
func waitEnded(err error, last joinplan.Answer) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return terminal.ExitWith(terminal.ExitJoinTimeout, errors.New("timed out: this node is not allowed to join yet: "+cmp.Or(last.Why, "no node has answered")))
	}
	return terminal.ExitWith(terminal.ExitUsage, errors.New("interrupted: this node is not allowed to join yet"))
}

type joinLine struct {
	At      time.Time
	Server  string // "" for unknown
	Cluster string // "" for unknown
	MayJoin bool
	Reason  string // a word for it
	Why     string // a sentence
}

func (j joiner) tell(t joinTarget, a joinplan.Answer) error {
	line := joinLine{At: time.Now().UTC(), MayJoin: a.May, Reason: a.Reason, Why: a.Why}
	if t.server.IsValid() {
		line.Server = t.server.String()
	}
	if t.cluster != uuid.Nil {
		line.Cluster = t.cluster.String()
	}
	if j.outputs != nil && !j.outputs.People() {
		return j.outputs.Encode(j.out, line, "")
	}
	verb := "waits:"
	if a.May {
		verb = "may join:"
	}
	if _, err := fmt.Fprintln(j.out, terminal.Timestamp(line.At), verb, a.Why); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// ownStatusEvery is how often the own status is looked at between two tries: a
// withdrawal ends the wait.
const ownStatusEvery = time.Second

// ownStatus is what this device knows of the cluster it is to join: what the
// command line says, and for the rest EdgeNodeClusterStatus.
type ownStatus struct {
	given joinTarget
	file  string

	seen  bool // the file has named a cluster
	last  joinTarget
	token string // that the file had last for the cluster
}

// look returns whom to ask, and why nobody can be asked where that is not
// whole. It fails when there is nothing to wait for any more.
func (s *ownStatus) look() (joinTarget, joinplan.Answer, error) {
	status, _, err := device.ReadRecord[types.EdgeNodeClusterStatus](s.file)
	t, a, ended := s.target(status, err)
	if err == nil { // of one half written, what it said holds
		s.token = tokenFor(t.cluster, status)
	}
	t.token = cmp.Or(s.given.token, s.token)
	return t, a, ended
}

// tokenFor is the token of a cluster, "" where the status is of another.
func tokenFor(cluster uuid.UUID, status types.EdgeNodeClusterStatus) string {
	if status.ClusterID.UUID != cluster {
		return ""
	}
	return strings.TrimSpace(status.EncryptedClusterToken)
}

func (s *ownStatus) target(status types.EdgeNodeClusterStatus, err error) (joinTarget, joinplan.Answer, error) {
	if s.given.whole() {
		return s.given, joinplan.Answer{}, nil
	}
	missing := errors.Is(err, fs.ErrNotExist) || err == nil && status.ClusterID.UUID == uuid.Nil
	switch {
	case missing && s.seen:
		return s.last, joinplan.Answer{}, terminal.ExitWith(terminal.ExitJoinWithdrawn, errors.New("EdgeNodeClusterStatus was withdrawn: this device is no longer configured to join"))
	case missing:
		return s.given, joinplan.Answer{Reason: "NoClusterStatus", Why: "this device has no EdgeNodeClusterStatus yet, " + s.file}, nil
	case err != nil && s.seen && s.last.whole():
		return s.last, joinplan.Answer{}, nil // half written: what it said holds
	case err != nil:
		return s.given, joinplan.Answer{Reason: "BadClusterStatus", Why: "this device's EdgeNodeClusterStatus cannot be read: " + terminal.Clean(err.Error())}, nil
	case status.BootstrapNode && !s.given.server.IsValid():
		return s.given, joinplan.Answer{}, terminal.ExitWith(terminal.ExitUsage, errors.New("this is the bootstrap node of its cluster: it does not join another node"))
	}
	s.seen, s.last = true, s.complete(status)
	if !s.last.whole() {
		why := fmt.Sprintf("this device's EdgeNodeClusterStatus names no server of cluster %s to join", s.last.cluster)
		return s.last, joinplan.Answer{Reason: "NoJoinServer", Why: why}, nil
	}
	return s.last, joinplan.Answer{}, nil
}

func (s *ownStatus) complete(status types.EdgeNodeClusterStatus) joinTarget {
	t := s.given
	if ip, ok := netip.AddrFromSlice(status.JoinServerIP); ok && !t.server.IsValid() && !ip.IsUnspecified() {
		t.server = ip.Unmap()
	}
	if t.cluster == uuid.Nil {
		t.cluster = status.ClusterID.UUID
	}
	return t
}
