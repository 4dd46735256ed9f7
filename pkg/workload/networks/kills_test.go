package networks

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// life is what an agent that is killed does to attachments.
type life struct {
	*cluster
	*kubetest.Mortal
}

// The effects, as the kill points name them.
const (
	changes = "ensure nad: patch network-attachment-definitions.k8s.cni.cncf.io"
	deletes = "delete nad: delete network-attachment-definitions.k8s.cni.cncf.io"
)

func (l life) EnsureNetworkNAD(ctx context.Context, nad types.NetworkNAD) error {
	return l.Do(changes, func() error { return l.cluster.EnsureNetworkNAD(ctx, nad) })
}

func (l life) DeleteNetworkNAD(ctx context.Context, nad types.NetworkNAD) error {
	return l.Do(deletes, func() error { return l.cluster.DeleteNetworkNAD(ctx, nad) })
}

// The network A has become B under its name, or A is deleted. What was deleted is removed by agents that
// have seen it: that of another node, when it reports, where the one that dies has not done it.
func TestWhereverTheAgentDiesTheAttachmentIsThatOfTheNetwork(t *testing.T) {
	for range seeds.Each(t, 1) {
		for effect, want := range map[string]map[string]uuid.UUID{changes: {"ni-floor": netB}, deletes: {}} {
			for _, after := range []bool{false, true} {
				m := &kubetest.Mortal{At: effect, After: after}
				t.Run(m.Point("networks"), func(t *testing.T) {
					play(t, func(s *stage) { s.killed(m, want) })
				})
			}
		}
	}
}

// killed tells of an agent that dies and starts again.
func (s *stage) killed(m *kubetest.Mortal, want map[string]uuid.UUID) {
	m.Died = make(chan struct{})
	s.cluster.nads["ni-floor"] = netA
	s.kube = life{s.cluster, m}
	if m.At == changes {
		s.network(netB, "floor")
		s.start()
	} else {
		s.network(netA, "floor")
		s.start()
		s.after(time.Minute)
		s.gone(netA)
	}
	select {
	case <-m.Died:
	case <-time.After(time.Hour):
		s.Fatal("it never came there")
	}
	synctest.Wait()
	s.stop()
	seeds.Killed(s, m.Point("networks"))
	s.kube = s.cluster
	s.start()
	s.after(time.Hour)
	if m.At == deletes && !m.After {
		want = map[string]uuid.UUID{"ni-floor": netA}
	}
	if len(s.cluster.nads) != len(want) || s.cluster.nads["ni-floor"] != want["ni-floor"] {
		s.Errorf("the attachments are %v", s.cluster.nads)
	}
}
