// Package joiner is a node that wants to join a cluster, written from
// docs/wire.md alone: whoever reads that file and nothing else can write such a
// joiner, and gets the right answer from a node in whatever state it is.
package joiner

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Ports of docs/wire.md, "Kube container" and "Status server".
const (
	APIPort    = 6443
	StatusPort = 12346
)

// patience is how long each of the questions may take: docs/wire.md, "Kube
// container".
const patience = 2 * time.Second

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 10

// Verdict is what the joiner does after it has asked.
type Verdict string

// The verdicts.
const (
	Join      Verdict = "join"      // the node is in the joiner's own cluster and can take it
	Wait      Verdict = "wait"      // ask again
	Elsewhere Verdict = "elsewhere" // waiting here is in vain
)

// Joiner is a node that has been told to join Cluster at Server. Ports that are
// 0 are those of docs/wire.md.
type Joiner struct {
	Server     netip.Addr
	Cluster    uuid.UUID
	APIPort    uint16
	StatusPort uint16
}

// Answer is what a joiner makes of one round. Told is what the node said about
// itself, nil where it was not asked or does not explain itself.
type Answer struct {
	Verdict Verdict
	Why     string
	Told    *Explanation
}

// Ask is one round of docs/wire.md, "Kube container": the API server has to
// answer, then /status has to name the joiner's cluster. Where it does not, the
// node is asked why.
func (j Joiner) Ask(ctx context.Context) Answer {
	if j.Cluster == uuid.Nil {
		return Answer{Verdict: Wait, Why: "no cluster to join is known"}
	}
	if err := j.probeAPI(ctx); err != nil {
		return Answer{Verdict: Wait, Why: err.Error()}
	}
	named, err := j.clusterNamed(ctx)
	if err != nil {
		return Answer{Verdict: Wait, Why: err.Error()}
	}
	if named == j.Cluster.String() {
		return Answer{Verdict: Join, Why: "the node names the cluster"}
	}
	told, err := j.Explain(ctx)
	if err != nil {
		return decide(named, nil)
	}
	return decide(named, &told)
}

// decide is for a node that does not name the joiner's cluster. A node of EVE
// gives no explanation, and a reason that is not known here is one to wait.
func decide(named string, told *Explanation) Answer {
	answer := Answer{Verdict: Wait, Why: "the node does not say why", Told: told}
	if told != nil {
		answer.Why = told.Why
	}
	inVain := told != nil && (told.Reason == "OtherCluster" || told.Reason == "Worker")
	if inVain || named != "" {
		answer.Verdict = Elsewhere
	}
	if told == nil && named != "" {
		answer.Why = "the node is in cluster " + named
	}
	return answer
}

// probeAPI is nil when the API server answers, whatever it says and whoever
// signed its certificate.
func (j Joiner) probeAPI(ctx context.Context) error {
	_, _, err := j.get(ctx, url.URL{Scheme: "https", Host: j.host(j.APIPort, APIPort), Path: "/"}, "")
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	return nil
}

// clusterNamed is the UUID in the plain answer of /status; "" while it names
// none, as EVE's bare word `cluster` does not.
func (j Joiner) clusterNamed(ctx context.Context) (string, error) {
	code, body, err := j.get(ctx, url.URL{Scheme: "http", Host: j.host(j.StatusPort, StatusPort), Path: "/status"}, "")
	if err != nil {
		return "", fmt.Errorf("ask the status server: %w", err)
	}
	if code/100 != 2 {
		return "", fmt.Errorf("ask the status server: %s", http.StatusText(code))
	}
	named, ok := strings.CutPrefix(string(body), "cluster:")
	named = strings.TrimSpace(named)
	if id, err := uuid.Parse(named); !ok || err != nil || id == uuid.Nil || id.String() != named {
		return "", nil
	}
	return named, nil
}

// Explain asks the node about itself: docs/wire.md, "Status for people". A node
// of EVE does not know the question: it gives an error.
func (j Joiner) Explain(ctx context.Context) (Explanation, error) {
	question := url.URL{
		Scheme: "http", Host: j.host(j.StatusPort, StatusPort), Path: "/status",
		RawQuery: url.Values{"cluster": {j.Cluster.String()}}.Encode(),
	}
	code, body, err := j.get(ctx, question, "application/json")
	if err != nil {
		return Explanation{}, fmt.Errorf("ask for the reason: %w", err)
	}
	if code != http.StatusOK {
		return Explanation{}, fmt.Errorf("ask for the reason: %s", http.StatusText(code))
	}
	var told Explanation
	if err := json.Unmarshal(body, &told); err != nil {
		return Explanation{}, fmt.Errorf("read the reason: %w", err)
	}
	if told.State == "" || told.Reason == "" {
		return Explanation{}, errors.New("read the reason: there is none")
	}
	return told, nil
}

// host is the server with a port, IPv6 in brackets.
func (j Joiner) host(port, ifZero uint16) string {
	if port == 0 {
		port = ifZero
	}
	return net.JoinHostPort(j.Server.String(), strconv.Itoa(int(port)))
}

// get asks once, on a connection of its own, past any proxy, and follows no
// redirect: what counts is what this very server says.
func (j Joiner) get(ctx context.Context, question url.URL, accept string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, question.String(), nil)
	if err != nil {
		return 0, nil, err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	asker := http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // nobody has given a joiner a CA
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := asker.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, body, err
}
