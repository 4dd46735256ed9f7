//go:build linux

package devcluster

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// progress turns the package names that "go build -v" prints into a line every
// few seconds, and keeps the last lines for an error message.
type progress struct {
	log   io.Writer
	name  string
	total int
	begin time.Time
	done  chan struct{}
	ended sync.WaitGroup

	mu      sync.Mutex
	partial []byte
	built   int
	last    []string
}

func newProgress(log io.Writer, name string, total int) *progress {
	p := &progress{log: log, name: name, total: total, begin: time.Now(), done: make(chan struct{})}
	p.ended.Go(func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.print("building")
			case <-p.done:
				return
			}
		}
	})
	return p
}

// Write implements io.Writer for the standard error of the go command.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partial = append(p.partial, b...)
	for {
		line, rest, ok := bytes.Cut(p.partial, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		p.partial = rest
		p.built++
		p.last = append(p.last, string(line))
		p.last = p.last[max(0, len(p.last)-20):]
	}
}

func (p *progress) print(what string) {
	p.mu.Lock()
	built, last := p.built, ""
	if len(p.last) > 0 {
		last = p.last[len(p.last)-1]
	}
	p.mu.Unlock()
	fmt.Fprintf(p.log, "devcluster: %s %s: %d of at most %d packages after %s, at %s\n",
		what, p.name, built, p.total, time.Since(p.begin).Round(time.Second), last)
}

func (p *progress) stop() {
	close(p.done)
	p.ended.Wait()
	p.print("ended")
}

func (p *progress) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.last, "\n")
}
