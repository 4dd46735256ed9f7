package peers

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

func TestWhatTheClusterTellsIsKeptWhileItCanBeAsked(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.ChangeNode("n2", func(n *types.Node) {
			n.ExternalIP = "192.0.2.2"
			n.Witness = &types.Witness{Round: 9, Sightings: []types.Sighting{{Node: "n3", UID: "n3", Silent: 3}, {Node: "n1", UID: "n1", Silent: 1}}}
		})
		s.sleep(time.Minute)
		heard := time.Now().Add(-time.Minute).UTC().Round(0)
		s.die()
		_ = s.nodes.Unpublish("n2") // as after a restart of the agent
		s.sleep(24 * time.Hour)
		got, _ := s.peers.Get(types.Global)
		got.Seen, got.VolumesAt = time.Time{}, time.Time{}
		want := types.ClusterPeers{
			Cluster: plant, Volumes: []types.LeaveVolume{{UID: "u1", Name: "pvc-1"}},
			Peers: []types.ClusterPeer{{Name: "n2", Addresses: []string{"10.0.0.2", "192.0.2.2"}}, {Name: "n3", Addresses: []string{"10.0.0.3"}}},
			Words: []types.PeerWord{{By: "n2", Of: "n3", At: heard}},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

func TestTheVolumesAreAskedForOnceAnHour(t *testing.T) {
	play(t, func(s *stage) {
		s.sleep(24 * time.Hour)
		if n := len(s.cluster.Calls("storage")); n < 23 || n > 26 {
			t.Errorf("%d times in a day", n)
		}
		s.cluster.FailVerb("storage", types.ErrRefused)
		s.sleep(24 * time.Hour)
		if n := len(s.cluster.Calls("storage")); n > 26+145 {
			t.Errorf("%d times, a day of which it failed", n)
		}
		if k, _ := s.peers.Get(types.Global); len(k.Volumes) != 1 {
			t.Errorf("a list that fails took the last one away: %+v", k)
		}
	})
}

func TestTheListOfVolumesIsAsOldAsItsQuestion(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.SetLatency(30 * time.Second)
		s.sleep(2 * time.Hour)
		asked := s.cluster.Calls("storage")
		if k, _ := s.peers.Get(types.Global); !k.VolumesAt.Equal(asked[len(asked)-1].At) {
			t.Errorf("it is of %s, and was asked for at %s", k.VolumesAt, asked[len(asked)-1].At)
		}
	})
}

func TestTenMinutesOfSilenceAreAProof(t *testing.T) {
	play(t, func(s *stage) {
		s.die()
		s.ask()
		s.is(types.WithoutLooking, "")
		s.sleep(10 * time.Minute)
		s.is(types.WithoutLooking, "no other node answers")
		s.sleep(time.Minute)
		s.is(types.WithoutProved, "10m0s")
	})
}

func TestAProofThatIsNotUsedIsMadeAgain(t *testing.T) {
	for name, row := range map[string]struct {
		meanwhile func(*stage) // right after the proof
		after     time.Duration
		want      types.WithoutClusterState
		why       string
	}{
		"not while it is good":         {nil, types.ProofFor - 1, types.WithoutProved, "10m0s"},
		"once it is not":               {nil, types.ProofFor, types.WithoutLooking, "was not used within 1m0s"},
		"by the whole ten minutes":     {nil, types.ProofFor + 9*time.Minute, types.WithoutLooking, "no other node answers"},
		"where nothing answers":        {nil, types.ProofFor + 10*time.Minute + 2*lookEvery, types.WithoutProved, "10m0s"},
		"where the API server answers": {func(s *stage) { s.cluster.SetFault(kubetest.None) }, types.ProofFor, types.WithoutRefused, "the API server answers"},
		"where another node answers":   {func(s *stage) { s.network.set("10.0.0.3:10250", nil) }, types.ProofFor + 2*lookEvery, types.WithoutRefused, "node n3 answers"},
		"by an agent that was away": {func(s *stage) {
			s.stop()
			s.sleep(types.ProofFor)
			s.start()
		}, types.ProofFor, types.WithoutLooking, "was not used"},
		"if it is of a former boot": {func(s *stage) {
			s.stop()
			s.booted = time.Now().Add(-time.Minute)
			s.start()
		}, 0, types.WithoutRefused, "for this boot"},
		"but not one that was used": {func(s *stage) {
			m, _ := s.membership.Get(types.Global)
			m.State, m.Without = types.MembershipLeaving, &types.WithoutDecision{Cluster: plant}
			_ = s.membership.Publish(types.Global, m)
		}, time.Hour, types.WithoutProved, "10m0s"},
		"nor where the node has left": {func(s *stage) {
			_ = s.membership.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeft})
		}, time.Hour, types.WithoutProved, "10m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.die()
				s.ask()
				s.sleep(11 * time.Minute)
				s.is(types.WithoutProved, "10m0s")
				w, _ := s.without.Get(types.Global)
				proved := time.Now().Add(w.Proved - s.uptime())
				if row.meanwhile != nil {
					row.meanwhile(s)
				}
				s.sleep(time.Until(proved.Add(row.after)))
				s.is(row.want, row.why)
			})
		})
	}
}

