package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// What a crowd around a status server does.
const (
	crowd      = 10000 // idle connections that it keeps, or believes to keep
	hoarders   = 4     // goroutines that open them
	comeBack   = 2000  // of them, given up and opened anew each second
	slow       = 1000  // connections that send one byte of a request each second
	throwers   = 8     // goroutines that send what is no request
	reporters  = 8     // goroutines that ask for a report
	takeBreath = 50 * time.Millisecond
)

// addresses are where a crowd comes from: half of them in the network of the
// cluster, clear of its nodes, which come before, and of those who ask for
// /status, which come after; half of them somewhere else.
func addresses(node net.IP) []net.IP {
	node = node.To4()
	var list []net.IP
	for i := range 180 {
		list = append(list, net.IPv4(node[0], node[1], node[2], byte(20+i)), net.IPv4(127, 250, 250, byte(20+i)))
	}
	return list
}

// crowded is one crowd.
type crowded struct {
	server string // <ip>:<port>
	node   net.IP // the server's
	from   []net.IP

	mu  sync.Mutex
	did map[string]int
}

// surround is a crowd around server until ctx is done; it prints what it did.
func surround(ctx context.Context, role, server string) error {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		return err
	}
	c := &crowded{server: server, node: net.ParseIP(host), did: map[string]int{}}
	c.from = addresses(c.node)
	var all sync.WaitGroup
	if role == "hoard" {
		for i := range hoarders {
			all.Go(func() { c.hoard(ctx, i) })
		}
	} else {
		for i := range slow {
			all.Go(func() { c.repeat(ctx, i, c.drip) })
		}
		for i := range throwers {
			all.Go(func() { c.repeat(ctx, i, c.throw) })
		}
		for i := range reporters {
			all.Go(func() { c.repeat(ctx, i, c.report) })
		}
	}
	all.Wait()
	return json.NewEncoder(os.Stdout).Encode(c.did)
}

func (c *crowded) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.did[what]++
}

// listed is what a crowd has done, in words.
func listed(did map[string]int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(did)) {
		parts = append(parts, fmt.Sprintf("%d %s", did[what], what))
	}
	return strings.Join(parts, ", ")
}

// connect comes from one of the addresses; every fourth connection is one of
// the first few addresses'.
func (c *crowded) connect(ctx context.Context, i int) (net.Conn, error) {
	if i%4 == 0 {
		i = i / 4 % 4
	}
	conn, err := dialFrom(ctx, c.from[i%len(c.from)], c.server)
	if err != nil && ctx.Err() == nil {
		c.count("connections that failed")
	}
	return conn, err
}

// hoard opens its part of the idle connections as fast as it can, and then
// keeps opening new ones for the oldest.
func (c *crowded) hoard(ctx context.Context, worker int) {
	var kept []net.Conn
	for i := 0; ctx.Err() == nil; i++ {
		if conn, err := c.connect(ctx, i*hoarders+worker); err == nil {
			c.count("connections opened")
			kept = append(kept, conn)
		}
		if len(kept) > crowd/hoarders {
			kept[0].Close()
			kept = kept[1:]
			_ = pause(ctx, hoarders*time.Second/comeBack)
		}
	}
	for _, conn := range kept {
		conn.Close()
	}
}

// repeat does one thing again and again, each time with a new connection.
func (c *crowded) repeat(ctx context.Context, i int, do func(context.Context, int)) {
	for ; ctx.Err() == nil; i++ {
		do(ctx, i)
		_ = pause(ctx, takeBreath)
	}
}

// drip sends a request that never ends.
func (c *crowded) drip(ctx context.Context, i int) {
	conn, err := c.connect(ctx, i)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	c.count("slow requests begun")
	_, err = fmt.Fprint(conn, "GET /status HTTP/1.1\r\nHost: bench\r\nX: ")
	for err == nil && pause(ctx, time.Second) == nil {
		_, err = fmt.Fprint(conn, "x")
	}
}

// throw sends what is no request, or one far too large.
func (c *crowded) throw(ctx context.Context, i int) {
	conn, err := c.connect(ctx, i)
	if err != nil {
		return
	}
	defer conn.Close()
	c.count("garbage requests")
	junk := make([]byte, 16<<10)
	_, _ = rand.Read(junk)
	if i%2 == 0 {
		junk = []byte("GET /status HTTP/1.1\r\nHost: bench\r\nX: " + strings.Repeat("x", len(junk)) + "\r\n\r\n")
	}
	// It may be closed before all is sent: that is its right.
	_, _ = conn.Write(junk)
	_, _ = io.Copy(io.Discard, conn)
}

// report asks for a report of an application as the node itself may.
func (c *crowded) report(ctx context.Context, i int) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialFrom(ctx, c.node, c.server)
	}}
	defer transport.CloseIdleConnections()
	list := appsFor(0)
	url := "http://" + c.server + "/app/" + list[i%len(list)].UUIDandVersion.UUID.String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		if ctx.Err() == nil {
			c.count("requests for a report that failed")
		}
		return
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	c.count(fmt.Sprintf("requests for a report answered with %d", response.StatusCode))
}
