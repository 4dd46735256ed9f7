package witness

import (
	"errors"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/reach"
	"github.com/zedkube/zedkube/types"
)

func TestRoundsDoNotComeAgainAfterARestart(t *testing.T) {
	play(t, func(s *stage) {
		s.dies(3)
		s.lose(3)
		s.sleep(time.Minute)
		s.stop()
		last := s.told().Round
		s.start() // in the same second
		s.sleep(3 * time.Second)
		if got := s.told().Round; got <= last {
			t.Errorf("round %d after round %d", got, last)
		}
		s.stop()
		ahead := time.Now().Unix() + 1e6 // the clock was
		s.change(1, func(n *types.Node) { n.Witness = &types.Witness{Round: ahead} })
		s.start()
		s.sleep(3 * time.Second)
		if got := s.told().Round; got != ahead+1 {
			t.Errorf("round %d after the clock went back", got)
		}
		s.stop()
		s.change(1, func(n *types.Node) { n.Witness = &types.Witness{Round: math.MaxInt64} }) // nobody's
		s.start()
		s.sleep(3 * time.Second)
		first := s.told().Round
		s.sleep(10 * time.Second)
		if got := s.told().Round; got == math.MaxInt64 || got <= first {
			t.Errorf("round %d after round %d", got, first)
		}
	})
}

func TestWhatAFormerProcessSaidIsRemovedOnce(t *testing.T) {
	play(t, func(s *stage) {
		s.stop()
		s.lag = 10 * time.Second
		s.change(1, func(n *types.Node) { n.Witness = &types.Witness{Round: 5} })
		s.start()
		for range 5 {
			s.change(2, func(n *types.Node) { n.KubeletVersion += "." }) // any news
		}
		s.sleep(time.Hour)
		if n := s.written(); n != 1 || s.told() != nil {
			t.Errorf("%d writes, left: %+v", n, s.told())
		}
	})
}

func TestWhileTheAPIIsSilentNothingIsLookedAt(t *testing.T) {
	play(t, func(s *stage) {
		s.dies(3)
		s.lose(3)
		s.sleep(20 * time.Second)
		s.apiIs(false)
		s.sleep(time.Second)
		s.dials()
		s.written()
		s.sleep(time.Minute)
		if d, w := s.dials(), s.written(); len(d) != 0 || w != 0 {
			t.Errorf("%d writes, dialled %v", w, d)
		}
		s.apiIs(true)
		s.sleep(7 * time.Second)
		if got := s.sees(3); got.Silent > 2 {
			t.Errorf("looks from before count: %+v", got)
		}
	})
}

func TestANodeThatIsReadyAgainDuringALookIsNotToldOf(t *testing.T) {
	play(t, func(s *stage) {
		s.dies(3)
		s.lose(3)
		s.sleep(time.Second) // the first look is under way
		s.recovers(3)
		s.sleep(time.Minute)
		if n := s.written(); n != 0 {
			t.Errorf("%d writes", n)
		}
	})
}

func TestAWriteThatHangsOrFailsHoldsNothingUp(t *testing.T) {
	play(t, func(s *stage) {
		s.dies(3)
		s.lose(3)
		s.writing(time.Hour, nil)
		s.sleep(time.Minute)
		if n := len(s.dials()); n == 0 {
			t.Error("no look while a write hangs")
		}
		s.writing(0, nil)
		s.sleep(15 * time.Second)
		if got := s.sees(3); got.Silent < 12 {
			t.Errorf("looks during the outage do not count: %+v", got)
		}
		s.writing(0, errors.New("no"))
		s.recovers(3)
		s.written()
		s.sleep(5 * time.Hour)
		if n := s.written(); n < 100 || n > 400 {
			t.Errorf("%d tries to remove it in five hours", n)
		}
		if all, errs := s.logged(); errs > 3 {
			t.Errorf("logged %q", all)
		}
		s.writing(0, nil)
		s.sleep(time.Minute + time.Second)
		if s.told() != nil {
			t.Errorf("it is not removed: %+v", s.told())
		}
	})
}

