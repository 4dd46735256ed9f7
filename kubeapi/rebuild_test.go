package kubeapi

import (
	"context"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// openFiles counts the file descriptors of this process, 0 where that cannot
// be told.
func openFiles() int {
	fds, _ := os.ReadDir("/proc/self/fd")
	return len(fds)
}

func TestNewConnectionsLeaveNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t)
	a := secureServer(someCluster())
	defer a.Close()
	c, tb := newTestClient(t)
	tb.lead(true)
	cfg := &rest.Config{Host: a.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	ctx, cancel := context.WithCancel(t.Context())
	r := newRun(ctx, c)
	defer func() { cancel(); r.end() }()
	again := func() {
		base, err := access.NewTransport(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.connect(ctx, cfg, base); err != nil {
			t.Fatal(err)
		}
		kubetest.WaitFor(t, "the tables are whole", 5*time.Second, func() bool { return tb.status().Synced && tb.counted() })
	}
	again()
	goroutines, files := runtime.NumGoroutine(), openFiles()
	for range 50 {
		again()
	}
	defer func() {
		t.Logf("%d goroutines, %d files at first; %d, %d at last", goroutines, files, runtime.NumGoroutine(), openFiles())
	}()
	kubetest.WaitFor(t, "as many goroutines and files as with one", 3*time.Second, func() bool {
		return runtime.NumGoroutine() <= goroutines+10 && openFiles() <= files+4
	})
}

func TestVerbsOutlastANewConnection(t *testing.T) {
	defer goleak.VerifyNone(t)
	api := someCluster()
	a := secureServer(api)
	defer a.Close()
	c, tb := newTestClient(t)
	cfg := &rest.Config{Host: a.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	ctx, cancel := context.WithCancel(t.Context())
	r := newRun(ctx, c)
	stop := make(chan struct{})
	var callers sync.WaitGroup
	again := func() {
		base, err := access.NewTransport(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.connect(ctx, cfg, base); err != nil {
			t.Fatal(err)
		}
		kubetest.WaitFor(t, "the tables are whole", 5*time.Second, func() bool { return tb.status().Synced })
	}
	again()
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := c.PodsToEvict(ctx, "n1"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 5 {
		again()
	}
	close(stop)
	callers.Wait()
	cancel()
	r.end()
}

func TestRowsOfTheOldClusterGoWhenTheNewOneHasNoneOfThem(t *testing.T) {
	defer goleak.VerifyNone(t)
	a, b := secureServer(someCluster()), secureServer(&fakeAPI{nodes: []corev1.Node{testNode("m1", "z")}})
	defer a.Close()
	defer b.Close()
	c, tb := newTestClient(t)
	tb.lead(true)
	ctx, cancel := context.WithCancel(t.Context())
	r := newRun(ctx, c)
	defer func() { cancel(); r.end() }()
	take := func(url string) {
		cfg := &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
		base, err := access.NewTransport(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.connect(ctx, cfg, base); err != nil {
			t.Fatal(err)
		}
	}
	take(a.URL)
	kubetest.WaitFor(t, "the tables are whole", 5*time.Second, func() bool { return tb.status().Synced && tb.counted() })
	if len(tb.own.All()) != 2 || tb.pods() != 4 {
		t.Fatalf("own %v, counted %d", kubetest.Keys(tb.own.All()), tb.pods())
	}
	_ = tb.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "nobody"})
	take(b.URL)
	kubetest.WaitFor(t, "nothing is left of the old cluster", 5*time.Second, func() bool {
		return len(tb.nodes.All()) == 1 && len(tb.appPods.All())+len(tb.own.All())+len(tb.counts.All()) == 0
	})
}
