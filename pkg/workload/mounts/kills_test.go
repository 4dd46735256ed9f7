package mounts

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// The effects on others, as the kill points name them.
const (
	makesLock  = "take drain lock: create leases"
	takesLock  = "take drain lock: patch leases"
	freesLock  = "free drain lock: delete leases"
	endsK3s    = "end k3s"
	supervisor = "ask supervisor"
)

// life is what an agent that is killed does to the cluster and to k3s.
type life struct {
	*kubetest.Cluster
	*agent
	*kubetest.Mortal
}

func (l life) SetDrainLock(ctx context.Context, lock types.DrainLock) (set types.DrainLock, err error) {
	effect := makesLock
	if lock.Version != "" {
		effect = takesLock
	}
	err = l.Do(effect, func() error { set, err = l.Cluster.SetDrainLock(ctx, lock); return err })
	return set, err
}

func (l life) FreeDrainLock(ctx context.Context, lock types.DrainLock) error {
	return l.Do(freesLock, func() error { return l.Cluster.FreeDrainLock(ctx, lock) })
}

func (l life) Restart(ctx context.Context, found k3sprocess.Process) error {
	effect := endsK3s
	if found.PID == 0 { // and its supervisor is asked
		effect = supervisor
	}
	return l.Do(effect, func() error { return l.agent.Restart(ctx, found) })
}

func TestWhereverTheAgentDiesK3sIsRestartedOnceAndTheLockIsFreed(t *testing.T) {
	for range seeds.Each(t, 1) {
		for _, effect := range []string{makesLock, takesLock, endsK3s, supervisor, freesLock} {
			for _, after := range []bool{false, true} {
				m := &kubetest.Mortal{At: effect, After: after}
				t.Run(m.Point("mounts"), func(t *testing.T) {
					play(t, three, func(s *stage) {
						s.killed(m)
						if lock := s.cluster.Lock(); lock.Holder != "" {
							t.Errorf("the lock is left %+v", lock)
						}
					})
				})
			}
		}
	}
}

func TestWhereverTheAgentDiesK3sIsRestartedOnceUnderTheLockOfAChange(t *testing.T) {
	for _, effect := range []string{endsK3s, supervisor} {
		for _, after := range []bool{false, true} {
			m := &kubetest.Mortal{At: effect, After: after}
			t.Run(m.Point("mounts"), func(t *testing.T) {
				play(t, three, func(s *stage) {
					a := s.agents["n1"]
					lock := a.stuckChange()
					s.killed(m)
					if a.keeps(lock); len(s.cluster.Calls("freelock")) > 0 {
						t.Error("it is the change's to free")
					}
					if m := a.says(); m.Restarts(a.boot, time.Since(a.booted), a.process.Start) {
						t.Errorf("the change cannot end: %+v", m)
					}
				})
			})
		}
	}
}

// killed tells of an agent that dies and starts again.
func (s *stage) killed(m *kubetest.Mortal) {
	a := s.agents["n1"]
	m.Died = make(chan struct{})
	if m.At == takesLock && s.cluster.Lock().Holder == "" {
		s.cluster.SetLock(types.DrainLock{Holder: "n9", BootID: "boot"}) // whose Node is gone
	}
	if m.At == supervisor {
		a.process = k3sprocess.Process{}
	}
	a.kube, a.k3s = life{s.cluster, a, m}, life{s.cluster, a, m}
	s.start("n1")
	select {
	case <-m.Died:
	case <-time.After(time.Hour):
		s.Fatal("it never came there")
	}
	synctest.Wait()
	a.stop()
	seeds.Killed(s, m.Point("mounts"))
	a.kube, a.k3s = s.cluster, a
	s.pass(time.Second)
	s.start("n1")
	s.pass(time.Hour)
	a.is(1, types.RepairWell, "")
}
