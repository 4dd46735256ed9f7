package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// pageFiles are the page's own files, which the program has embedded.
const pageFiles = "pkg/operate/page/static"

// page is the page of a node on recorded data.
type page struct {
	mu   sync.Mutex
	last map[string]string // of each kind of message the last, for one who comes later
	all  map[chan string]bool
}

// servePage serves the page on an address of this machine until ctx is done.
func servePage(ctx context.Context) (*page, string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("serve the recorded page: %w", err)
	}
	p := &page{last: map[string]string{}, all: map[chan string]bool{}}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(os.DirFS(pageFiles)))
	mux.HandleFunc("/api/events", p.events)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this is a recorded run: it has only what the page is sent by itself", http.StatusNotFound)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { server.Close() })
	return p, listener.Addr().String(), nil
}

// send is one message to all who look.
func (p *page) send(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range strings.Lines(message) {
		if kind, ok := strings.CutPrefix(line, "event: "); ok {
			p.last[strings.TrimSpace(kind)] = message
		}
	}
	for looker := range p.all {
		select {
		case looker <- message:
		default: // it takes nothing
		}
	}
}

func (p *page) events(w http.ResponseWriter, r *http.Request) {
	messages := make(chan string, 100)
	p.mu.Lock()
	p.all[messages] = true
	var first bytes.Buffer
	for _, kind := range []string{"beat", "overview", "metrics"} {
		first.WriteString(p.last[kind])
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.all, messages)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	for next := first.String(); ; {
		if _, err := w.Write([]byte(next)); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case next = <-messages:
		}
	}
}
