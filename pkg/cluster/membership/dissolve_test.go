package membership

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// withdraws is another node's agent whose own configuration is not valid any
// more either.
func (s *stage) withdraws(node string) {
	s.cluster.ChangeNode(node, func(n *types.Node) {
		n.Agent, n.StampedAt = &types.AgentStamp{Version: "1", Given: time.Now().UTC()}, time.Now()
	})
	synctest.Wait()
}

func TestAFieldThatParsesOnNoNodeDissolvesNoCluster(t *testing.T) {
	play(t, func(s *stage) {
		s.told("n2", device, second, third)
		s.told("n3", device, second, third)
		s.invalidate()
		s.sleep(10 * time.Second)
		s.withdraws("n2")
		s.sleep(time.Minute)
		s.withdraws("n3")
		s.sleep(7 * 24 * time.Hour)
		s.is(types.MembershipDoubtful)
		s.setConfig(config())
		s.is(types.MembershipMember)
	})
}

func TestAFieldThatParsedOnNoNodeBeforeOursWasWithdrawnDissolvesNothingEither(t *testing.T) {
	play(t, func(s *stage) {
		s.withdraws("n2") // their zedagent was faster
		s.withdraws("n3")
		s.invalidate()
		s.sleep(7 * 24 * time.Hour)
		s.is(types.MembershipDoubtful)
		s.ask() // an operator knows what the controller was told
		s.is(types.MembershipLeaving)
	})
}

func TestOnePeerThatIsInDoubtTooHoldsTheHour(t *testing.T) {
	play(t, func(s *stage) {
		s.invalidate()
		s.withdraws("n2")
		s.sleep(24 * time.Hour)
		s.is(types.MembershipDoubtful)
		s.cluster.ChangeNode("n2", func(n *types.Node) { n.Agent.Leaving = true }) // its own leave is decided
		s.sleep(2 * time.Hour)
		s.is(types.MembershipDoubtful)
		s.told("n2", second, third) // and now it was told otherwise
		s.is(types.MembershipLeaving)
	})
}

func TestAStandingListThatNamesUsHoldsTheHour(t *testing.T) {
	play(t, func(s *stage) {
		s.told("n2", device, second) // and then its way to the controller breaks
		s.invalidate()
		s.sleep(24 * time.Hour)
		s.is(types.MembershipDoubtful)
		s.told("n2", second, third)
		s.is(types.MembershipLeaving)
	})
}

func TestAStampThatNeverHadAListSaysNothingOfAnError(t *testing.T) {
	for name, stamp := range map[string]types.AgentStamp{
		"its agent has just started":           {Version: "1"},
		"its controller names no masters":      {Version: "1", Cluster: config().ClusterID.UUID, Given: now},
		"another cluster's, without masters":   {Version: "1", Cluster: uuid.MustParse("6ba7b811-9dad-41d1-80b4-00c04fd430c8"), Given: now},
		"another cluster's, without this node": {Version: "1", Cluster: uuid.MustParse("6ba7b811-9dad-41d1-80b4-00c04fd430c8"), Masters: []uuid.UUID{second}, Given: now},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.cluster.ChangeNode("n2", func(n *types.Node) { n.Agent = &stamp })
				s.invalidate()
				s.sleep(time.Hour - time.Second)
				s.is(types.MembershipDoubtful)
				s.sleep(time.Second)
				s.is(types.MembershipLeaving)
			})
		})
	}
}

func TestWhatAStampSaysThatHasOutlivedItsAgentHoldsNothing(t *testing.T) {
	stale := func(n *types.Node) { n.StampStale = true }
	for name, says := range map[string]func(*stage){
		"that this device is a master":           func(s *stage) { s.told("n2", device, second) },
		"that its own configuration was invalid": func(s *stage) { s.withdraws("n2") },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				says(s)
				s.invalidate()
				s.sleep(30 * time.Minute)
				s.cluster.ChangeNode("n2", stale)
				s.sleep(30*time.Minute - time.Second)
				s.is(types.MembershipDoubtful)
				s.sleep(time.Second)
				s.is(types.MembershipLeaving)
			})
		})
	}
}

func TestAListThatWasStampedSinceSaysNothingOnceItsStampIsStale(t *testing.T) {
	for name, masters := range map[string][]uuid.UUID{"with this device": {device, second}, "without it": {second, third}} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.invalidate()
				s.cluster.ChangeNode("n2", func(n *types.Node) { n.StampStale = true })
				s.told("n2", masters...)
				s.sleep(time.Hour - time.Second)
				s.is(types.MembershipDoubtful)
				s.sleep(time.Second)
				s.is(types.MembershipLeaving)
			})
		})
	}
}
