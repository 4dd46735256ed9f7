package drain

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/workload/drain/outlook"
	"github.com/zedkube/zedkube/types"
)

// remaking is a cluster in which an evicted pod with an owner is made again on
// the node, a moment after its eviction.
type remaking struct {
	Kube
	s    *stage
	made atomic.Int64
	off  atomic.Bool
}

func (r *remaking) Evict(ctx context.Context, pod types.Pod) error {
	err := r.Kube.Evict(ctx, pod)
	if err == nil && pod.Owner.Name != "" {
		time.AfterFunc(50*time.Millisecond, func() { r.again(pod) })
	}
	return err
}

func (r *remaking) again(pod types.Pod) {
	if r.off.Load() {
		return
	}
	n := r.made.Add(1)
	pod.Name, pod.UID, pod.Deleted = fmt.Sprintf("%s-%d", pod.Owner.Name, n), fmt.Sprint("again-", n), time.Time{}
	_ = r.s.pods.Publish(pod.Key(), pod)
}

// remakes adds pods of one owner, and makes them again whenever they are evicted.
func (s *stage) remakes(pods int) *remaking {
	r := &remaking{Kube: s.kube, s: s}
	s.via = r
	for range pods {
		r.again(types.Pod{Namespace: "shop", NodeName: "n1", Phase: types.PodRunning, Owner: types.Owner{Kind: "ReplicaSet", Name: "till", UID: "till"}})
	}
	return r
}

// blocker is what the record says of the pods in the way, those with a cause first.
func (s *stage) blocker(cause string) types.DrainBlocker {
	p, _ := s.progress.Get(types.Global)
	for _, b := range p.Blockers {
		if b.Cause == cause {
			return b
		}
	}
	return types.DrainBlocker{}
}

func TestPodsThatComeBackAreNamedEvictedLessAndLessAndThenLeftOnTheNode(t *testing.T) {
	for _, replicas := range []int{1, 7} {
		story(t, 5, func(s *stage) {
			s.remakes(replicas)
			defer s.run()()
			start := time.Now()
			s.request(&s.zedagent, deviceOp)
			time.Sleep(time.Minute)
			b := s.blocker("returns")
			for _, part := range []string{"ReplicaSet till", "times", "down with the device"} {
				if !strings.Contains(b.Why, part) {
					t.Errorf("after a minute %+v lacks %q", b, part)
				}
			}
			if b.Outlook != types.OutlookSlow || !strings.Contains(b.Remedy, "scale ReplicaSet till to 0") {
				t.Errorf("%+v", b)
			}
			time.Sleep(9 * time.Minute)
			s.is(types.DrainComplete, deviceOp)
			p, _ := s.progress.Get(types.Global)
			if !strings.Contains(p.Reason, "shop/till-") || !strings.Contains(p.Reason, "down with the device") {
				t.Errorf("the reason is %q", p.Reason)
			}
			took := s.status.when(start, types.NodeDrainStatus{Status: types.DrainComplete, RequestedBy: deviceOp})
			if took < 2*time.Minute || took > 8*time.Minute {
				t.Errorf("COMPLETE after %s", took)
			}
			calls := s.kube.Calls("evict")
			if n, most := len(calls), 5+replicas*(outlook.MaxReturns+1); n > most {
				t.Errorf("%d evictions, want %d at most", n, most)
			}
			if gap := calls[len(calls)-1].At.Sub(calls[len(calls)-1-replicas].At); gap < 50*time.Second {
				t.Errorf("the last evictions are %s apart", gap)
			}
			if !s.logged("DrainLeavesPods") {
				t.Error("that pods are left is in no log")
			}
		})
	}
}

// Programs that make pods without an owner, and those whose pods have another
// owner each time: nothing but the namespace stays the same.
func TestPodsThatComeBackWithoutALastingNameAreLeftOnTheNodeToo(t *testing.T) {
	for name, owner := range map[string]func(n int64) types.Owner{
		"no owner": func(int64) types.Owner { return types.Owner{} },
		"a machine of a set": func(n int64) types.Owner {
			return types.Owner{Kind: "VirtualMachineInstance", Name: fmt.Sprint("web-", n), UID: fmt.Sprint("vmi-", n)}
		},
		"now one, now another": func(n int64) types.Owner {
			return []types.Owner{{}, {Kind: "Job", Name: fmt.Sprint("sync-", n), UID: fmt.Sprint("job-", n)}}[n%2]
		},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				n := &renaming{Kube: s.kube, s: s, owner: owner}
				s.via = n
				n.make()
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(time.Minute)
				if b := s.blocker("returns"); !strings.Contains(b.Why, "again on this cordoned node") || b.Remedy == "" {
					t.Errorf("after a minute %+v", b)
				}
				time.Sleep(9 * time.Minute)
				s.is(types.DrainComplete, deviceOp)
				if n := len(s.kube.Calls("evict")); n > outlook.MaxReturns+2 {
					t.Errorf("%d evictions", n)
				}
				if !s.logged("DrainLeavesPods") {
					t.Error("that pods are left is in no log")
				}
			})
		})
	}
}

// renaming is a cluster in which an evicted pod of namespace shop is made again
// on the node under another name.
type renaming struct {
	Kube
	s     *stage
	made  atomic.Int64
	owner func(n int64) types.Owner
}

