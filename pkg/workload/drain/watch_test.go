package drain

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// soon waits in real time for what inotify brings: less than the period, in
// which the component looks by itself.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	const limit = period - 2*time.Second
	for start := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

func TestAForceFileIsHeededAtOnceWhereverItsDirectoryComesFrom(t *testing.T) {
	defer goleak.VerifyNone(t)
	root := t.TempDir()
	dir := filepath.Join(root, "node", "tmp") // comes later
	force := filepath.Join(dir, "force")
	logger, hook := test.NewNullLogger()
	began := time.Now().Add(-time.Hour)
	s := &stage{t: t, log: hook, kube: &kubetest.Cluster{}}
	s.kube.Nodes, s.kube.Pods, s.kube.API = &s.nodes, &s.pods, &s.api
	_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true, Valid: true})
	c := &Component{
		Log: logger, Pulse: &loop.Pulse{}, Operations: types.NoOperations{}, DeviceOp: &s.zedagent, Update: &s.baseos, Operator: &s.operator, Lifecycle: &s.k3s, Config: &s.config, Membership: &s.member,
		Settings: &s.settings, Info: &s.info, Nodes: &s.nodes, NodePods: &s.pods, API: &s.api, Leases: &s.leases, Agent: &s.agent, Kube: s.kube,
		ForceFiles: []string{force}, FaultMarker: filepath.Join(dir, "wait"), Hour: time.Hour,
		BootID: "boot-1", Uptime: func() time.Duration { return time.Since(began) },
		Status: &s.status, Progress: &s.progress, Journal: &s.journal,
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	defer func() { cancel(); <-done }()
	is := func(want types.DrainStatus) func() bool {
		return func() bool { v, _ := s.status.Get(types.Global); return v.Status == want }
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	soon(t, "the first value", is(types.DrainNotRequested))
	for range 20 {
		must(os.MkdirAll(dir, 0o700))
		must(os.WriteFile(force, []byte(`{"Status":1}`), 0o600))
		soon(t, "a file that is written", is(types.DrainNotSupported))
		must(os.Remove(force))
		soon(t, "a file that is removed", is(types.DrainNotRequested))
		must(os.WriteFile(force+".new", []byte(`{"Status":8}`), 0o600))
		must(os.Rename(force+".new", force))
		soon(t, "a file that is renamed into place", is(types.DrainFailedDrain))
		must(os.WriteFile(force, []byte(`{"Status":2}`), 0o600))
		soon(t, "a file that is written again", is(types.DrainNotRequested))
		must(os.RemoveAll(filepath.Join(root, "node")))
	}
	if s.logged("ignored") {
		t.Error("a file that was being written was reported")
	}
}

func TestOtherFilesBesideTheForceFileWakeNobody(t *testing.T) {
	dir := t.TempDir()
	logger, _ := test.NewNullLogger()
	ctx, cancel := context.WithCancel(context.Background())
	done, rings := make(chan struct{}), make(chan struct{}, 100)
	go func() {
		defer close(done)
		watchFiles(ctx, logger, func() { rings <- struct{}{} }, filepath.Join(dir, "force"))
	}()
	<-rings // it watches now
	for _, name := range []string{"a", "force.tmp", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(50 * time.Millisecond)
	cancel()
	<-done
	if n := len(rings); n != 0 {
		t.Errorf("%d rings", n)
	}
}

// inotifyMasks are the masks of all that this process watches.
func inotifyMasks(t *testing.T) (masks []uint64) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		text, _ := os.ReadFile(fd) // it may be closed by now
		for line := range strings.Lines(string(text)) {
			_, rest, ok := strings.Cut(line, " mask:")
			if !ok || !strings.HasPrefix(line, "inotify ") {
				continue
			}
			mask, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			masks = append(masks, mask)
		}
	}
	return masks
}

// The directory is /tmp: each write there would wake the agent. Above others is /run, where all
// agents touch their files.
func TestWritesToOtherFilesAreNotAskedFor(t *testing.T) {
	logger, _ := test.NewNullLogger()
	ctx, cancel := context.WithCancel(context.Background())
	done, rings := make(chan struct{}), make(chan struct{}, 100)
	go func() {
		defer close(done)
		watchFiles(ctx, logger, func() { rings <- struct{}{} }, filepath.Join(t.TempDir(), "force"))
	}()
	<-rings // it watches now
	masks, whole := inotifyMasks(t), 0
	cancel()
	<-done
	if len(masks) == 0 {
		t.Fatal("nothing is watched")
	}
	for _, mask := range masks {
		if mask&unix.IN_MODIFY != 0 {
			t.Errorf("a mask is %#x", mask)
		}
		if mask&(unix.IN_ATTRIB|unix.IN_CLOSE_WRITE) != 0 {
			whole++
		}
	}
	if whole != 1 {
		t.Errorf("of %d directories %d are watched for what becomes of their files", len(masks), whole)
	}
}
