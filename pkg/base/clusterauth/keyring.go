package clusterauth

import (
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
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