func (r *renaming) Evict(ctx context.Context, pod types.Pod) error {
	err := r.Kube.Evict(ctx, pod)
	if err == nil && pod.Namespace == "shop" {
		time.AfterFunc(50*time.Millisecond, r.make)
	}
	return err
}

func (r *renaming) make() {
	n := r.made.Add(1)
	name := fmt.Sprint("x-", n)
	_ = r.s.pods.Publish("shop/"+name, types.Pod{Namespace: "shop", Name: name, UID: name, NodeName: "n1", Phase: types.PodRunning, Owner: r.owner(n)})
}

func TestPodsThatComeBackHoldTheDrainNoLongerOnceTheirMakerStops(t *testing.T) {
	story(t, 2, func(s *stage) {
		r := s.remakes(2)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(20 * time.Second)
		s.is(types.DrainRetrying, deviceOp)
		r.off.Store(true)
		time.Sleep(time.Minute)
		s.is(types.DrainComplete, deviceOp)
		if p, _ := s.progress.Get(types.Global); strings.Contains(p.Reason, "came back") {
			t.Errorf("the reason is %q", p.Reason)
		}
	})
}

func TestWhatElseIsLeftStillHoldsTheDrain(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		s.remakes(1)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(2 * time.Hour)
		s.is(types.DrainRetrying, deviceOp)
		if b := s.blocker("returns"); !strings.Contains(b.Why, "no longer evicted") {
			t.Errorf("%+v", b)
		}
		evictions := 0
		for _, call := range s.kube.Calls("evict") {
			if strings.HasPrefix(call.Object, "shop/") {
				evictions++
			}
		}
		if evictions > outlook.MaxReturns {
			t.Errorf("it was evicted %d times", evictions)
		}
		s.kube.Block(appZero, false)
		time.Sleep(20 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestAVolumeThatOnlyPodsUseThatStayHoldsNoDrainForAReboot(t *testing.T) {
	both := vol("n1", map[string]string{"n1": "RW", "n2": "RW"})
	both.Name = "nfs-1"
	last := vol("n1", map[string]string{"n1": "RW", "n2": "WO"})
	last.Name = "nfs-1"
	attached := []types.Attachment{{Name: "csi-1", Volume: "nfs-1"}}
	till := func(p types.Pod) bool { return p.Owner.Name == "till" }
	for name, row := range map[string]struct {
		storage types.Storage
		uses    func(types.Pod) bool
		ask     func(*stage)
		ends    bool
		why     string
	}{
		"of another driver":                {types.Storage{Attachments: attached}, till, nil, true, ""},
		"with a replica elsewhere":         {types.Storage{Longhorn: true, Attachments: attached, Volumes: []types.Volume{both}}, till, nil, true, ""},
		"its last healthy replica is here": {types.Storage{Longhorn: true, Attachments: attached, Volumes: []types.Volume{last}}, till, nil, false, "its last healthy replica is on this node"},
		"a DaemonSet uses it as well":      {types.Storage{Attachments: attached}, func(p types.Pod) bool { return till(p) || p.Owner.Kind == "DaemonSet" }, nil, false, "in use"},
		"nobody that can be seen uses it":  {types.Storage{Attachments: attached}, func(types.Pod) bool { return false }, nil, false, "in use"},
		"in a leave, of another driver":    {types.Storage{Attachments: attached}, till, (*stage).leaves, false, "in use"},
		"in a leave, with another replica": {types.Storage{Longhorn: true, Attachments: attached, Volumes: []types.Volume{both}}, till, (*stage).leaves, false, "in use"},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.SetStorage(row.storage)
				s.kube.SetVolumeUsers("nfs-1", row.uses)
				s.remakes(1)
				defer s.run()()
				if row.ask != nil {
					row.ask(s)
				} else {
					s.request(&s.zedagent, deviceOp)
				}
				time.Sleep(20 * time.Minute)
				p, _ := s.progress.Get(types.Global)
				switch {
				case row.ends != (p.Phase == types.PhaseComplete):
					t.Errorf("it is %s: %s; %+v", p.Phase, p.Reason, p.Volumes)
				case !row.ends && (len(p.Volumes) != 1 || !strings.Contains(p.Volumes[0].Why, row.why)):
					t.Errorf("%+v", p.Volumes)
				}
				s.gone(false)
			})
		})
	}
}

func TestTheBudgetOfAPodThatNeverCameBackIsHonouredHoweverOftenItsLikeDoes(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.remakes(2)
		s.kube.Block("shop/till-1", true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(2 * time.Hour)
		s.is(types.DrainRetrying, deviceOp)
		s.phase(types.PhaseEmptying, "shop/till-1")
		s.kube.Block("shop/till-1", false)
		time.Sleep(30 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestALargeSetThatComesBackIsEvictedInWaves(t *testing.T) {
	story(t, 0, func(s *stage) {
		s.remakes(100)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(20 * time.Minute)
		s.is(types.DrainComplete, deviceOp)
		if n := len(s.kube.Calls("evict")); n > 100*(outlook.MaxReturns+1) {
			t.Errorf("%d evictions", n)
		}
	})
}
