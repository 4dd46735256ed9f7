package access

import (
	"net"
	"sync"
	"time"
)

// The lines of many logs come one by one, and each would wake the process. With a pause
// between two reads several are taken at once. Where much comes nothing waits.
const (
	gather = 500 * time.Millisecond
	little = 16 << 10 // bytes in that time
	// begins is how long a connection is new: handshakes and the first answers do not wait.
	begins = 2 * time.Second
)

// gathered is a connection that takes at once what comes bit by bit. One goroutine reads.
type gathered struct {
	net.Conn
	opened time.Time
	once   sync.Once
	closed chan struct{}

	emptied      time.Time // when a read last took all there was
	since        time.Time // when taken began
	taken, older int       // bytes that came since then, and in the time before
	pause        bool      // before the next read
}

func gathers(conn net.Conn) *gathered {
	return &gathered{Conn: conn, opened: time.Now(), closed: make(chan struct{})}
}

// Read pauses before it reads where what came lately was little and came in several parts.
func (g *gathered) Read(p []byte) (int, error) {
	if g.pause {
		timer := time.NewTimer(gather)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-g.closed:
		}
	}
	n, err := g.Conn.Read(p)
	now := time.Now()
	if now.Sub(g.since) >= gather {
		g.since, g.older, g.taken = now, g.taken, 0
	}
	g.taken, g.pause = g.taken+n, false
	if n < len(p) { // else there may be more
		several := now.Sub(g.emptied) < 2*gather
		g.pause = several && g.taken < little && g.older < little && now.Sub(g.opened) > begins
		g.emptied = now
	}
	return n, err
}

// Close ends a Read, too, while it pauses.
func (g *gathered) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Conn.Close()
}
