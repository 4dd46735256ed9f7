package applogs

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// steady is a log of lines of 120 bytes, a share of 20 MB a second.
type steady struct {
	ctx   context.Context
	share int // bytes each 10 ms
	tick  *time.Ticker
	buf   []byte
}

func (s *steady) Read(p []byte) (int, error) {
	if len(s.buf) == 0 {
		select {
		case <-s.tick.C:
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
		line := time.Now().UTC().Format(time.RFC3339Nano) + " " + strings.Repeat("x", 119) + "\n"
		for len(s.buf) < s.share {
			s.buf = append(s.buf, line...)
		}
	}
	n := copy(p, s.buf)
	s.buf = s.buf[n:]
	return n, nil
}

func (s *steady) Close() error { s.tick.Stop(); return nil }

type steadyKube struct{ share int }

func (k steadyKube) Logs(ctx context.Context, _ types.Pod, _ types.LogOptions) (io.ReadCloser, error) {
	return &steady{ctx: ctx, share: k.share, tick: time.NewTicker(10 * time.Millisecond)}, nil
}

func (steadyKube) LogFiles(context.Context, types.Node, types.Pod, string) ([]types.LogFile, error) {
	return nil, types.ErrNoLog
}

func (steadyKube) LogFile(context.Context, types.Node, types.Pod, string, types.LogFile) (io.ReadCloser, error) {
	return nil, types.ErrNoLog
}

// BenchmarkTwentyMegabytesASecond has 50 containers write 20 MB a second into a
// pipe whose reader only counts.
func BenchmarkTwentyMegabytesASecond(b *testing.B) {
	const containers, share = 50, 20_000_000 / 50 / 100
	dir := b.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	read := make(chan int64)
	go func() { n, _ := io.Copy(io.Discard, r); read <- n }()
	log := logrus.New()
	log.SetOutput(io.Discard)
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Configs: &pubsub.Table[types.AppInstanceConfig]{}, Kube: steadyKube{share},
		Out: w, MaxRecord: LargestRecord, Streams: 64, Rate: 1 << 40, Burst: 1 << 40,
		Journal: filepath.Join("/dev/shm", fmt.Sprint("applogs-", os.Getpid())), Checkpoints: filepath.Join(dir, "x", "kept"),
	}
	defer os.Remove(c.Journal)
	configs, info := &pubsub.Table[types.AppInstanceConfig]{}, &pubsub.Table[types.EdgeNodeInfo]{}
	nodes, pods, api := &pubsub.Table[types.Node]{}, &pubsub.Table[types.Pod]{}, &pubsub.Table[types.APIStatus]{}
	c.Configs, c.Info, c.Nodes, c.AppPods, c.API = configs, info, nodes, pods, api
	_ = configs.Publish(appID, types.AppInstanceConfig{UUIDandVersion: types.UUIDandVersion{UUID: uuid.MustParse(appID)}, DisplayName: "web", FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationNoHyper}})
	_ = info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1"})
	_ = nodes.Publish("n1", types.Node{Name: "n1"})
	_ = api.Publish(types.Global, types.APIStatus{Synced: true})
	p := types.Pod{Namespace: "eve-kube-app", Name: "web-1", UID: podID, NodeName: "n1", App: "web-9f27b-0"}
	for i := range containers {
		p.Containers = append(p.Containers, types.Container{Name: fmt.Sprint("c", i), Now: types.ContainerRun{ID: fmt.Sprint("x", i)}})
	}
	_ = pods.Publish(p.Key(), p)

	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	before, start := cpu(), time.Now()
	go func() { defer close(done); c.Run(ctx) }()
	time.Sleep(5 * time.Second)
	stop()
	<-done
	took, used := time.Since(start), cpu()-before
	_ = w.Close()
	n := <-read
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(n)/took.Seconds()/1e6, "MB/s-out")
	b.ReportMetric(100*used.Seconds()/took.Seconds(), "%cpu")
	b.ReportMetric(float64(m.HeapInuse)/1e6, "MB-heap")
	b.ReportMetric(0, "ns/op")
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
