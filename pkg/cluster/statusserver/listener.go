package statusserver

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zedkube/zedkube/types"
)

// rank is how well the owner of an address is known.
type rank int

const (
	outsider  rank = iota // from outside the cluster's network
	neighbour             // from inside it: a joining node, or anyone
	member                // a Node's address, or our own
	ranks
)

// share is how many connections each rank may hold whatever the others do.
// Nearly all of it is for neighbours: who joins is one of them.
var share = [ranks]int{outsider: 32, neighbour: 416, member: 64}

const (
	maxConnections = 512 // the sum of the shares; some 20 KB each, by TLS at most 100 KB
	maxOfOneSource = 32  // far beyond what one address needs, and far below any share
	// turnEvery is small beside maxConnections: who has just come stays
	// longer than that.
	turnEvery = 8
)

func (c *Component) rank(ip netip.Addr) rank {
	status, _ := c.Status.Get(types.Global)
	return rankOf(plain(ip), status, c.Nodes.All())
}

func rankOf(ip netip.Addr, status types.EdgeNodeClusterStatus, nodes map[string]types.Node) rank {
	if own, ok := status.OwnAddress(); ok && own == ip {
		return member
	}
	if len(nodesAt(nodes, ip)) > 0 {
		return member
	}
	if ip.IsLinkLocalUnicast() || status.ClusterIPPrefix != nil && status.ClusterIPPrefix.Contains(ip.AsSlice()) {
		return neighbour
	}
	return outsider
}

// bounded is a listener that holds at most maxConnections, and of one source at
// most maxOfOneSource. A new connection always gets in: another one goes for
// it, of the rank that is most over its share, of the source there that has the
// most, and the oldest of those. One that waits for an answer goes last of all,
// so that anyone who sends a whole request gets one.
type bounded struct {
	*net.TCPListener
	rank   func(netip.Addr) rank
	tls    *tls.Config
	failed func(netip.Addr, error) // told of a TLS handshake that failed
	closed int                     // for others; of the goroutine that accepts

	mu   sync.Mutex
	open []*trackedConn // oldest first
	of   map[netip.Addr]*origin
	by   [ranks]int
}

type origin struct {
	ip   netip.Addr
	rank rank
	n    int
}

// trackedConn is a connection that speaks TLS if its first byte begins a handshake,
// else what it always did. Both come with its first Read, in the goroutine that
// serves it and under the deadline of the request's head: who sends nothing, or
// half of a handshake, holds up nobody. It is no *net.TCPConn, of which the HTTP
// server would use more than these methods, past the TLS.
type trackedConn struct {
	net.Conn          // raw before the first byte; a *tls.Conn for TLS
	raw      net.Conn // what anyone may close
	owner    *bounded
	from     *origin
	busy     atomic.Bool // it has sent a whole request, its body too, and waits for the answer
}

// recordHandshake is the first byte of a TLS connection, and of no request.
const recordHandshake = 0x16

// Read implements net.Conn.
func (h *trackedConn) Read(p []byte) (int, error) {
	if h.Conn == h.raw {
		var first [1]byte
		if n, err := h.raw.Read(first[:]); n == 0 {
			return 0, err
		}
		h.Conn = &rejoined{h.raw, io.MultiReader(bytes.NewReader(first[:]), h.raw)}
		if first[0] == recordHandshake {
			// To read TLS is to write too, also to who reads nothing.
			_ = h.raw.SetWriteDeadline(time.Now().Add(requestTimeout)) // fails for a closed one alone
			h.Conn = tls.Server(h.Conn, h.owner.tls)
		}
	}
	n, err := h.Conn.Read(p)
	if secure, ok := h.Conn.(*tls.Conn); ok && err != nil && !secure.ConnectionState().HandshakeComplete {
		h.owner.failed(h.from.ip, err)
	}
	return n, err
}

// rejoined is a connection from which a byte was read already.
type rejoined struct {
	net.Conn
	all io.Reader
}

// Read implements net.Conn.
func (r *rejoined) Read(p []byte) (int, error) { return r.all.Read(p) }

// CloseWrite is for the HTTP server: a refused request still gets its answer.
func (h *trackedConn) CloseWrite() (err error) {
	if secure, ok := h.Conn.(*tls.Conn); ok {
		err = secure.CloseWrite()
	}
	if tcp, ok := h.raw.(*net.TCPConn); ok {
		err = errors.Join(err, tcp.CloseWrite())
	}
	return err
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	conn, err := b.AcceptTCP()
	if err != nil {
		return nil, err
	}
	var ip netip.Addr
	if addr, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		ip = plain(addr.AddrPort().Addr())
	}
	h := &trackedConn{Conn: conn, raw: conn, owner: b}
	if surplus := b.add(h, ip); surplus != nil {
		_ = surplus.Close()
		// A loop that only accepts would close connections before those who
		// serve them have had a turn to read the request that is there already;
		// a turn for each would delay the last of many.
		if b.closed++; b.closed%turnEvery == 0 {
			runtime.Gosched()
		}
	}
	return h, nil
}

// add takes h in and returns the connection that has to go for it, if any.
func (b *bounded) add(h *trackedConn, ip netip.Addr) (surplus *trackedConn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	from, known := b.of[ip]
	if !known {
		from = &origin{ip: ip, rank: b.rank(ip)}
		if b.of == nil {
			b.of = map[netip.Addr]*origin{}
		}
		b.of[ip] = from
	}
	h.from = from
	from.n++
	b.by[from.rank]++
	b.open = append(b.open, h)
	switch {
	case from.n > maxOfOneSource:
		return b.evictable(func(o *trackedConn) bool { return o.from == from })
	case len(b.open) > maxConnections:
		r := b.mostOverQuota()
		return b.evictable(func(o *trackedConn) bool { return o.from.rank == r })
	}
	return nil
}

// mostOverQuota is the rank that is most over its share; one is, when all are full.
func (b *bounded) mostOverQuota() rank {
	most := outsider
	for r := range ranks {
		if b.by[r]-share[r] > b.by[most]-share[most] {
			most = r
		}
	}
	return most
}

// evictable is the connection to close among those that may be, never the newest.
func (b *bounded) evictable(may func(*trackedConn) bool) *trackedConn {
	var out *trackedConn
	for _, o := range b.open[:len(b.open)-1] {
		if !may(o) {
			continue
		}
		idle, better := !o.busy.Load(), out == nil
		if !better {
			was := !out.busy.Load()
			better = idle && !was || idle == was && o.from.n > out.from.n
		}
		if better {
			out = o
		}
	}
	return out
}

// Close implements net.Conn. TLS' closing alert is not sent: it could wait for a client
// that reads nothing, and hold up who closes; HTTP itself says where an answer ends.
func (h *trackedConn) Close() error {
	h.owner.remove(h)
	return h.raw.Close()
}

func (b *bounded) remove(h *trackedConn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.open, h)
	if i < 0 {
		return
	}
	b.open = slices.Delete(b.open, i, i+1)
	b.by[h.from.rank]--
	if h.from.n--; h.from.n == 0 {
		delete(b.of, h.from.ip)
	}
}
