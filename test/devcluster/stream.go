//go:build linux

package devcluster

import (
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// cutter passes the first bytes of an answer and then cuts.
type cutter struct {
	http.ResponseWriter
	left int
	cut  func()
}

func (c *cutter) Write(b []byte) (int, error) {
	if len(b) <= c.left {
		c.left -= len(b)
		return c.ResponseWriter.Write(b)
	}
	n, _ := c.ResponseWriter.Write(b[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	c.cut()
	return n, net.ErrClosed
}

// Unwrap lets the rest of an answer's abilities through.
func (c *cutter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// keepWatch notes the answer to a watch, so that it can be ended.
func (p *proxy) keepWatch(r *http.Response) error {
	if !isWatch(r.Request) || r.StatusCode != http.StatusOK {
		return nil
	}
	body := &watchBody{ReadCloser: r.Body, proxy: p, request: r.Request, closed: make(chan struct{})}
	r.Body = body
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches[body] = true
	return nil
}

// endWatches ends what is open now.
func (p *proxy) endWatches() {
	p.mu.Lock()
	var open []*watchBody
	for body := range p.watches {
		open = append(open, body)
	}
	p.mu.Unlock()
	for _, body := range open {
		body.ended.Store(true)
		body.Close()
	}
}

// watchBody is a stream of events that ends in good order when we end it.
type watchBody struct {
	io.ReadCloser
	proxy   *proxy
	request *http.Request
	ended   atomic.Bool
	once    sync.Once
	closed  chan struct{}
}

func (b *watchBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	if err != nil && b.ended.Load() {
		err = io.EOF
	}
	if err == nil {
		b.stall()
	}
	return n, err
}

// stall holds what was read for as long as the watch is stalled.
func (b *watchBody) stall() {
	for first := true; ; first = false {
		b.proxy.mu.Lock()
		is, changed := b.proxy.plan.stalled && b.proxy.plan.meets(b.request), b.proxy.changed
		b.proxy.mu.Unlock()
		if !is {
			return
		}
		if first {
			b.proxy.faulted.Add(1)
		}
		select {
		case <-changed:
		case <-b.closed:
			return
		case <-b.request.Context().Done(): // the client is gone
			return
		}
	}
}

func (b *watchBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	b.proxy.mu.Lock()
	delete(b.proxy.watches, b)
	b.proxy.mu.Unlock()
	return b.ReadCloser.Close()
}
