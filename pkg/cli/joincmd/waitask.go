package joincmd

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// joinPatience is how long the kube container waits for one answer (docs/wire.md,
// "Kube container").
const joinPatience = 2 * time.Second

const (
	maxStatusBody  = 1 << 10  // "cluster:" and a UUID
	maxExplanation = 64 << 10 // what a server may say about itself, headers too
)

// asker asks a server whether this node may join.
type asker struct {
	client     *http.Client
	apiPort    int
	statusPort int
	patience   time.Duration
}

// joinClient follows nobody elsewhere and asks no proxy: the answer has to
// come from the server itself. Its certificate cannot be verified by a node
// that has not joined: nothing secret is sent, and nothing rests on the answer
// but that there is one.
func joinClient(from *net.Dialer) *http.Client {
	return boundedhttp.NewClient(from.DialContext, &tls.Config{InsecureSkipVerify: true}, maxExplanation)
}

// answer is whether the node may join, and why.
type answer struct {
	may    bool
	reason string // a word for it
	why    string // a sentence, clean
}

// ask asks the server once: its API first, which has to answer whatever it
// likes, then its status server.
func (q asker) ask(ctx context.Context, t joinTarget) answer {
	_, _, err := q.get(ctx, "https", t.server, q.apiPort, &url.URL{Path: "/"}, "", 0)
	if err != nil {
		return failure(err, "API", fmt.Sprintf("the API server of %s, port %d,", t.server, q.apiPort), q.patience)
	}
	return q.askStatus(ctx, t)
}

// askStatus asks the status server.
func (q asker) askStatus(ctx context.Context, t joinTarget) answer {
	server := fmt.Sprintf("the status server of %s, port %d,", t.server, q.statusPort)
	code, body, err := q.get(ctx, "http", t.server, q.statusPort, &url.URL{Path: "/status"}, "", maxStatusBody)
	if err != nil {
		return failure(err, "Status", server, q.patience)
	}
	if code/100 != 2 {
		return answer{reason: "StatusRefuses", why: fmt.Sprintf("%s answers %s", server, terminal.Clean(strings.TrimSpace(strconv.Itoa(code)+" "+http.StatusText(code))))}
	}
	a := plainAnswer(body, t)
	if a.reason == notYet {
		a.why += q.explanation(ctx, t)
	}
	return a
}

// notYet is the reason of a server that names no cluster.
const notYet = "NotYet"

// plainAnswer reads the plain answer of a status server.
func plainAnswer(body string, t joinTarget) answer {
	text := strings.TrimSpace(body)
	named, ok := strings.CutPrefix(text, "cluster:")
	named = strings.TrimSpace(named)
	id, err := uuid.Parse(named)
	switch {
	case len(body) > maxStatusBody:
		return answer{reason: "StatusGarbage", why: fmt.Sprintf("%s answers with more than %d bytes, which is not a status", t.server, maxStatusBody)}
	case text == "":
		return answer{reason: notYet, why: fmt.Sprintf("%s is not yet a working server of its cluster", t.server)}
	case ok && named == t.cluster.String():
		return answer{may: true, reason: "MayJoin", why: fmt.Sprintf("%s is a working server of cluster %s", t.server, t.cluster)}
	case ok && err == nil && id != t.cluster:
		return answer{reason: "OtherCluster", why: fmt.Sprintf("%s is a server of cluster %s, and this device belongs to %s: waiting does not help", t.server, id, t.cluster)}
	case text == "cluster":
		return answer{reason: "OldServer", why: fmt.Sprintf("%s runs an EVE from before October 2025, which does not report which cluster it is in", t.server)}
	}
	return answer{reason: "StatusGarbage", why: fmt.Sprintf("%s answers %q, which is not a status", t.server, excerpt(text))}
}

// excerpt is the beginning of a text, clean.
func excerpt(text string) string {
	const longest = 60
	if len(text) > longest {
		for text = text[:longest]; !utf8.ValidString(text) && len(text) > longest-utf8.UTFMax; {
			text = text[:len(text)-1]
		}
		text += "..."
	}
	return terminal.Clean(text)
}

