package witness

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// manyNodes are so many that not all of them are witnesses.
const manyNodes = 30

// inALargeCluster plays n1 among so many, which is a witness or not; n3 is lost, and
// answers n1 or not. first is a witness other than n1.
func inALargeCluster(t *testing.T, witness, answers bool, tell func(s *stage, first int)) {
	play(t, func(s *stage) {
		nodes := map[string]types.Node{}
		for i := 1; i <= manyNodes; i++ {
			s.change(i, func(n *types.Node) { n.Agent = &types.AgentStamp{Witnesses: types.WitnessMost} })
			s.answers(node(i).InternalIP, nil)
			if i != 3 {
				nodes[node(i).Name], _ = s.nodes.Get(node(i).Name)
			}
		}
		names, _ := types.WitnessNodes(nodes)
		if slices.Contains(names, "n1") != witness {
			// Servers are the first witnesses.
			for i := 1; i <= manyNodes; i++ {
				s.change(i, func(n *types.Node) { n.ControlPlane = (i == 1) == witness })
			}
		}
		first, _ := strconv.Atoi(names[0][1:])
		if first == 1 {
			first, _ = strconv.Atoi(names[1][1:])
		}
		if !answers {
			s.dies(3)
		}
		s.lose(3)
		tell(s, first)
	})
}

func TestAWitnessOfALargeClusterPublishesAsInASmallOne(t *testing.T) {
	inALargeCluster(t, true, false, func(s *stage, _ int) {
		s.sleep(13 * time.Second)
		if got := s.sees(3); got.Silent != 3 {
			t.Errorf("%+v", got)
		}
	})
}

func TestAWitnessOfALargeClusterPublishesLessOftenAfterAMinute(t *testing.T) {
	inALargeCluster(t, true, false, func(s *stage, _ int) {
		s.sleep(time.Minute + lookTimeout)
		s.written()
		s.sleep(10 * slowly)
		if n := s.written(); n < 9 || n > 11 {
			t.Errorf("%d writes in two minutes", n)
		}
		s.answers(node(3).InternalIP, nil)
		s.sleep(slowly + lookTimeout)
		if got := s.sees(3); got.Alive == "" {
			t.Errorf("that it answers is not published: %+v", got)
		}
		s.dies(3)
		s.sleep(slowly + types.WitnessSilent*every)
		if got := s.sees(3); got.Silent < types.WitnessSilent {
			t.Errorf("that it is silent again is published late: %+v", got)
		}
	})
}

func TestANodeThatIsNoWitnessPublishesNoSilence(t *testing.T) {
	inALargeCluster(t, false, false, func(s *stage, _ int) {
		s.sleep(time.Hour)
		if n := s.written(); n != 0 {
			t.Errorf("%d writes", n)
		}
		s.dials()
		s.sleep(slowly)
		if len(s.dials()) == 0 {
			t.Error("it no longer looks")
		}
		s.recovers(3)
		s.lose(3)
		s.sleep(10 * time.Second)
		if got := s.sees(3); got.Alive == "" {
			t.Errorf("that it answers is not published: %+v", got)
		}
	})
}

func TestANodeThatIsNoWitnessPublishesAnAnswerThatNobodyElseHas(t *testing.T) {
	inALargeCluster(t, false, true, func(s *stage, first int) {
		s.sleep(8 * time.Second) // before three looks of the witnesses can have ended
		if got := s.sees(3); got.Alive == "" {
			t.Errorf("%+v", got)
		}
		round := s.told().Round
		s.sleep(types.WitnessFresh - 4*time.Second)
		if s.told().Round == round {
			t.Error("its word turns stale")
		}
		s.change(first, func(n *types.Node) {
			n.Witness = &types.Witness{Round: 1, Sightings: []types.Sighting{{Node: "n3", UID: "uid-n3", Alive: "a:1"}}}
		})
		s.sleep(slowly + time.Second)
		if w := s.told(); w != nil {
			t.Errorf("it still publishes what a witness does: %+v", w)
		}
	})
}

func TestANodeThatIsNoWitnessPublishesNoAnswerThatAWitnessHas(t *testing.T) {
	inALargeCluster(t, false, true, func(s *stage, first int) {
		for round := int64(1); round < 100; round++ {
			s.change(first, func(n *types.Node) {
				n.Witness = &types.Witness{Round: round, Sightings: []types.Sighting{{Node: "n3", UID: "uid-n3", Alive: "a:1"}}}
			})
			s.sleep(every)
		}
		if n := s.written(); n != 0 {
			t.Errorf("%d writes", n)
		}
		s.sleep(types.WitnessFresh + slowly) // and now that it hangs
		if got := s.sees(3); got.Alive == "" {
			t.Errorf("%+v", got)
		}
	})
}

// TestWhileANodeTakesAnotherOnesAnswerOverTheDeviceIsNotGone has n3 answer one
// witness, which hangs then, also with its last word so late that nobody knows how old it is, and n1,
// which is none. The other witnesses say that it is silent all the time.
func TestWhileANodeTakesAnotherOnesAnswerOverTheDeviceIsNotGone(t *testing.T) {
	for name, pause := range map[string]int{"at once": 0, "after a late word": 60} { // half seconds before that word
		t.Run(name, func(t *testing.T) {
			inALargeCluster(t, false, true, func(s *stage, first int) {
				witnesses, _ := types.WitnessNodes(s.nodes.All())
				var heard types.Witnesses
				began := time.Now()
				for round := 0; round < 400; round++ {
					for _, name := range witnesses {
						i, _ := strconv.Atoi(name[1:])
						w := types.Witness{Round: int64(round / 10), Sightings: []types.Sighting{{Node: "n3", UID: "uid-n3", Silent: 9}}}
						switch {
						case i != first:
						case round <= 100-pause || round == 100:
							w.Sightings[0] = types.Sighting{Node: "n3", UID: "uid-n3", Alive: "a:1"}
						default:
							continue
						}
						if round%10 == 0 {
							s.change(i, func(n *types.Node) { n.Witness = &w })
						}
					}
					s.sleep(500 * time.Millisecond)
					nodes := maps.Clone(s.nodes.All())
					n1 := nodes["n1"]
					n1.Witness = s.told()
					nodes["n1"] = n1
					heard = heard.Hear(nodes, true, time.Since(began))
					if gone, why := types.Gone(nodes["n3"], nodes, heard.Seen(time.Now(), time.Since(began)), time.Now()); gone {
						s.Fatalf("after %v: %s", time.Since(began), why)
					}
				}
				if got := s.sees(3); got.Alive == "" {
					s.Errorf("that it answers n1 is not published: %+v", got)
				}
			})
		})
	}
}

func TestBesideAnAgentOfAFormerReleaseEveryNodePublishes(t *testing.T) {
	inALargeCluster(t, false, false, func(s *stage, _ int) {
		s.sleep(time.Minute)
		s.change(manyNodes, func(n *types.Node) { n.Agent = &types.AgentStamp{Version: "1"} })
		s.sleep(slowly + 3*time.Second)
		if got := s.sees(3); got.Silent < types.WitnessSilent {
			t.Errorf("%+v", got)
		}
		s.change(manyNodes, func(n *types.Node) { n.StampStale = true })
		s.sleep(slowly + 3*time.Second)
		if w := s.told(); w != nil {
			t.Errorf("it still publishes: %+v", w)
		}
	})
}
