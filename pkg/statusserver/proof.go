package statusserver

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// proofHeader carries "v1 <unix time in ns> <base64 of the MAC>".
	proofHeader = "X-Zedkube-Auth"
	proofInfo   = "zedkube status server v1" // what the key is for
	// proofWindow is how far two clocks of a cluster may differ.
	proofWindow = 2 * time.Minute
	// maxProofs bounds the memory of proofs seen: peers ask when people do.
	maxProofs = 4096
)

var (
	errNoToken  = errors.New("no cluster token yet to judge it by")
	errNoProof  = errors.New("no " + proofHeader + " header of version v1")
	errStale    = errors.New("its time is more than " + proofWindow.String() + " from ours")
	errWrong    = errors.New("it is not of this cluster's token, method, address and path")
	errReplayed = errors.New("it has been used before")
	errTooMany  = errors.New("too many of them within a short time")
)

// proofKey is made from the cluster token, which every member has. The cluster
// UUID sets apart clusters with the same token.
func proofKey(s types.EdgeNodeClusterStatus) ([]byte, error) {
	if s.EncryptedClusterToken == "" {
		return nil, errNoToken
	}
	id := s.ClusterID.UUID
	key, err := hkdf.Key(sha256.New, []byte(s.EncryptedClusterToken), id[:], proofInfo, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	return key, nil
}

// ask is what a proof proves: that a member sends this request, to this server.
type ask struct {
	method string
	host   string // "<address>:<port>" of the server, without a zone
	path   string // escaped
}

// mac is the MAC of a, sent at the time stamp.
func (a ask) mac(key []byte, stamp string) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range []string{"v1", a.method, a.host, a.path, stamp} {
		h.Write([]byte(part + "\n")) // no part can hold a newline
	}
	return h.Sum(nil)
}

// sign is the header of a, sent now.
func (a ask) sign(key []byte, now time.Time) string {
	stamp := strconv.FormatInt(now.UnixNano(), 10)
	return "v1 " + stamp + " " + base64.StdEncoding.EncodeToString(a.mac(key, stamp))
}

// proofs remembers the proofs seen, so that none works twice.
type proofs struct {
	mu   sync.Mutex
	seen map[[sha256.Size]byte]time.Time
}

// check judges header as the proof of a.
func (p *proofs) check(a ask, header string, key []byte, now time.Time) error {
	version, rest, _ := strings.Cut(header, " ")
	stamp, text, ok := strings.Cut(rest, " ")
	if !ok || version != "v1" {
		return errNoProof
	}
	ns, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return errNoProof
	}
	if age := now.Sub(time.Unix(0, ns)); age.Abs() > proofWindow {
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
	return p.use([sha256.Size]byte(want), now)
}

// use notes a proof that is right; only members can fill the memory.
func (p *proofs) use(mac [sha256.Size]byte, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for m, at := range p.seen {
		if now.Sub(at) > 2*proofWindow { // by now too old, even from a clock ahead of ours
			delete(p.seen, m)
		}
	}
	if _, used := p.seen[mac]; used {
		return errReplayed
	}
	if len(p.seen) >= maxProofs {
		return errTooMany
	}
	if p.seen == nil {
		p.seen = map[[sha256.Size]byte]time.Time{}
	}
	p.seen[mac] = now
	return nil
}
