package appscmd

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/report/edgemetrics"
	"github.com/zedkube/zedkube/types"
)

// edgeWorld is an edge node and the log of its pod.
type edgeWorld struct {
	ready types.ConditionStatus
	edge  bool
	open  func(ctx context.Context) (io.ReadCloser, error)
}

var edgeSince = time.Date(2026, 5, 3, 6, 41, 17, 0, time.UTC)

func (w *edgeWorld) Logs(ctx context.Context, _ types.Pod, _ types.LogOptions) (io.ReadCloser, error) {
	return w.open(ctx)
}

func (w *edgeWorld) EdgeNode(_ context.Context, name string) (types.Node, bool, error) {
	return types.Node{Name: name, Ready: w.ready, ReadySince: edgeSince}, w.edge, nil
}

// silence is a log that says text, and then nothing until ctx is done.
func silence(ctx context.Context, text string) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, text)
		<-ctx.Done()
		_ = w.CloseWithError(ctx.Err())
	}()
	return r
}

func TestALogOfAnEdgeNodeThatIsSilentEndsAfterTenSeconds(t *testing.T) {
	pod := types.Pod{Namespace: "plant", Name: "sensor", NodeName: "edge-1"}
	hang := func(ctx context.Context) (io.ReadCloser, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	says := func(text string) func(context.Context) (io.ReadCloser, error) {
		return func(ctx context.Context) (io.ReadCloser, error) { return silence(ctx, text), nil }
	}
	for name, row := range map[string]struct {
		open   func(ctx context.Context) (io.ReadCloser, error)
		ready  types.ConditionStatus
		follow bool
		lose   time.Duration // when the node is seen to be offline; 0 for never
		lines  int
		err    string
		took   time.Duration
	}{
		"no answer":                     {open: hang, ready: types.ConditionTrue, err: "edge node edge-1 has not answered within 10s", took: 10 * time.Second},
		"no answer to who follows":      {open: hang, ready: types.ConditionTrue, follow: true, lose: 35 * time.Second, err: "edge node edge-1 is offline since", took: 40 * time.Second},
		"offline meanwhile":             {open: hang, ready: types.ConditionTrue, lose: 3 * time.Second, err: "edge node edge-1 is offline since 2026-05-03T06:41:17Z", took: 10 * time.Second},
		"half of it":                    {open: says("2026-05-03T06:41:17Z one\n"), ready: types.ConditionTrue, lines: 1, err: "has not answered within 10s", took: 10 * time.Second},
		"cut off from who follows":      {open: says("2026-05-03T06:41:17Z one\n"), ready: types.ConditionTrue, follow: true, lose: 95 * time.Second, lines: 1, err: "is offline since", took: 40 * time.Second},
		"nothing to say to who follows": {open: says(""), ready: types.ConditionTrue, follow: true, lose: 5*time.Minute - time.Second, err: "is offline since", took: 5 * time.Minute},
		"all of it": {open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("a\nb\n")), nil
		}, ready: types.ConditionTrue, lines: 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := device.Paths{Socket: filepath.Join(t.TempDir(), "none")}
			synctest.Test(t, func(t *testing.T) {
				w := &edgeWorld{ready: row.ready, edge: true, open: row.open}
				var lock sync.Mutex
				asker := lockedWorld{w, &lock}
				if row.lose > 0 {
					time.AfterFunc(row.lose, func() {
						lock.Lock()
						defer lock.Unlock()
						w.ready = types.ConditionUnknown
					})
				}
				lines, ended, began := make(chan loggedLine), make(chan error), time.Now()
				go func() {
					ended <- source{pod: pod, container: "app"}.readEdge(t.Context(), asker, p, logsOptions{follow: row.follow}, lines)
				}()
				got := 0
				if row.lines > 0 { // a pager that does not read makes no silence
					time.Sleep(time.Minute)
					began = began.Add(time.Minute)
				}
				for {
					select {
					case <-lines:
						got++
					case err := <-ended:
						took := time.Since(began)
						if got != row.lines || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) || took != row.took {
							t.Errorf("%d lines, %v, after %s", got, err, took)
						}
						return
					}
				}
			})
		})
	}
}

// lockedWorld may change meanwhile.
type lockedWorld struct {
	*edgeWorld
	lock *sync.Mutex
}

func (w lockedWorld) EdgeNode(ctx context.Context, name string) (types.Node, bool, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.edgeWorld.EdgeNode(ctx, name)
}

func TestOfAnEdgeNodeThatIsOfflineTheLogSaysWhatWasKnown(t *testing.T) {
	pod := types.Pod{Namespace: "plant", Name: "sensor", NodeName: "edge-1"}
	p := device.Paths{Socket: filepath.Join(t.TempDir(), "agent")}
	w := &edgeWorld{ready: types.ConditionUnknown, edge: true}
	if err := online(t.Context(), w, p, pod); err == nil || !strings.Contains(err.Error(), "offline since 2026-05-03T06:41:17Z") || !strings.Contains(err.Error(), "does not say") {
		t.Errorf("without an agent: %v", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", p.Socket)
	if err != nil {
		t.Fatal(err)
	}
	cpu := uint64(250_000_000)
	agent := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == edgemetrics.Path {
			_ = json.NewEncoder(w).Encode(edgemetrics.Measured{Items: []types.KubeNodeMetrics{{
				Node: "edge-1", At: time.Now().Add(-time.Hour), Metrics: types.NodeMetrics{CPU: &cpu}, Pods: []types.PodMetrics{{Namespace: "plant", Name: "sensor"}},
			}}})
		}
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = agent.Serve(listener) })
	defer serving.Wait()
	defer agent.Close()
	err = online(t.Context(), w, p, pod)
	for _, want := range []string{"its log can be read when it is back", "known of before", "250m CPU", "- memory", "plant/sensor"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("there is no %q in %v", want, err)
		}
	}
	w.ready = types.ConditionTrue
	if err := online(t.Context(), w, p, pod); err != nil {
		t.Errorf("Ready: %v", err)
	}
	w.edge = false
	if err := online(t.Context(), w, p, pod); err == nil || !strings.Contains(err.Error(), "zedkube logs --pod plant/sensor") {
		t.Errorf("on a member: %v", err)
	}
}
