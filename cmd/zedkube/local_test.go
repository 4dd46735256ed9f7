package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/operate/actions"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/types"
)

// runLocal runs the local server of an agent on an empty root, on loopback too.
func runLocal(t *testing.T) (socket *http.Client, p device.Paths) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	socket, p, ended := runLocalUntil(t, ctx, agent.Build(t))
	t.Cleanup(func() { cancel(); <-ended })
	return socket, p
}

// runLocalUntil is runLocal until ctx is done, with another program whose commands the page runs.
func runLocalUntil(t *testing.T, ctx context.Context, program string) (socket *http.Client, p device.Paths, ended <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := device.Options{Root: t.TempDir(), Program: program}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := errors.Join(o.Page.Set(port), l.Close()); err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	p = o.Paths()
	_, components := wire(ctx, p, log, io.Discard)
	socket = boundedhttp.NewSocketClient(p.Socket)
	t.Cleanup(socket.CloseIdleConnections)
	done := make(chan struct{})
	go func() { defer close(done); components["localserver"].Run(ctx) }()
	if err := eventually(func() string {
		if _, err := os.Stat(p.Socket); err != nil {
			return err.Error()
		}
		if _, err := os.Stat(p.PageToken); err != nil {
			return err.Error()
		}
		_, err := net.Dial("tcp", p.PageAddress())
		return textOf(err)
	}); err != nil {
		t.Fatal(err)
	}
	return socket, p, done
}

// askPage sends a request to the page behind socket, with the ID of a plan. It may be called beside the test.
func askPage(socket *http.Client, method, path, body, id string) (code int, answer string) {
	r, err := http.NewRequestWithContext(context.Background(), method, "http://127.0.0.1:12347"+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set(actions.PlanHeader, id)
	resp, err := socket.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all) + textOf(err)
}

// stopAmid stops the agent as soon as the command of an action has made the file begun. act is answered with why the action
// has not ended, and the audit trail has that too, in the line that is returned.
func stopAmid(t *testing.T, begun string, act func() string, stop func(), ended <-chan struct{}, trail string) (last types.Operation) {
	t.Helper()
	said := make(chan string, 1)
	go func() { said <- act() }()
	if err := eventually(func() string {
		_, err := os.Stat(begun)
		return textOf(err)
	}); err != nil {
		t.Fatal(err)
	}
	stop()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("a minute later the agent still waits for the command")
	}
	const why = "the agent stopped before the command had ended"
	if text := <-said; !strings.Contains(text, why) {
		t.Errorf("the page is answered with %s", text)
	}
	all, _, err := audit.Read(trail)
	if n := len(all); err == nil && n > 0 {
		last = all[n-1]
	}
	if err != nil || last.Outcome != types.OperationFailed || !strings.Contains(last.Error, why) {
		t.Errorf("audited is %+v, %v", all, err)
	}
	return last
}

// runUntilEnd runs a component until the test ends.
func runUntilEnd(t *testing.T, c component) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// fetch is what a server says to a request for url, with a Host of its own.
func fetch(t *testing.T, client *http.Client, url, host string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, body)
}

func TestTheAgentTellsItsNumbersAndShowsItsPage(t *testing.T) {
	socket, p := runLocal(t)
	address := p.PageAddress()
	near := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	numbers := fetch(t, socket, "http://zedkube/metrics", "zedkube")
	for _, want := range []string{"200 ", `zedkube_component_steps_total{component="localserver"}`, `zedkube_pubsub_messages_total{direction="out",topic="zedkube/NodeDrainStatus"} 0`, "process_resident_memory_bytes", "go_goroutines"} {
		if !strings.Contains(numbers, want) {
			t.Errorf("%s is missing", want)
		}
	}
	series := 0
	for line := range strings.Lines(numbers) {
		if !strings.HasPrefix(line, "#") {
			series++
		}
	}
	if series > 800 {
		t.Errorf("%d series of a device of which nothing is known", series)
	}
	if got := fetch(t, near, "http://"+address+"/metrics", ""); !strings.HasPrefix(got, "200 ") {
		t.Errorf("over loopback: %.80s", got)
	}
	if got := fetch(t, near, "http://"+address+"/", ""); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, "<html") {
		t.Errorf("the page: %.80s", got)
	}
	if got := fetch(t, near, "http://"+address+"/metrics", "evil.example"); !strings.HasPrefix(got, "403 ") {
		t.Errorf("a name that DNS turns to us: %.80s", got)
	}
	if got := fetch(t, socket, "http://zedkube/debug/pprof/goroutine?debug=1", "zedkube"); !strings.HasPrefix(got, "200 goroutine profile") {
		t.Errorf("a profile over the socket: %.80s", got)
	}
	if got := fetch(t, near, "http://"+address+"/debug/pprof/goroutine?debug=1", ""); !strings.HasPrefix(got, "404 ") {
		t.Errorf("a profile over loopback: %.80s", got)
	}
}

// fetchWith is what a server on loopback says to who has the token.
func fetchWith(t *testing.T, url, token string) string {
	t.Helper()
	return fetch(t, &http.Client{Transport: bearer(token)}, url, "")
}

// bearer sends requests with a token, "" for without.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
}