// explanation asks a server why it names no cluster. Nothing is decided by it.
func (q asker) explanation(ctx context.Context, t joinTarget) string {
	query := url.Values{"cluster": {t.cluster.String()}}.Encode()
	code, body, err := q.get(ctx, "http", t.server, q.statusPort, &url.URL{Path: "/status", RawQuery: query}, "application/json", maxExplanation)
	if err != nil || code/100 != 2 {
		return ""
	}
	var said map[string]any
	if json.Unmarshal([]byte(body), &said) != nil || said == nil {
		return "; EVE's own zedkube runs there, which does not say why"
	}
	word := func(key string) string { s, _ := said[key].(string); return terminal.Clean(s) }
	why, reason, state := strings.TrimSuffix(word("why"), "."), word("reason"), word("state")
	if why == "" || state == "ready" { // it has become one in between
		return ""
	}
	text := "; it says: " + why
	if reason != "" {
		text += " (" + reason + ")"
	}
	if since, err := time.Parse(time.RFC3339, word("since")); err == nil {
		text += ", waiting since " + terminal.Timestamp(since)
	}
	return text
}

// get asks for one page and reads at most one byte more than limit of it.
func (q asker) get(ctx context.Context, scheme string, server netip.Addr, port int, page *url.URL, accept string, limit int64) (int, string, error) {
	page.Scheme, page.Host = scheme, net.JoinHostPort(server.String(), strconv.Itoa(port))
	a, err := boundedhttp.Get(ctx, q.client, page.String(), accept, limit, q.patience)
	return a.Code, string(a.Body), err
}

// failure says why a server gave no answer.
func failure(err error, of, who string, patience time.Duration) answer {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	switch timeout := net.Error(nil); {
	case errors.Is(err, syscall.ECONNREFUSED):
		return answer{reason: of + "Refused", why: who + " refuses connections: it is not running yet"}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return answer{reason: of + "Silent", why: fmt.Sprintf("%s does not answer within %s", who, patience)}
	}
	return answer{reason: of + "Unreachable", why: fmt.Sprintf("%s does not answer: %s", who, terminal.Clean(err.Error()))}
}

// ownStatusEvery is how often the own status is looked at between two tries: a
// withdrawal ends the wait.
const ownStatusEvery = time.Second

// ownStatus is what this device knows of the cluster it is to join: what the
// command line says, and for the rest EdgeNodeClusterStatus.
type ownStatus struct {
	given joinTarget
	file  string

	seen bool // the file has named a cluster
	last joinTarget
}

// look returns whom to ask, and why nobody can be asked where that is not
// whole. It fails when there is nothing to wait for any more.
func (s *ownStatus) look() (joinTarget, answer, error) {
	if s.given.whole() {
		return s.given, answer{}, nil
	}
	status, _, err := device.ReadRecord[types.EdgeNodeClusterStatus](s.file)
	missing := errors.Is(err, fs.ErrNotExist) || err == nil && status.ClusterID.UUID == uuid.Nil
	switch {
	case missing && s.seen:
		return s.last, answer{}, terminal.ExitWith(terminal.ExitJoinWithdrawn, errors.New("EdgeNodeClusterStatus was withdrawn: this device is no longer configured to join"))
	case missing:
		return s.given, answer{reason: "NoClusterStatus", why: "this device has no EdgeNodeClusterStatus yet, " + s.file}, nil
	case err != nil && s.seen && s.last.whole():
		return s.last, answer{}, nil // half written: what it said holds
	case err != nil:
		return s.given, answer{reason: "BadClusterStatus", why: "this device's EdgeNodeClusterStatus cannot be read: " + terminal.Clean(err.Error())}, nil
	case status.BootstrapNode && !s.given.server.IsValid():
		return s.given, answer{}, terminal.ExitWith(terminal.ExitUsage, errors.New("this is the bootstrap node of its cluster: it does not join another node"))
	}
	s.seen, s.last = true, s.complete(status)
	if !s.last.whole() {
		why := fmt.Sprintf("this device's EdgeNodeClusterStatus names no server of cluster %s to join", s.last.cluster)
		return s.last, answer{reason: "NoJoinServer", why: why}, nil
	}
	return s.last, answer{}, nil
}

// complete fills in what the command line leaves out.
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
