package kubeapi

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/watchdog"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// touchedBy runs the watchdog's feeder over a pulse of kubeapi, and returns how long
// ago the touch file was renewed.
func touchedBy(ctx context.Context, t *testing.T, pulse *loop.Pulse) (age func() time.Duration) {
	t.Helper()
	touch := filepath.Join(t.TempDir(), "zedkube.touch")
	beat := &pubsub.Table[types.WatchdogBeat]{}
	w := &watchdog.Component{Log: kubetest.Quiet(), Beat: beat, Echo: beat, Pulses: map[string]*loop.Pulse{"kubeapi": pulse}, TouchFile: touch}
	go w.Run(ctx)
	return func() time.Duration {
		info, err := os.Stat(touch)
		if err != nil {
			t.Fatal(err)
		}
		return time.Since(info.ModTime())
	}
}

func fed(t *testing.T, age func() time.Duration, want bool, when string) {
	t.Helper()
	if got := age(); want && got > 20*time.Second || !want && got < time.Minute {
		t.Errorf("%s: the touch file was renewed %v ago", when, got)
	}
}

func TestALookAtTheKubeconfigThatHangsIsSeenByTheWatchdog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	kubetest.WriteFile(t, path, kubetest.KubeconfigText("https://a", ""))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		hang := make(chan struct{})
		k := &access.KubeconfigFile{Log: kubetest.Quiet(), Path: path, Pulse: &loop.Pulse{}, Apply: func(*rest.Config) error { <-hang; return nil }}
		age := touchedBy(ctx, t, k.Pulse)
		go k.Turn()
		time.Sleep(time.Minute)
		fed(t, age, true, "a minute, which a call with a deadline may take")
		time.Sleep(5 * time.Minute)
		fed(t, age, false, "six minutes")
		close(hang)
		time.Sleep(time.Minute)
		fed(t, age, true, "after its end")
		cancel()
		synctest.Wait()
	})
}

// heldInfo is a table whose readers wait while it is held.
type heldInfo struct {
	access.Reader[types.EdgeNodeInfo]
	held atomic.Pointer[chan struct{}]
}

func (h *heldInfo) Get(key string) (types.EdgeNodeInfo, bool) {
	if held := h.held.Load(); held != nil {
		<-*held
	}
	return h.Reader.Get(key)
}

func TestALoopOfTheConnectionThatHangsIsSeenByTheWatchdog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	kubetest.WriteFile(t, path, kubetest.KubeconfigText("https://a", ""))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c, _ := newTestClient(t)
		info := &heldInfo{Reader: c.Info}
		c.Info = info
		r := newRun(ctx, c)
		if err := r.connect(ctx, &rest.Config{Host: "https://kube"}, &kubetest.InMemory{Handler: someCluster()}); err != nil {
			t.Fatal(err)
		}
		k := &access.KubeconfigFile{Log: kubetest.Quiet(), Path: path, Pulse: &loop.Pulse{}, Stuck: r.stuck, Apply: func(*rest.Config) error { return nil }}
		go func() {
			for ctx.Err() == nil {
				k.Turn()
				time.Sleep(access.RescanEvery)
			}
		}()
		age := touchedBy(ctx, t, k.Pulse)
		time.Sleep(10 * time.Minute)
		if stuck := r.stuck(); stuck != "" {
			t.Errorf("while nothing happens, %s are stuck", stuck)
		}
		fed(t, age, true, "while nothing happens")

		hang := make(chan struct{})
		info.held.Store(&hang)
		time.Sleep(8 * time.Minute)
		if stuck := r.stuck(); stuck != access.LoopViews {
			t.Errorf("%q are stuck", stuck)
		}
		fed(t, age, false, "eight minutes after it hung")

		info.held.Store(nil)
		close(hang)
		time.Sleep(2 * time.Minute)
		fed(t, age, true, "after that")
		cancel()
		r.end()
		time.Sleep(time.Minute) // the other goroutines end
	})
}
