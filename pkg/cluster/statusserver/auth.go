package statusserver

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/types"
)

// tlsProves is for how long a Node has to have been seen with TLS until it counts as
// one that can prove itself: within an hour a device that has tried an update is
// back at the old image, if it has to be.
const tlsProves = time.Hour

// foreign reports whether no zedkube is known to run on a Node that can prove itself.
func (c *Component) foreign(n types.Node) bool {
	return n.Foreign() && c.peers.For(clusterauth.PeerOf(n), time.Now()) < tlsProves
}

// authenticated hands to next what came by plain HTTP, and by TLS with a bearer
// of this cluster (docs/wire.md, "TLS and bearer").
func (c *Component) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, _ := r.Context().Value(connKey{}).(*trackedConn)
		secure, ok := h.Conn.(*tls.Conn)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		if !c.keys.Admits(r, time.Now()) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+clusterauth.Realm+`"`)
			http.Error(w, "by TLS a bearer of this cluster's token is required", http.StatusUnauthorized)
			c.refused(h.from.ip, otherBearer)
			return
		}
		state := secure.ConnectionState()
		r.TLS = &state
		next.ServeHTTP(w, r)
	})
}

// Former answers commands of this device (docs/wire.md, "TLS and bearer").
func (c *Component) Former() http.Handler { return &c.keys }

// nodesAt are the Nodes with that address.
func nodesAt(nodes map[string]types.Node, ip netip.Addr) (out []types.Node) {
	for _, n := range nodes {
		if is, err := netip.ParseAddr(n.InternalIP); err == nil && plain(is) == ip {
			out = append(out, n)
		}
	}
	return out
}

const (
	otherCertificate = "a client refuses the certificate of this node: it has another cluster token, or is of another cluster"
	otherBearer      = "a client takes the certificate of this node, and sends no bearer of its cluster token"
	refusalPause     = 10 * time.Minute // between two lines about one client
	maxRefusals      = 256              // clients that are remembered for it
)

// handshakeFailed says of a joining node what it cannot say itself. What else
// strangers send is no transition of ours.
func (c *Component) handshakeFailed(ip netip.Addr, err error) {
	var alert *net.OpError
	if errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Err.Error(), "certificate") {
		c.refused(ip, otherCertificate)
	}
}

func (c *Component) refused(ip netip.Addr, why string) {
	if c.told.due(ip.String()+" "+why, time.Now()) {
		c.Log.WithField("address", ip.String()).Warn(why)
	}
}

// refusals bounds how often the log tells of a client, and of how many.
type refusals struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (b *refusals) due(line string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.last, func(_ string, at time.Time) bool { return now.Sub(at) >= refusalPause })
	if _, told := b.last[line]; told || len(b.last) >= maxRefusals {
		return false
	}
	if b.last == nil {
		b.last = map[string]time.Time{}
	}
	b.last[line] = now
	return true
}

// client asks the other nodes as their stamps say, or as they were seen to answer.
func (c *Component) client(ctx context.Context, dialer *net.Dialer) *clusterauth.Client {
	nodes := c.Nodes.All()
	return &clusterauth.Client{
		Keys: &c.keys, Memory: &c.peers, Dial: dialer.DialContext, Headers: boundedhttp.MaxHeaderBytes,
		Peer: func(ip netip.Addr) clusterauth.Peer {
			return clusterauth.PeerOf(nodesAt(nodes, ip)...)
		},
		Again: func(p clusterauth.Peer) {
			const why = "it has booted, or its stamp says something else, since it was seen with TLS"
			c.Log.WithField("node", p.Name).Warn("test again whether the status server of a node speaks TLS: " + why)
			types.Did(types.Because(ctx, "", why), c.Operations, "test TLS", "node/"+p.Name, nil)
		},
	}
}
