package localserver

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
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
	client := boundedhttp.NewSocketClient(c.Socket)
	client.Timeout = patience
	defer client.CloseIdleConnections()
	eventually(t, answers(client, "http://zedkube/metrics", "200 numbers"))
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
