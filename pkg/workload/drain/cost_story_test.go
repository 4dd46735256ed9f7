package drain

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestPodsThatAreMadeAgainAreNotWrittenDownEachTime(t *testing.T) {
	story(t, 0, func(s *stage) {
		writes := 0
		s.journal.before = func() { writes++ }
		s.remakes(50)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(15 * time.Minute)
		s.is(types.DrainComplete, deviceOp)
		if p, _ := s.progress.Get(types.Global); p.Pods.Total < 200 {
			t.Errorf("%+v", p.Pods)
		}
		if writes > 20 {
			t.Errorf("%d writes of the journal", writes)
		}
	})
}

func TestEvictionsForWhichThereWasNoTimeAreNoneThatFailed(t *testing.T) {
	story(t, 200, func(s *stage) {
		s.kube.SetLatency(9 * time.Second)
		defer s.run()()
		start := time.Now()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(3 * time.Minute)
		for _, e := range s.kube.Events() {
			if e.Reason == "DrainBlocked" {
				t.Errorf("%s: %s", e.Pod.Key(), e.Message)
			}
		}
		time.Sleep(5 * time.Minute)
		s.is(types.DrainComplete, deviceOp)
		t.Log(s.status.when(start, types.NodeDrainStatus{Status: types.DrainComplete, RequestedBy: deviceOp}), len(s.kube.Calls("evict")))
	})
}

func TestVolumesThatAreWaitedForForHoursAreNotListedAllTheTime(t *testing.T) {
	worse := func(s *stage) { s.kube.SetStorage(longhorn(vol("n2", map[string]string{"n1": "RW", "n2": "WO"}))) }
	for name, row := range map[string]struct {
		most int
		wait func(*stage)
	}{
		"before COMPLETE": {130, func(s *stage) { worse(s); s.request(&s.zedagent, deviceOp) }},
		"until the own lock is free": {130, func(s *stage) {
			s.kube.SetStorage(longhorn(vol("n2", map[string]string{"n1": "WO", "n2": "RW"})))
			s.kube.SetLock(types.DrainLock{Holder: "n1", BootID: "boot-0", Volumes: map[string]int{"pvc-1": 2}})
		}},
		"until another's lock is free": {370, func(s *stage) {
			worse(s)
			s.kube.SetLock(types.DrainLock{Holder: "n2", BootID: "boot-0", Volumes: map[string]int{"pvc-1": 2}})
			s.request(&s.zedagent, deviceOp)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 0, func(s *stage) {
				row.wait(s)
				defer s.run()()
				time.Sleep(15 * time.Minute)
				before := len(s.kube.Calls("storage"))
				time.Sleep(time.Hour)
				if n := len(s.kube.Calls("storage")) - before; n < 60 || n > row.most {
					t.Errorf("volumes were listed %d times in an hour", n)
				}
			})
		})
	}
}
