package appscmd

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/operate/operator"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

// The agent ends before it answers the request or its withdrawal; the next one takes the request of
// a later command, before the earlier command asks again.
func TestVMIDetachThatAsksAgainLeavesTheRequestOfALaterCommand(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{http.MethodPut, http.MethodDelete} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			s := detachWith(t)
			topic, err := operator.Open[types.AppDetachRequest](s.root)
			if err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("unix", device.Options{Root: s.root}.Paths().Socket)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(s.root, "run", device.CommandAgent, "AppDetachRequest", detachApp+".json")
			later := uuid.New()
			var asked atomic.Int32
			agent := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if r.Method == lost && asked.Add(1) == 1 {
					cmdtest.Lay(t, file, `{"ID":"`+later.String()+`","Node":"n4","Asked":"`+time.Now().UTC().Format(time.RFC3339)+`"}`)
					panic(http.ErrAbortHandler)
				}
				if r.Method == http.MethodDelete {
					if err := topic.Unpublish(detachApp); err != nil {
						t.Error(err)
					}
				} else {
					cmdtest.Lay(t, file, string(body))
				}
				w.WriteHeader(http.StatusNoContent)
			})}
			go func() { _ = agent.Serve(l) }()
			defer agent.Close()
			code, err := s.run(t.Context(), "--timeout", "1500ms", "n3", detachDomain)
			lies, _, lack := device.ReadRecord[types.AppDetachRequest](file)
			if lack != nil || lies.ID != later {
				t.Errorf("exit code %d, %v; asked %d times; of the later command there lies %+v, %v", code, err, asked.Load(), lies, lack)
			}
		})
	}
}
