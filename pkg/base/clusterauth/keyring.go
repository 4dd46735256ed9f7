package clusterauth

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
)

// Overlap is how long the token before still counts after a change: each node
// gets its configuration by itself, most within a minute or two.
const Overlap = 10 * time.Minute

// Keyring holds the credentials of this node's cluster while its token may change.
// Its zero value has none.
type Keyring struct {
	mu       sync.RWMutex
	cluster  uuid.UUID
	token    string       // "" for unknown
	current  *Credentials // of the newest token that there was, nil before the first
	previous *Credentials // nil for none
	until    time.Time    // previous counts
}

// Update says what the token of the cluster is now, "" for unknown. In the same
// cluster the token before another counts for a while longer, and nothing takes
// the place of one that is not known for a while.
func (k *Keyring) Update(cluster uuid.UUID, token string, now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	token = strings.TrimSpace(token)
	if cluster == k.cluster && token == k.token {
		return nil
	}
	next, err := Derive(token)
	if err != nil && !errors.Is(err, ErrNoToken) {
		return err
	}
	switch {
	case cluster != k.cluster:
		k.current, k.previous = next, nil
	case next != nil && (k.current == nil || next.bearer != k.current.bearer):
		k.current, k.previous, k.until = next, k.current, now.Add(Overlap)
	}
	k.cluster, k.token = cluster, token
	return nil
}

// valid are the credentials that count, the newest first.
func (k *Keyring) valid(now time.Time) (out []*Credentials) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.current != nil {
		out = append(out, k.current)
	}
	if k.previous != nil && now.Before(k.until) {
		out = append(out, k.previous)
	}
	return out
}

// ServerConfig is for a server that presents the newest token's certificate. Where
// there is none, or was one only, each handshake fails.
func (k *Keyring) ServerConfig() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{"http/1.1"},
		SessionTicketsDisabled: true, // a session would outlast the token that it began with
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			k.mu.RLock()
			defer k.mu.RUnlock()
			if k.token == "" {
				return nil, ErrNoToken
			}
			return &k.current.certificate, nil
		},
	}
}

// Admits reports whether a request carries the bearer of a token that counts. It
// takes as long whichever that is.
func (k *Keyring) Admits(r *http.Request, now time.Time) bool {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	found := 0
	for _, c := range k.valid(now) {
		found |= subtle.ConstantTimeCompare([]byte(given), []byte(c.bearer))
	}
	return found == 1
}

// FormerPath is where the agent's socket answers with what counts of the token before.
const FormerPath = "/api/former-token"

// former is what counts of the token before: enough to ask with, and neither the
// token nor its key.
type former struct {
	Cluster     uuid.UUID
	Bearer      string
	Certificate []byte // DER
	Until       time.Time
}

// ServeHTTP tells a command of this device what counts of the token before, which
// the agent alone remembers.
func (k *Keyring) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	var f former
	k.mu.RLock()
	if k.previous != nil && time.Now().Before(k.until) {
		f = former{k.cluster, k.previous.bearer, k.previous.DER(), k.until}
	}
	k.mu.RUnlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(f) // who asked may be gone
}

// AskAgent takes over from the agent of this device what counts of the token before,
// in the same cluster, unless it is older than what is known: the agent may not have
// read the newest token yet. Where none answers, the token alone counts.
func (k *Keyring) AskAgent(ctx context.Context, socket string, within time.Duration) {
	client := boundedhttp.NewSocketClient(socket)
	defer client.CloseIdleConnections()
	raw, err := boundedhttp.Whole(ctx, client, "http://zedkube"+FormerPath, 16<<10, within)
	var f former
	if err != nil || json.Unmarshal(raw, &f) != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if f.Cluster == k.cluster && k.current != nil && f.Bearer != k.current.bearer && (k.previous == nil || f.Until.After(k.until)) {
		k.previous, k.until = &Credentials{f.Bearer, tls.Certificate{Certificate: [][]byte{f.Certificate}}}, f.Until
	}
}
