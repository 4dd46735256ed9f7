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
	little = 64 << 10 // bytes per second
	// begins is how long a connection is new: handshakes and the first answers do not wait.
	begins = 2 * time.Second
)

// gathered is a connection that takes at once what comes bit by bit. One goroutine reads.
type gathered struct {
	net.Conn
	opened time.Time
	once   sync.Once
	closed chan struct{}

	emptied time.Time // when a read last took all there was
	taken   int       // bytes since then
	pause   bool      // before the next read
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
	g.taken, g.pause = g.taken+n, false
	if n == len(p) { // there may be more
		return n, err
	}
	now := time.Now()
	since := now.Sub(g.emptied)
	g.pause = since < 2*gather && float64(g.taken) < little*since.Seconds() && now.Sub(g.opened) > begins
	g.emptied, g.taken = now, 0
	return n, err
}

// Close ends a Read, too, while it pauses.
func (g *gathered) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Conn.Close()
}
