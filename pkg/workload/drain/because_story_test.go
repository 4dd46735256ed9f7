package drain

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

// listening hears for whom, and why, the drain does things.
type listening struct {
	Kube
	mu   sync.Mutex
	said []string
}

func (l *listening) note(ctx context.Context, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := types.Acting(ctx)
	l.said = append(l.said, fmt.Sprintf("%s: %s, %s", what, o.By, o.Why))
}

func (l *listening) Cordon(ctx context.Context, node string, by types.Cordon) error {
	l.note(ctx, "cordon")
	return l.Kube.Cordon(ctx, node, by)
}

func (l *listening) Evict(ctx context.Context, pod types.Pod) error {
	l.note(ctx, "evict")
	return l.Kube.Evict(ctx, pod)
}

func (l *listening) Uncordon(ctx context.Context, node string) error {
	l.note(ctx, "uncordon")
	return l.Kube.Uncordon(ctx, node)
}

// Begin implements types.OperationLog.
func (l *listening) Begin(o types.Operation) func(types.OperationOutcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, fmt.Sprintf("%s %s: %s, %s", o.Op, o.Target, o.By, o.Why))
	return func(types.OperationOutcome, error) {}
}

func TestWhatADrainDoesSaysForWhomAndWhy(t *testing.T) {
	story(t, 1, func(s *stage) {
		l := &listening{Kube: s.kube}
		s.via = l
		c := s.component()
		c.Operations = l
		stop := s.start(c)
		defer func() { stop() }()
		_ = s.operator.Publish(types.Global, types.NodeDrainRequest{RequestedAt: time.Now(), RequestedBy: nobody, Context: "a disk is changed"})
		time.Sleep(20 * time.Second)
		_ = s.operator.Unpublish(types.Global)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		s.cordoned(false, false)
		want := []string{
			"cordon: OPERATOR, a disk is changed", "evict: OPERATOR, a disk is changed", "uncordon: , " + c.rec.Reason,
		}
		if diff := cmp.Diff(want, l.said); diff != "" || c.rec.Reason == "" {
			t.Error(diff)
		}
	})
}

func TestTheForceFileIsOnRecordOnce(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		l := &listening{Kube: s.kube}
		c := s.component()
		c.Operations = l
		stop := s.start(c)
		defer func() { stop() }()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		s.write(s.force, `{"Status":"COMPLETE"}`)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]string{"force drain status node/n1: OPERATOR, a force file says COMPLETE"}, l.said); diff != "" {
			t.Error(diff)
		}
	})
}

func TestARecordNamesAllWhoAsk(t *testing.T) {
	ask := func(words string) types.NodeDrainRequest { return types.NodeDrainRequest{Context: words} }
	for name, row := range map[string]struct {
		rec     record
		by, why string
	}{
		"nobody":        {record{Reason: "the request was taken back"}, "", "the request was taken back"},
		"one":           {record{Requests: map[string]types.NodeDrainRequest{byUpdate: ask("base OS")}}, "UPDATE", "base OS"},
		"without words": {record{Requests: map[string]types.NodeDrainRequest{byDeviceOp: ask("")}}, "DEVICEOP", "a drain was requested"},
		"two":           {record{Requests: map[string]types.NodeDrainRequest{byOperator: ask("disk"), byDeviceOp: ask("reboot")}}, "DEVICEOP,OPERATOR", "reboot; disk"},
	} {
		if by, why := row.rec.because(); by != row.by || why != row.why {
			t.Errorf("%s: %q, %q", name, by, why)
		}
	}
}
