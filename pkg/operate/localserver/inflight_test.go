package localserver

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/operator"
	"github.com/zedkube/zedkube/types"
)

// slowAudit takes its time to write the line, as on a busy disk.
type slowAudit struct{ asked, on chan struct{} }

func (s slowAudit) Begin(types.Operation) func(types.OperationOutcome, error) {
	close(s.asked)
	<-s.on
	return func(types.OperationOutcome, error) {}
}

// The agent is stopped, as for a restart, while it serves a request of a command that still waits.
func TestARequestInFlightWhenTheAgentEndsIsStillMade(t *testing.T) {
	root, audit := t.TempDir(), slowAudit{make(chan struct{}), make(chan struct{})}
	c := component(t)
	c.Routes["/requests/"] = Route{
		Handler: &operator.Handler{Root: root, Operations: audit, Topics: []operator.Topic{operator.TopicOf[types.NodeDrainRequest]()}},
		Methods: []string{http.MethodPut, http.MethodDelete},
	}
	end := run(t, c)
	for range 200 {
		if conn, err := net.Dial("unix", c.Socket); err == nil {
			conn.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", c.Socket)
	}}}
	type answer struct {
		code int
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		r, _ := http.NewRequest(http.MethodPut, "http://zedkube/requests/NodeDrainRequest/global", strings.NewReader(`{"RequestedAt":"2026-01-02T03:04:05Z","Context":"new disk"}`))
		resp, err := client.Do(r)
		if err != nil {
			got <- answer{err: err}
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		got <- answer{resp.StatusCode, string(text), nil}
	}()
	<-audit.asked
	ended := make(chan struct{})
	go func() { defer close(ended); end() }()
	time.Sleep(300 * time.Millisecond)
	close(audit.on)
	a := <-got
	<-ended
	_, err := os.Stat(filepath.Join(root, "run/zedkube-cli/NodeDrainRequest/global.json"))
	if a.code != http.StatusNoContent || err != nil {
		t.Errorf("answer %d %q, %v; the request: %v", a.code, a.text, a.err, err)
	}
}
