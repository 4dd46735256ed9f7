package witness

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWhileAllNodesAreReadyNothingIsDialledOrWritten(t *testing.T) {
	play(t, func(s *stage) {
		s.sleep(24 * time.Hour)
		if d, w := s.dials(), s.written(); len(d) != 0 || w != 0 {
			t.Errorf("%d writes, dialled %v", w, d)
		}
	})
}

func TestADeviceThatIsGoneIsCalledSilentThreeTimesWithinSixteenSeconds(t *testing.T) {
	play(t, func(s *stage) {
		s.dies(3)
		s.lose(3)
		s.sleep(13 * time.Second)
		if got := s.sees(3); got.Silent != 3 || got.Alive != "" {
			t.Errorf("after 13 s: %+v", got)
		}
		first := s.told().Round
		s.sleep(5 * time.Second)
		if got, round := s.sees(3), s.told().Round; got.Silent != 4 || round <= first {
			t.Errorf("five seconds later: %+v, round %d after %d", got, round, first)
		}
		if n := s.written(); n != 4 {
			t.Errorf("%d writes for four looks", n)
		}
		s.recovers(3)
		if s.told() != nil {
			t.Errorf("it still says %+v", s.told())
		}
		s.sleep(24 * time.Hour)
		if n := s.written(); n != 1 {
			t.Errorf("%d writes after the node was Ready, want the removal alone", n)
		}
		if all, _ := s.logged(); !cmp.Equal(all, []string{"the device of a NotReady node does not answer"}) {
			t.Errorf("logged %q", all)
		}
	})
}

func TestADeviceThatAnswersIsAlive(t *testing.T) {
	for name, c := range map[string]struct {
		host  string
		err   error
		alive string
	}{
		"the status server":                   {"10.0.0.4:12346", nil, "10.0.0.4:12346"},
		"the kubelet alone":                   {"10.0.0.4:10250", nil, "10.0.0.4:10250"},
		"a kernel that refuses":               {"10.0.0.4:10250", failed(syscall.ECONNREFUSED), "10.0.0.4:10250"},
		"a connection that is reset":          {"10.0.0.4:12346", failed(syscall.ECONNRESET), "10.0.0.4:12346"},
		"the outer address alone":             {"192.168.1.4:10250", nil, "192.168.1.4:10250"},
		"no route to it, but the outer lives": {"192.168.1.4", failed(syscall.ECONNREFUSED), "192.168.1.4:12346"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.dies(3)
				s.change(3, addressed("10.0.0.4", "192.168.1.4"))
				s.answers(c.host, c.err)
				s.lose(3)
				s.sleep(13 * time.Second)
				if got := s.sees(3); got.Alive != c.alive || got.Silent != 0 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

func TestADeviceThatAnswersOnceIsNotSilentForAsLongAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.dies(3)
		s.lose(3)
		s.sleep(20 * time.Second)
		s.answers(node(3).InternalIP, nil)
		s.sleep(5 * time.Second)
		if got := s.sees(3); got.Alive == "" {
			t.Errorf("%+v", got)
		}
		s.dies(3)
		s.sleep(10 * time.Second)
		if got := s.sees(3); got.Silent < 1 || got.Silent > 2 {
			t.Errorf("after at most two looks: %+v", got)
		}
		if all, _ := s.logged(); !slices.Contains(all, "the device of a NotReady node answers again") {
			t.Errorf("logged %q", all)
		}
	})
}

func TestAWitnessWhoseOwnNetworkIsDownSaysNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.dies(3)
		s.lose(3)
		s.sleep(14 * time.Second)
		s.dies(2) // for us; it is Ready all the time
		s.sleep(10 * time.Second)
		if s.told() != nil {
			t.Errorf("it still says %+v", s.told())
		}
		s.written()
		s.sleep(time.Hour)
		if n := s.written(); n != 0 {
			t.Errorf("%d writes while it cannot tell", n)
		}
		s.answers(node(2).InternalIP, nil)
		s.sleep(7 * time.Second)
		if got := s.sees(3); got.Silent > 2 {
			t.Errorf("looks from before count: %+v", got)
		}
		if all, _ := s.logged(); len(all) > 3 {
			t.Errorf("logged %q", all)
		}
	})
}

func TestAMissingRouteIsNotAnAbsentDevice(t *testing.T) {
	play(t, func(s *stage) {
		s.answers(node(3).InternalIP, failed(syscall.ENETUNREACH))
		s.lose(3)
		s.sleep(time.Minute)
		if s.told() != nil || s.written() != 0 {
			t.Errorf("it says %+v", s.told())
		}
		all, _ := s.logged()
		if len(all) != 1 || !strings.Contains(all[0], "there is no route to node n3: dial tcp: connect: network is unreachable") {
			t.Errorf("logged %q", all)
		}
		s.answers(node(3).InternalIP, failed(syscall.EHOSTUNREACH))
		s.sleep(15 * time.Second)
		if got := s.sees(3); got.Silent < 2 {
			t.Errorf("no route to the host is silence: %+v", got)
		}
	})
}

func TestOneControlThatHasDiedAsWellHoldsNothingUp(t *testing.T) {
	play(t, func(s *stage) {
		s.answers(node(4).InternalIP, nil)
		s.change(4)
		s.dies(2) // a moment ago: it is still Ready
		s.dies(3)
		s.lose(3)
		s.sleep(13 * time.Second)
		if got := s.sees(3); got.Silent != 3 {
			t.Errorf("%+v", got)
		}
	})
}

func TestWithoutAnotherReadyNodeThereIsNoControl(t *testing.T) {
	play(t, func(s *stage) {
		s.dies(2)
		s.dies(3)
		s.lose(2)
		s.lose(3)
		s.sleep(15 * time.Second)
		if s.sees(2).Silent < 2 || s.sees(3).Silent < 2 {
			t.Errorf("%+v", s.told())
		}
	})
}

func TestTheKubeletOfAReadyNodeIsLeftAloneWhileItsStatusServerAnswers(t *testing.T) {
	play(t, func(s *stage) {
		s.dies(3)
		s.change(3, addressed("fd00::3", "10.9.9.9"), unknown)
		s.sleep(13 * time.Second)
		want := []string{"10.0.0.3:12346", "10.9.9.9:10250", "10.9.9.9:12346", "[fd00::3]:10250", "[fd00::3]:12346"}
		if d := cmp.Diff(want, s.dials()); d != "" {
			t.Error("want -, got +\n" + d)
		}
		s.dies(2)
		s.answers(node(2).InternalIP+":10250", failed(syscall.ECONNREFUSED)) // a firewall drops the other one
		s.sleep(20 * time.Second)
		if got := s.sees(3); got.Silent < 6 {
			t.Errorf("its kubelet is a control too: %+v", got)
		}
	})
}
