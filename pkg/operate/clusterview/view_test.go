package clusterview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func withSecret() *pubsub.Table[types.EdgeNodeClusterStatus] {
	status := &pubsub.Table[types.EdgeNodeClusterStatus]{}
	_ = status.Publish(types.Global, types.EdgeNodeClusterStatus{EncryptedClusterToken: secret})
	return status
}

func TestTheFilesAreReadOnceASecondHoweverManyAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := 0
		own := teller(withSecret(), func(now time.Time) overview.Overview { read++; return overview.Overview{ReadAt: now} })
		for range 100 {
			if _, err := own.Tell(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(fresh)
		_, _ = own.Tell(t.Context())
		if read != 2 {
			t.Errorf("they were read %d times", read)
		}
	})
}

func TestADiskThatHangsHoldsUpOneReaderAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read atomic.Int32
		goOn := make(chan struct{})
		own := teller(withSecret(), func(now time.Time) overview.Overview {
			read.Add(1)
			<-goOn
			return overview.Overview{ReadAt: now}
		})
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), AskFor)
			if _, err := own.Tell(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			cancel()
		}
		if n := read.Load(); n != 1 {
			t.Errorf("%d read at a time", n)
		}
		close(goOn)
		if _, err := own.Tell(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatIsToldHasNoSecretAndFits(t *testing.T) {
	o := overview.Overview{ReadAt: time.Now()}
	o.Cluster.Object.Why = "k3s says: token=" + secret + " is wrong, password: hunter22222"
	o.Drain.Progress = &types.NodeDrainProgress{Phase: types.PhaseEmptying, Reason: "because"}
	for i := range 500 {
		o.Apps.List = append(o.Apps.List, overview.App{
			Name: fmt.Sprintf("app-%d %s", i, strings.Repeat("é", 2000)), Pods: []types.KubePodInfo{{Name: "pod"}},
			Repair: &types.AppRepairStatus{Reason: "it is lost", Evidence: []string{strings.Repeat("e", 5000)}},
		})
		o.Drain.Progress.Blockers = append(o.Drain.Progress.Blockers, types.DrainBlocker{Pod: strings.Repeat("p", 300)})
	}
	own := teller(withSecret(), func(time.Time) overview.Overview { return o })
	own.Operations = func() ([]types.Operation, []string, error) {
		return []types.Operation{{Op: "ask", From: "uid 0", Why: "curl -H 'Authorization: Bearer abcdefgh'"}}, []string{"a part is missing"}, errors.New("cannot read the rest")
	}
	raw, err := own.Tell(t.Context())
	if err != nil || len(raw) > MaxAnswer || len(raw) < MaxAnswer/4 {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	for _, bad := range []string{secret, "hunter2", "abcdefgh", "pod\"", "eeeeeeee"} {
		if strings.Contains(string(raw), bad) {
			t.Errorf("%q is told", bad)
		}
	}
	v, err := read(raw, "another")
	if err != nil {
		t.Fatal(err)
	}
	if v.Zedkube != "1.4.0" || v.Drain.Progress.Reason != "because" || len(v.Apps) == 0 || v.Apps[0].Repair.Reason != "it is lost" || len(v.Remarks) != 2 {
		t.Errorf("%.1000s", raw)
	}
	cut := fmt.Sprintf("%d applications", 500-len(v.Apps))
	if !strings.Contains(strings.Join(v.Cut, "; "), cut) || len(v.Cut) != 2 {
		t.Errorf("cut are %q, and %d applications are told", v.Cut, len(v.Apps))
	}
	if n := len(o.Drain.Progress.Blockers); n != 500 || len(o.Apps.List[0].Repair.Evidence) != 1 {
		t.Error("the overview itself was cut")
	}
}

func FuzzRead(f *testing.F) {
	whole, _ := json.Marshal(View{At: time.Now(), Apps: []overview.App{{Name: "a"}}, Drain: overview.Drain{Progress: &types.NodeDrainProgress{}}})
	for _, seed := range []string{string(whole), "", "{}", `{"At":"2026-05-03T06:07:00Z"}`, `{"At":1}`, `[[[[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := read(raw, secret)
		if (v == nil) != (err != nil) {
			t.Errorf("%v, %v", v, err)
		}
		if v != nil {
			again, err := json.Marshal(v)
			if err != nil || strings.Contains(string(again), secret) {
				t.Errorf("%v: %s", err, again)
			}
		}
	})
}

func TestTimesThatCannotBeConvertedAreNotTakenFromANode(t *testing.T) {
	v, err := read([]byte(`{"At":"2026-11-26T12:00:00Z","Operations":[{"At":"9999-12-31T23:59:59Z","Op":"cordon"},{"At":"2026-11-26T11:00:00Z","Op":"uncordon"}]}`), "")
	if err != nil || len(v.Operations) != 1 || v.Operations[0].Op != "uncordon" {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := read([]byte(`{"At":"9999-12-31T23:59:59Z"}`), ""); err == nil {
		t.Error("a view of the year 9999 is taken")
	}
}
