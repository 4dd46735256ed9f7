package player

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// joins is a kube container that counts.
type joins struct {
	Kube
	n int
}

func (j *joins) Join(context.Context, string) ([]byte, error) { j.n++; return nil, nil }

// joiner is a device whose zedkube is a shell script.
func joiner(t *testing.T, script string) (d *Device, kube *joins, said func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	path := filepath.Join(t.TempDir(), "zedkube")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	status := &pubsub.Table[types.EdgeNodeClusterStatus]{}
	_ = status.Publish(types.Global, types.EdgeNodeClusterStatus{ClusterIPIsReady: true})
	kube = &joins{}
	d = &Device{
		Root: t.TempDir(), Program: []string{"/bin/sh", path}, APIPort: 16443, Kube: kube, Log: os.Stderr,
		topics: topics{clusterStatus: status}, said: map[string]string{},
		Say: func(_, agent, text string) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, agent+" "+text)
		},
	}
	return d, kube, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// until lets kubeInit react until it is so.
func (d *Device) until(t *testing.T, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(10 * time.Millisecond) {
		_ = d.kubeInit(t.Context())
		if time.Now().After(end) {
			t.Fatal("it never came to that")
		}
	}
}

func TestKubeInitJoinsWhenWaitJoinLetsIt(t *testing.T) {
	defer goleak.VerifyNone(t)
	d, kube, said := joiner(t, `
case "$*" in "join wait -o json --interval 500ms --api-port 16443 --root "*) ;; *) exit 1; esac
echo '{"MayJoin":false,"Reason":"APIRefused","Why":"it is refused"}'
while ! test -e "$0.open"; do sleep 0.01; done
echo '{"MayJoin":true,"Reason":"MayJoin","Why":"it works"}'
`)
	d.until(t, func() bool { return len(said()) == 1 })
	if d.joined || kube.n != 0 {
		t.Error("it has joined before it may")
	}
	if err := os.WriteFile(d.Program[1]+".open", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.until(t, func() bool { return d.joined })
	want := []string{"kube-init waits to join: it is refused", "kube-init joins: it works"}
	if got := said(); !slices.Equal(got, want) || kube.n != 1 {
		t.Errorf("%d joins, said %q", kube.n, got)
	}
	d.waits.Wait()
}

func TestAWaitJoinThatFailsIsRunAgain(t *testing.T) {
	defer goleak.VerifyNone(t)
	d, kube, _ := joiner(t, `
test -e "$0.once" && exit 0
touch "$0.once"
exit 5
`)
	var failed error
	d.until(t, func() bool {
		failed = d.kubeInit(t.Context())
		return failed != nil
	})
	if d.joined || kube.n != 0 {
		t.Errorf("it has joined after %v", failed)
	}
	d.until(t, func() bool { return d.joined })
	d.waits.Wait()
}

func TestWaitJoinEndsWithTheBoot(t *testing.T) {
	defer goleak.VerifyNone(t)
	d, kube, _ := joiner(t, "exec sleep 1000")
	ctx, end := context.WithCancel(t.Context())
	if may, err := d.mayJoin(ctx); may || err != nil {
		t.Fatal(may, err)
	}
	end()
	d.waits.Wait() // for ever, if it does not end
	if kube.n != 0 {
		t.Error("it has joined")
	}
}