func TestAThousandNodesThatAreNotReadyAreTooManyAndItSaysSo(t *testing.T) {
	play(t, func(s *stage) {
		s.dies(3)
		for i := 3; i <= 1002; i++ {
			n := node(i, unknown)
			n.ReadySince = time.Now().Add(-time.Duration(i) * time.Minute)
			_ = s.nodes.Publish(n.Name, n)
		}
		s.sleep(13 * time.Second)
		if n := len(s.dials()); n > 8*2+3*2 {
			t.Errorf("%d connections", n)
		}
		if w := s.told(); len(w.Sightings) != 8 || w.Omitted != 992 {
			t.Errorf("%d sightings, %d omitted", len(w.Sightings), w.Omitted)
		}
		if got := s.sees(3); got.Silent != 3 { // the last that was lost
			t.Errorf("%+v", got)
		}
		published := 0
		all, _ := s.logged()
		for _, line := range all {
			if line == "cannot determine which nodes answer: too many nodes are NotReady to dial all of them" {
				published++
			}
		}
		if published != 1 {
			t.Errorf("logged %q", all)
		}
	})
}

func TestOddNodesAreNeitherDialledNorToldOf(t *testing.T) {
	for name, change := range map[string]func(*types.Node){
		"without an address":           addressed("", ""),
		"with an outer one alone":      addressed("", "192.168.1.3"),
		"with a name for one":          addressed("n3.example", ""),
		"with the own one":             addressed("::ffff:10.0.0.2", "10.0.0.2"),
		"with loopback":                addressed("127.0.0.1", "::1"),
		"with nowhere":                 addressed("0.0.0.0", "::"),
		"with a group's":               addressed("224.0.0.1", "ff02::1"),
		"with a port in it":            addressed("10.0.0.4:12346", "[fd00::1]"),
		"without a UID":                func(n *types.Node) { n.UID = "" },
		"with the UID of the own Node": func(n *types.Node) { n.UID = "uid-n1" },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.change(3, change, unknown)
				s.sleep(time.Minute)
				if d, w := s.dials(), s.written(); len(d) != 0 || w != 0 {
					t.Errorf("%d writes, dialled %v", w, d)
				}
				if all, _ := s.logged(); len(all) != 1 {
					t.Errorf("logged %q", all)
				}
				s.dies(2)
				s.lose(2)
				s.sleep(13 * time.Second)
				if w := s.told(); w == nil || w.Omitted != 1 || len(w.Sightings) != 1 || s.sees(2).Silent != 3 {
					t.Errorf("of the other one it says %+v", w)
				}
			})
		})
	}
}

func TestANodeThatIsOffForLongIsLookedAtLessOften(t *testing.T) {
	play(t, func(s *stage) {
		s.dies(3)
		s.lose(3)
		s.sleep(10 * time.Minute)
		s.written()
		s.sleep(time.Hour)
		if n := s.written(); n != 300 {
			t.Errorf("%d writes in an hour", n)
		}
		s.sleep(3 * time.Second)
		s.change(4) // another one, whose loss is news
		s.lose(4)
		s.sleep(25 * time.Second)
		if got := s.sees(4); got.Silent < 3 {
			t.Errorf("%+v", got)
		}
		if slowly+2*reach.DialTimeout >= types.WitnessFresh {
			t.Error("a slow look is old before the next one")
		}
	})
}

func TestADeviceThatIsNotKnownYetSaysNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.stop()
		_ = s.info.Unpublish(types.Global)
		s.dies(3)
		s.lose(3)
		s.start()
		s.sleep(time.Minute)
		if d, w := s.dials(), s.written(); len(d) != 0 || w != 0 {
			t.Errorf("%d writes, dialled %v", w, d)
		}
	})
}

func TestNothingIsUnderWayAfterTheEnd(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 2500 * time.Millisecond} { // in a look, in a write
		t.Run(strconv.Itoa(int(after.Milliseconds())), func(t *testing.T) {
			play(t, func(s *stage) {
				s.lazy, s.hangs = 100*time.Millisecond, time.Hour
				s.dies(3)
				s.lose(3)
				s.sleep(after)
				if s.open == 0 {
					t.Fatal("nothing was under way")
				}
				s.stop()
				if s.open != 0 {
					t.Errorf("%d calls are under way", s.open)
				}
			})
		})
	}
}
