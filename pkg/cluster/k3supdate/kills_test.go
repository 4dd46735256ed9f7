package k3supdate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// The effects on k3s, as the kill points name them.
const (
	endsK3s    = "end k3s"
	supervisor = "ask supervisor"
	saves      = "save snapshot of etcd"
)

// life is what an agent that is killed does to k3s.
type life struct {
	*agent
	Disk
	*kubetest.Mortal
}

func (l life) Restart(ctx context.Context, found k3sprocess.Process) error {
	effect := endsK3s
	if found.PID == 0 { // and its supervisor is asked
		effect = supervisor
	}
	return l.unlessDead(ctx, effect, func() error { return l.agent.Restart(ctx, found) })
}

func (l life) Save(ctx context.Context) error {
	return l.unlessDead(ctx, saves, func() error { return l.Disk.Save(ctx) })
}

// unlessDead keeps who is dead from doing anything after it.
func (l life) unlessDead(ctx context.Context, effect string, act func() error) error {
	err := l.Do(effect, act)
	if errors.Is(err, kubetest.ErrKilled) {
		<-ctx.Done()
	}
	return err
}

// dies has the agent die at an effect, and start again.
func (a *agent) dies(m *kubetest.Mortal) {
	m.Died = make(chan struct{})
	a.stop()
	c, l := a.component(), life{a, a.onDisk(), m}
	c.K3s, c.Disk = l, l
	a.run(c)
	go func() {
		select {
		case <-m.Died:
			seeds.Killed(a, m.Point("k3supdate"))
			a.stop()
			a.run(a.component())
		case <-a.Context().Done():
		}
	}()
	synctest.Wait()
}

func TestWhereverTheAgentDiesK3sIsEndedOnceAndASnapshotTakenOnce(t *testing.T) {
	for effect, row := range map[string]struct {
		tell  func(*site)
		order string // in which k3s is ended
	}{endsK3s: {(*site).endsFor, "n1"}, supervisor: {(*site).asksFor, "n1"}, saves: {(*site).savesFor, "n1 n2 n3"}} {
		for _, after := range []bool{false, true} {
			m := &kubetest.Mortal{At: effect, After: after}
			t.Run(m.Point("k3supdate"), func(t *testing.T) {
				for range seeds.Each(t, 1) {
					m := &kubetest.Mortal{At: effect, After: after}
					play(t, "n1 n2 n3", func(s *site) {
						s.agents[0].dies(m)
						row.tell(s)
						select {
						case <-m.Died:
						default:
							s.Error("it never came there")
						}
						if got := strings.Join(s.order, " "); got != row.order || s.most != 1 || s.cluster.Lock().Holder != "" {
							s.Errorf("%s changed, %d at once; the lock is %+v; %+v", got, s.most, s.cluster.Lock(), s.agents[0].is())
						}
						for _, a := range s.agents {
							if j, _ := a.journal.Get(types.Global); j.Step != "" || a.is().Phase != types.LifecycleIdle {
								s.Errorf("%s: %+v: %+v", a.name, j, a.is())
							}
						}
					})
				}
			})
		}
	}
}

// endsFor tells of certificates of n1 that are due: k3s is ended for them.
func (s *site) endsFor() {
	for i, a := range s.agents {
		a.started, a.expires = time.Minute, time.Now().Add(time.Duration(50+300*i)*day)
	}
	s.days(1)
}

// asksFor is endsFor where the supervisor of k3s restarts it. Whether it was asked before the agent
// died cannot be seen, so it is asked again on the next day.
func (s *site) asksFor() {
	for _, a := range s.agents {
		a.supervised = true
	}
	s.endsFor()
	s.days(1)
}

// savesFor tells of a patch that is staged, and of which etcd has no snapshot yet.
func (s *site) savesFor() {
	s.stages()
	s.pass(time.Minute)
	s.wants(patch, false)
	s.pass(time.Hour)
	for _, a := range s.agents {
		saved := 0
		if a.disk.with(func() { saved = a.disk.saved }); saved != 1 {
			s.Errorf("%s took %d snapshots", a.name, saved)
		}
	}
}
