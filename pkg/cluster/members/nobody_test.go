package members

import (
	"context"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// listless is an API server whose list of nodes has nobody in it once empty says so.
type listless struct {
	*kubetest.Cluster
	empty func() bool
}

func (l listless) FreshNodes(ctx context.Context) ([]types.Node, error) {
	if l.empty() {
		return nil, nil
	}
	return l.Cluster.FreshNodes(ctx)
}

func TestAListWithNobodyInItMakesNobodyTheTieBreaker(t *testing.T) {
	play(t, func(s *stage) {
		s.tie("n3")
		s.start("n1", func(a *agent) {
			a.kube = listless{s.cluster, func() bool { return true }}
			a.configure(device("n3"), "n1", "n2", "n3")
		})
		s.after(time.Minute)
		if n, _ := s.nodes.Get("n3"); n.Unschedulable {
			s.Error("nobody disagrees in a list with nobody in it")
		}
	})
}

func TestAListWithNobodyInItProvesNoRemoval(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.FailVerb("deletenode", types.ErrNoAnswer)
		s.start("n1", func(a *agent) {
			a.kube = listless{s.cluster, func() bool { return len(s.cluster.Calls("deletenode")) > 0 }}
		})
		s.after(2 * time.Minute)
		if len(s.cluster.Calls("deletenode")) == 0 || !s.there("n3") {
			s.Fatal("it did not come to that")
		}
		if n := len(s.cluster.Events()); n != 0 {
			s.Errorf("%d events tell of a removal", n)
		}
	})
}
