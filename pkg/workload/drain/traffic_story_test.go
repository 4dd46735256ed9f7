package drain

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// quarter is how many minutes are counted.
const quarter = 15

// waiting are drains that wait for hours, with what each may cost in a minute.
var waiting = map[string]struct {
	pods    int
	hold    func(*stage)
	calls   int // to Kubernetes
	records int
}{
	"for the lock": {1, func(s *stage) { s.held("n2") }, 13, 0},
	"for quorum":   {1, func(s *stage) { s.node("n3", types.ConditionFalse) }, 25, 0},
	"for a budget": {1, func(s *stage) { s.kube.Block(appZero, true) }, 22, 0},
	"for thirty budgets": {30, func(s *stage) {
		for i := range 30 {
			s.kube.Block(fmt.Sprint("eve-kube-app/app-", i), true)
		}
	}, 370, 0},
	"for a rebuild": {1, func(s *stage) {
		s.kube.SetStorage(longhorn(vol("n2", map[string]string{"n1": "RW", "n2": "WO"})))
	}, 28, 7},
	"for a finalizer": {1, func(s *stage) { s.kube.Grace = 24 * time.Hour }, 12, 6},
}

func TestADrainThatWaitsForHoursCostsLittle(t *testing.T) {
	t.Parallel()
	for name, row := range waiting {
		t.Run(name, func(t *testing.T) {
			story(t, row.pods, func(s *stage) {
				row.hold(s)
				var records atomic.Int64
				s.progress.before = func(types.NodeDrainProgress) { records.Add(1) }
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(10 * time.Minute)
				calls, lines := len(s.kube.Calls("")), len(s.log.AllEntries())
				records.Store(0)
				time.Sleep(quarter * time.Minute)
				calls, lines = len(s.kube.Calls(""))-calls, len(s.log.AllEntries())-lines
				t.Logf("a minute: %.1f calls, %.2f records; in all: %d log lines, %d Events", float64(calls)/quarter, float64(records.Load())/quarter, lines, len(s.kube.Events()))
				if calls > quarter*row.calls || int(records.Load()) > quarter*row.records+5 || lines > 2 {
					t.Errorf("%d calls, %d records and %d log lines in fifteen minutes", calls, records.Load(), lines)
				}
				if n := len(s.kube.Events()); n > 3+row.pods {
					t.Errorf("%d Events", n)
				}
				if n := len(s.kube.Calls("conditions")); n > 3 { // one for each phase, and one with its lasting reason
					t.Errorf("the Node's conditions were written %d times", n)
				}
			})
		})
	}
}

func TestFiveThousandPodsAreExplainedInABoundedRecord(t *testing.T) {
	const pods = 5000
	story(t, pods, func(s *stage) {
		for i := range pods {
			key := fmt.Sprint("eve-kube-app/app-", i)
			s.kube.Block(key, true)
			s.kube.SetSituation(key, types.PodSituation{
				Budgets: []types.PodBudget{{Name: "eve-kube-app/" + strings.Repeat("budget", 8), Healthy: 1, Desired: 1, Expects: 1}},
				Lacks:   "no other node would take it: " + strings.Repeat("n2 has too little memory; ", 4),
			})
		}
		var longest, records atomic.Int64
		s.progress.before = func(p types.NodeDrainProgress) {
			raw, _ := json.Marshal(p)
			longest.Store(max(longest.Load(), int64(len(raw))))
			records.Add(1)
		}
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(4 * time.Second)
		p := s.phase(types.PhaseEmptying, "")
		if p.Pods.Total != pods || p.Pods.Waiting != pods || len(p.Blockers) != shown || p.BlockersOmitted != pods-shown {
			t.Errorf("%+v, %d blockers, %d omitted", p.Pods, len(p.Blockers), p.BlockersOmitted)
		}
		t.Logf("%d records of at most %d bytes", records.Load(), longest.Load())
		if longest.Load() > 60_000 {
			t.Errorf("a record of %d bytes", longest.Load())
		}
		if n := len(s.kube.Events()); n > 2+shown {
			t.Errorf("%d Events", n)
		}
	})
}

func TestAStepWithFiveThousandPodsIsFast(t *testing.T) {
	const pods = 5000
	var c *Component
	story(t, pods, func(s *stage) {
		for i := range pods {
			s.kube.Block(fmt.Sprint("eve-kube-app/app-", i), true)
		}
		s.request(&s.zedagent, deviceOp)
		c = s.component()
		stop := s.start(c)
		time.Sleep(4 * time.Second)
		stop()
	})
	now := c.now()
	c.Uptime = func() time.Duration { return now }
	const steps = 20
	start := time.Now() // of the real clock
	for range steps {
		f := c.update(c.look())
		_ = c.publishProgress(f, decide(f))
	}
	each := time.Since(start) / steps
	t.Logf("a step takes %s", each)
	if each > time.Second/2 {
		t.Errorf("a step takes %s", each)
	}
}

func TestTheDrainOfManyPodsIsNotPublishedForEach(t *testing.T) {
	story(t, 500, func(s *stage) {
		var records atomic.Int64
		s.progress.before = func(types.NodeDrainProgress) { records.Add(1) }
		s.kube.SetLatency(100 * time.Millisecond)
		defer s.run()()
		start := time.Now()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		s.is(types.DrainComplete, deviceOp)
		took := s.status.when(start, types.NodeDrainStatus{Status: types.DrainComplete, RequestedBy: deviceOp})
		t.Logf("%d records in %s", records.Load(), took)
		if int(records.Load()) > 20+int(took/progressEvery) {
			t.Errorf("%d records in %s", records.Load(), took)
		}
		if n := len(s.kube.Calls("evict")); n != 500 {
			t.Errorf("%d evictions of 500 pods", n)
		}
	})
}
