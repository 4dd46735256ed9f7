// Package proof is how members of a cluster prove to each other that they know
// its token: a request carries a MAC of what it asks for (docs/wire.md, "Status
// server").
package proof

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// Header carries "v1 <unix time in ns> <base64 of the MAC>".
	Header = "X-Zedkube-Auth"
	info   = "zedkube status server v1" // what the key is for
	// Window is how far two clocks of a cluster may differ.
	Window = 2 * time.Minute
	// maxSeen bounds the memory of proofs seen: peers ask when people do.
	maxSeen = 4096
)

var (
	errNoToken  = errors.New("no cluster token yet to check it with")
	errNoProof  = errors.New("no " + Header + " header of version v1")
	errStale    = errors.New("its time is more than " + Window.String() + " from ours")
	errWrong    = errors.New("it is not of this cluster's token, method, address and path")
	errReplayed = errors.New("it has been used before")
	errTooMany  = errors.New("too many of them within a short time")
	errEarlier  = errors.New("it was made before this agent was started: try again")
)

// Key is made from the cluster token, which every member has. The cluster
// UUID sets apart clusters with the same token.
func Key(s types.EdgeNodeClusterStatus) ([]byte, error) {
	if s.EncryptedClusterToken == "" {
		return nil, errNoToken
	}
	id := s.ClusterID.UUID
	key, err := hkdf.Key(sha256.New, []byte(s.EncryptedClusterToken), id[:], info, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	return key, nil
}

// Ask is what a proof proves: that a member sends this request, to this server.
type Ask struct {
	Method string
	Host   string // "<address>:<port>" of the server, without a zone
	Path   string // escaped
}

func (a Ask) mac(key []byte, stamp string) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range []string{"v1", a.Method, a.Host, a.Path, stamp} {
		h.Write([]byte(part + "\n")) // no part can hold a newline
	}
	return h.Sum(nil)
}

// Sign is the header of a, sent now.
func (a Ask) Sign(key []byte, now time.Time) string {
	stamp := strconv.FormatInt(now.UnixNano(), 10)
	return "v1 " + stamp + " " + base64.StdEncoding.EncodeToString(a.mac(key, stamp))
}

// Memory remembers the proofs seen, so that none works twice.
type Memory struct {
	mu    sync.Mutex
	began time.Time
	seen  map[[sha256.Size]byte]time.Time
}

// Begin notes when the memory began, the first time that it is called: an earlier
// process may have taken a proof that was made before. Without it none is taken.
func (p *Memory) Begin(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began.IsZero() {
		p.began = now
	}
}

func (p *Memory) isEarlier(made, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.began.IsZero() || made.Before(beginning(now, now.Sub(p.began)))
}

// beginning is when a process that has run for so long began, by the wall clock as
// it is now: one that was put right since then has moved the beginning as well.
func beginning(now time.Time, ran time.Duration) time.Time { return now.Round(0).Add(-ran) }

// CheckRequest judges the proof of a request for path that came to local, an address of
// this server, by the cluster token in s.
func (p *Memory) CheckRequest(r *http.Request, local netip.AddrPort, path string, s types.EdgeNodeClusterStatus) error {
	key, err := Key(s)
	if err == nil {
		to := netip.AddrPortFrom(local.Addr().Unmap().WithZone(""), local.Port())
		err = p.Check(Ask{Method: r.Method, Host: to.String(), Path: path}, r.Header.Get(Header), key, time.Now())
	}
	if err != nil {
		return fmt.Errorf("refuse proof: %w", err)
	}
	return nil
}

// Check judges header as the proof of a.
func (p *Memory) Check(a Ask, header string, key []byte, now time.Time) error {
	version, rest, _ := strings.Cut(header, " ")
	stamp, text, ok := strings.Cut(rest, " ")
	if !ok || version != "v1" {
		return errNoProof
	}
	ns, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return errNoProof
	}
	made := time.Unix(0, ns)
	if age := now.Sub(made); age.Abs() > Window {
		return errStale
	}
	given, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return errNoProof
	}
	want := a.mac(key, stamp)
	if !hmac.Equal(given, want) {
		return errWrong
	}
	if p.isEarlier(made, now) {
		return errEarlier
	}
	return p.use([sha256.Size]byte(want), now)
}

// use notes a proof that is right; only members can fill the memory.
func (p *Memory) use(mac [sha256.Size]byte, now time.Time) error {
	now = now.Round(0) // by the wall clock, as proofs are: one that is put back makes old ones good again
	p.mu.Lock()
	defer p.mu.Unlock()
	for m, at := range p.seen {
		if now.Sub(at) > 2*Window { // by now too old, even from a clock ahead of ours
			delete(p.seen, m)
		}
	}
	if _, used := p.seen[mac]; used {
		return errReplayed
	}
	if len(p.seen) >= maxSeen {
		return errTooMany
	}
	if p.seen == nil {
		p.seen = map[[sha256.Size]byte]time.Time{}
	}
	p.seen[mac] = now
	return nil
}
