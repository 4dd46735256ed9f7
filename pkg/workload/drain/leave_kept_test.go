package drain

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// keptNode is a leave whose Node is deleted, and kept by its finalizer.
func keptNode(t *testing.T, tell func(*stage)) {
	t.Helper()
	story(t, 1, func(s *stage) {
		kept := &finalized{Cluster: s.kube}
		s.via = kept
		s.kube.SetStorage(longhorn(wholeElsewhere()))
		defer s.run()()
		s.leaves()
		time.Sleep(time.Hour)
		s.gone(false)
		if n := kept.deletions.Load(); n != 1 {
			t.Fatalf("%d deletions", n)
		}
		tell(s)
	})
}

func TestAReplicaThatBecomesTheLastWhileTheNodeIsKeptHoldsTheLeave(t *testing.T) {
	lost := func(s *stage) {
		s.kube.SetStorage(longhorn(lastHere()))
		time.Sleep(time.Minute)
		s.phase(types.PhaseComplete, "pvc-1")
	}
	for name, row := range map[string]struct {
		tell func(*stage)
		left bool
	}{
		"the Node goes":                   {func(s *stage) { lost(s); _ = s.nodes.Unpublish("n1") }, false},
		"both at once":                    {func(s *stage) { s.kube.SetStorage(longhorn(lastHere())); _ = s.nodes.Unpublish("n1") }, false},
		"the API dies":                    {func(s *stage) { lost(s); s.kube.SetFault(kubetest.Refused) }, false},
		"the Node goes, and then the API": {func(s *stage) { lost(s); _ = s.nodes.Unpublish("n1"); s.kube.SetFault(kubetest.Refused) }, false},
		"the volumes cannot be looked at": {func(s *stage) { s.kube.FailVerb("storage", types.ErrRefused); _ = s.nodes.Unpublish("n1") }, false},
		"nor before the API dies": {func(s *stage) {
			s.kube.FailVerb("storage", types.ErrRefused)
			time.Sleep(10 * time.Minute)
			s.kube.SetFault(kubetest.Refused)
		}, false},
		"the API dies, an agent starts again":    {func(s *stage) { lost(s); s.kube.SetFault(kubetest.Refused); time.Sleep(time.Minute); defer s.run()() }, false},
		"with a consent to it":                   {func(s *stage) { lost(s); s.consentsLate(); _ = s.nodes.Unpublish("n1") }, true},
		"it is whole again elsewhere":            {func(s *stage) { lost(s); s.kube.SetStorage(longhorn(wholeElsewhere())); _ = s.nodes.Unpublish("n1") }, true},
		"nothing is lost, and the Node goes":     {func(s *stage) { _ = s.nodes.Unpublish("n1") }, true},
		"nothing is lost, and the API dies":      {func(s *stage) { s.kube.SetFault(kubetest.Refused) }, true},
		"nothing is lost, the Node goes as well": {func(s *stage) { _ = s.nodes.Unpublish("n1"); s.kube.SetFault(kubetest.Refused) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			keptNode(t, func(s *stage) {
				row.tell(s)
				time.Sleep(time.Hour)
				s.gone(row.left)
			})
		})
	}
}

// consentsLate is consents in a leave that began without a configuration.
func (s *stage) consentsLate(change ...func(*types.LeaveConsent)) {
	m, _ := s.member.Get(types.Global)
	m.Config = &types.EdgeNodeClusterConfig{Initialized: true, Valid: true, ClusterID: types.UUIDandVersion{UUID: plant}}
	_ = s.member.Publish(types.Global, m)
	s.consents(change...)
}

// An agent that starts again while the API is dead knows since when, and when the
// volumes were last looked at.
func TestALeaveEndsWithADeadAPIAlthoughTheAgentStartsAgain(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.via = &finalized{Cluster: s.kube}
		s.kube.SetStorage(longhorn(wholeElsewhere()))
		stop := s.run()
		s.leaves()
		time.Sleep(time.Hour)
		s.kube.SetFault(kubetest.Refused)
		time.Sleep(4 * time.Minute)
		stop()
		defer s.run()()
		time.Sleep(2 * time.Minute)
		s.gone(true)
	})
}

// A look from long before the API's silence is none: only an operator who says
// that the list is unknown can end the leave.
func TestALookFromLongBeforeTheSilenceIsForgotten(t *testing.T) {
	keptNode(t, func(s *stage) {
		s.kube.FailVerb("storage", types.ErrRefused)
		time.Sleep(10 * time.Minute)
		s.kube.SetFault(kubetest.Refused)
		time.Sleep(time.Hour)
		s.gone(false)
		if j, _ := s.journal.Get(types.Global); j.Look != nil {
			t.Errorf("the journal still has %+v", j.Look)
		}
		s.consentsLate(func(w *types.LeaveConsent) { w.Volumes, w.Unknown = nil, true })
		time.Sleep(time.Minute)
		s.gone(true)
	})
}