func TestAnyAnswerEndsTheRequest(t *testing.T) {
	for _, port := range []string{"12346", "10250", "6443", "2380"} {
		for name, err := range map[string]error{"open": nil, "refused": refused} {
			t.Run(port+" "+name, func(t *testing.T) {
				play(t, func(s *stage) {
					s.die()
					s.ask()
					s.sleep(9 * time.Minute)
					s.network.set("10.0.0.3:"+port, err)
					s.sleep(30 * time.Second)
					s.is(types.WithoutRefused, "node n3 answers at 10.0.0.3:"+port)
					s.network.set("10.0.0.3:"+port, syscall.EHOSTUNREACH)
					s.sleep(time.Hour)
					s.stop()
					s.start() // a restart forgets no answer
					s.sleep(time.Hour)
					s.is(types.WithoutRefused, "node n3 answers")
					s.ask()
					s.sleep(11 * time.Minute)
					s.is(types.WithoutProved, "")
				})
			})
		}
	}
}

func TestNoProofWithoutAWorkingLinkOfOnesOwn(t *testing.T) {
	for name, row := range map[string]struct {
		broken func(*stage)
		again  func(*stage)
		why    string
	}{
		"no cable": {
			func(s *stage) { s.file("sys/class/net/eth1/carrier", "0\n") },
			func(s *stage) { s.file("sys/class/net/eth1/carrier", "1\n") }, "eth1 has no link",
		},
		"an interface that is not known": {
			func(s *stage) { _ = s.status.Publish(types.Global, types.EdgeNodeClusterStatus{}) },
			func(s *stage) {
				_ = s.status.Publish(types.Global, types.EdgeNodeClusterStatus{ClusterInterface: "eth1"})
			}, "cluster interface is not known",
		},
		"neither controller nor gateway": {
			func(s *stage) { s.reached(types.ConfigGetFail) },
			func(s *stage) {
				s.file("proc/net/route", "Iface\tDestination\tGateway\neth0\t00000000\t010200C0\t0003\n")
				s.network.set("192.0.2.1:53", refused)
			}, "neither a gateway nor the controller answers",
		},
		"a gateway that answers to ARP alone": {
			func(s *stage) { s.reached(types.ConfigGetFail) },
			func(s *stage) {
				s.file("proc/net/route", "Iface\tDestination\tGateway\neth0\t00000000\t010200C0\t0003\n")
				s.file("proc/net/arp", "IP address HW type Flags HW address Mask Device\n192.0.2.1 0x1 0x2 52:54:00:12:35:02 * eth0\n")
			}, "neither a gateway nor the controller answers",
		},
		"no route": {
			func(s *stage) { s.network.set("10.0.0.2:6443", syscall.ENETUNREACH) },
			func(s *stage) { s.network.set("10.0.0.2:6443", syscall.EHOSTUNREACH) }, "node n2 could not be tried",
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.die()
				s.ask()
				s.sleep(9 * time.Minute)
				row.broken(s)
				s.sleep(time.Hour)
				s.is(types.WithoutLooking, row.why)
				row.again(s)
				s.sleep(9 * time.Minute) // the count begins again
				s.is(types.WithoutLooking, "no other node answers")
				s.sleep(2 * time.Minute)
				s.is(types.WithoutProved, "")
			})
		})
	}
}

