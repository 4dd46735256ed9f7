package statusserver

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// broken is a table that panics in the hands of the one who reads it.
type broken struct {
	pubsub.Table[types.EdgeNodeClusterStatus]
}

func (*broken) Get(string) (types.EdgeNodeClusterStatus, bool) { panic("a fault in the report") }

// brokenInTheReport panics but for the first reads, which are those of the handler.
type brokenInTheReport struct {
	broken
	reads int
}

func (b *brokenInTheReport) Get(key string) (types.EdgeNodeClusterStatus, bool) {
	if b.reads--; b.reads >= 0 {
		return types.EdgeNodeClusterStatus{}, false
	}
	return b.broken.Get(key)
}

func TestAPanicInAReportIsAnsweredAndLoggedOnce(t *testing.T) {
	for path, reads := range map[string]int{"/app": 0, "/cluster-app": 1} {
		log, hook := logtest.NewNullLogger()
		c := &Component{
			Log: log, Status: &brokenInTheReport{reads: reads}, Nodes: &pubsub.Table[types.Node]{}, EdgeNodes: &pubsub.Table[types.Node]{},
			TopicDirs: []string{t.TempDir()}, Reports: ReportsAlways,
		}
		h := boundedhttp.Recover(log, c.handler())
		for range maxReports + 1 { // each gives its place back
			c.Status.(*brokenInTheReport).reads = reads
			r := httptest.NewRequest(http.MethodPost, path, nil)
			r.RemoteAddr = "10.0.0.1:4000"
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 12346}))
			w := &deadlines{httptest.NewRecorder()}
			h.ServeHTTP(w, r)
			if w.Code != http.StatusInternalServerError {
				t.Fatalf("%s: %d %q", path, w.Code, w.Body)
			}
		}
		c.making.Wait()
		logged := hook.AllEntries()
		if len(logged) != 1 {
			t.Fatalf("%s: %d lines are logged", path, len(logged))
		}
		stack, _ := logged[0].Data["stack"].(string)
		if !strings.Contains(logged[0].Message, "a fault in the report") || !strings.Contains(stack, "panic_test.go") {
			t.Errorf("%s: %s\n%s", path, logged[0].Message, stack)
		}
	}
}

// deadlines is a recorder that takes deadlines, as a connection does.
type deadlines struct{ *httptest.ResponseRecorder }

func (*deadlines) SetReadDeadline(time.Time) error  { return nil }
func (*deadlines) SetWriteDeadline(time.Time) error { return nil }