func TestARequestIsRefused(t *testing.T) {
	for name, row := range map[string]struct {
		before func(*stage)
		ask    func(*types.ClusterLeaveRequest)
		why    string
	}{
		"while the API server answers":     {func(s *stage) { s.cluster.SetFault(kubetest.None) }, nil, "the API server answers"},
		"for a node that is not named":     {nil, func(r *types.ClusterLeaveRequest) { r.WithoutCluster.Dead = []string{"n2"} }, "these are not: n3"},
		"for a node that nobody knows":     {nil, func(r *types.ClusterLeaveRequest) { r.WithoutCluster.Dead = []string{"n2", "n3", "n4"} }, "no other node named n4"},
		"without a consent":                {nil, func(r *types.ClusterLeaveRequest) { r.Consent = nil }, "there is no consent"},
		"with one of another boot":         {nil, func(r *types.ClusterLeaveRequest) { r.Consent.BootID = "boot-0" }, "there is no consent"},
		"with one to other volumes":        {nil, func(r *types.ClusterLeaveRequest) { r.Consent.Volumes[0].UID = "u2" }, "does not name volume pvc-1"},
		"with one to what was not known":   {nil, func(r *types.ClusterLeaveRequest) { r.Consent.Volumes = nil }, "does not name volume pvc-1"},
		"with one to the last list alone":  {nil, func(r *types.ClusterLeaveRequest) { r.Consent.Unknown = false }, "since the last list is unknown"},
		"without a cluster":                {func(s *stage) { _ = s.membership.Unpublish(types.Global) }, nil, "belongs to no cluster"},
		"where no peers were ever seen":    {func(s *stage) { _ = s.peers.Unpublish(types.Global) }, nil, "are not known"},
		"where the volumes are not known":  {func(s *stage) { s.forgets() }, func(r *types.ClusterLeaveRequest) { r.Consent.Unknown = false }, "which volumes"},
		"for a peer without an address":    {func(s *stage) { s.homeless() }, nil, "no address is known for n3"},
		"for the peers of another cluster": {func(s *stage) { s.elsewhere() }, nil, "are not known"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.die()
				if row.before != nil {
					row.before(s)
				}
				if row.ask == nil {
					row.ask = func(*types.ClusterLeaveRequest) {}
				}
				s.ask(row.ask)
				s.sleep(time.Hour)
				s.is(types.WithoutRefused, row.why)
			})
		})
	}
}

func (s *stage) change(change func(*types.ClusterPeers)) {
	k, _ := s.peers.Get(types.Global)
	change(&k)
	_ = s.peers.Publish(types.Global, k)
}

func (s *stage) forgets() {
	s.change(func(k *types.ClusterPeers) { k.Volumes, k.VolumesAt = nil, time.Time{} })
}

func (s *stage) homeless() {
	s.change(func(k *types.ClusterPeers) { k.Peers = []types.ClusterPeer{k.Peers[0], {Name: "n3"}} })
}

func (s *stage) elsewhere() {
	s.change(func(k *types.ClusterPeers) { k.Cluster = [16]byte{1} })
}

func TestAConsentToAnUnknownListIsGoodWhereTheListIsUnknown(t *testing.T) {
	play(t, func(s *stage) {
		s.die()
		s.forgets()
		s.ask(func(r *types.ClusterLeaveRequest) { r.Consent.Volumes = nil })
		s.sleep(11 * time.Minute)
		s.is(types.WithoutProved, "")
	})
}

func TestTheSilenceOfManyPeersIsProvedAsWell(t *testing.T) {
	for _, many := range []int{79, 120, 500} {
		play(t, func(s *stage) {
			var all []types.ClusterPeer
			var names []string
			for i := range many {
				names = append(names, fmt.Sprintf("n%d", i+2))
				all = append(all, types.ClusterPeer{Name: names[i], Addresses: []string{fmt.Sprintf("10.0.%d.%d", i/250, i%250+2)}})
			}
			s.die()
			s.change(func(k *types.ClusterPeers) { k.Peers = all })
			s.ask(func(r *types.ClusterLeaveRequest) { r.WithoutCluster.Dead = names })
			s.proves(13 * time.Minute)
		})
	}
}

func TestARestartBeginsTheCountAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.die()
		s.ask()
		s.sleep(9 * time.Minute)
		s.stop()
		s.start()
		s.sleep(9 * time.Minute)
		s.is(types.WithoutLooking, "")
		s.sleep(2 * time.Minute)
		s.is(types.WithoutProved, "")
	})
}

func TestTimeAsleepProvesNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.die()
		s.ask()
		s.sleep(time.Minute)
		s.asleep.Store(int64(time.Hour))
		s.sleep(9 * time.Minute)
		s.is(types.WithoutLooking, "")
		s.proves(3 * time.Minute)
	})
}

func TestARequestThatIsTakenBackIsForgotten(t *testing.T) {
	play(t, func(s *stage) {
		s.die()
		s.ask()
		s.sleep(9 * time.Minute)
		_ = s.request.Unpublish(types.Global)
		synctest.Wait()
		if w, ok := s.without.Get(types.Global); ok {
			t.Errorf("it is %+v", w)
		}
		n := s.network.dials
		s.sleep(time.Hour)
		if s.network.dials != n {
			t.Error("it goes on looking")
		}
	})
}

func TestWithoutARequestNobodyIsTried(t *testing.T) {
	play(t, func(s *stage) {
		s.die()
		_ = s.request.Publish(types.Global, types.ClusterLeaveRequest{RequestedAt: time.Now()})
		s.sleep(time.Hour)
		if s.network.dials > 0 {
			t.Errorf("%d connections", s.network.dials)
		}
	})
}

func TestGatewaysAreReadFromTheKernelsTable(t *testing.T) {
	play(t, func(s *stage) {
		s.file("proc/net/route", "Iface Destination Gateway\neth0 00000000 010200C0 3\neth1 0000000A 00000000 1\neth2 00000000 00000000 1\nbad\neth3 00000000 zz 1\n")
		l := Link{Proc: s.dir + "/proc"}
		if got := l.gateways(); len(got) != 1 || got[0].String() != "192.0.2.1" {
			t.Errorf("they are %v", got)
		}
		for text, want := range map[string]bool{
			"192.0.2.1 0x1 0x2 52:54:00:12:35:02 * eth0\n": true,
			"192.0.2.1 0x1 0x0 52:54:00:12:35:02 * eth0\n": false, // incomplete
			"192.0.2.1 0x1 0x2 00:00:00:00:00:00 * eth0\n": false,
			"192.0.2.9 0x1 0x2 52:54:00:12:35:02 * eth0\n": false,
			"nonsense\n": false,
		} {
			s.file("proc/net/arp", text)
			if got := l.neighbour(l.gateways()); got != want {
				t.Errorf("%q: %v", text, got)
			}
		}
	})
}

func TestNothingIsKeptOfAClusterThatThisDeviceHasLeft(t *testing.T) {
	play(t, func(s *stage) {
		for _, m := range []types.Membership{"", types.MembershipNever, types.MembershipDoubtful, types.MembershipLeaving} {
			_ = s.membership.Publish(types.Global, types.ClusterMembership{State: m})
			s.sleep(time.Minute)
			if kept, _ := s.peers.Get(types.Global); len(kept.Peers) != 2 {
				t.Errorf("while it is %q it keeps %+v", m, kept)
			}
		}
		s.die()
		_ = s.membership.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeft})
		synctest.Wait()
		if kept, ok := s.peers.Get(types.Global); ok {
			t.Errorf("it keeps %+v", kept)
		}
	})
}
