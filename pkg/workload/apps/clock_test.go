package apps

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func spoken(round int64) map[string]types.Node {
	return map[string]types.Node{"n3": {Name: "n3", Witness: &types.Witness{Round: round}}}
}

func TestAWitnessIsAsOldAsItsLastWordByTheUptime(t *testing.T) {
	words := types.Witnesses(nil).Hear(spoken(7), true, time.Minute)
	if len(words.Seen(now, time.Minute)) != 0 {
		t.Error("the first word that is heard may be old")
	}
	words = words.Hear(spoken(7), true, 2*time.Minute)
	if at, known := words.Seen(now, 2*time.Minute)["n3"]; !known || now.Sub(at) != time.Minute {
		t.Errorf("a word that has not changed for a minute is from %v", at)
	}
	words = words.Hear(spoken(7), true, 3*time.Minute-types.WitnessFresh)
	words = words.Hear(spoken(8), true, 3*time.Minute)
	words = words.Hear(spoken(8), true, 4*time.Minute)
	for _, clock := range []time.Time{now, now.Add(-time.Hour), now.AddDate(10, 0, 0)} {
		if got := clock.Sub(words.Seen(clock, 5*time.Minute)["n3"]); got != 2*time.Minute {
			t.Errorf("by the clock %s it is %s old", clock, got)
		}
	}
	gone := spoken(9)
	delete(gone, "n3")
	words = words.Hear(gone, true, 6*time.Minute-time.Second)
	if words = words.Hear(spoken(9), true, 6*time.Minute); len(words.Seen(now, 6*time.Minute)) != 0 {
		t.Error("who was silent begins anew")
	}
}

// How old a word is that came while nobody could hear it is not known before the next one.
func TestAWordThatIsHeardLateIsOfUnknownAge(t *testing.T) {
	for name, row := range map[string]struct {
		answered bool          // the API server, at the step before
		gap      time.Duration // since that
		answers  bool
		counts   bool
	}{
		"at a step soon after another":         {true, types.WitnessFresh, true, true},
		"after the device was asleep":          {true, types.WitnessFresh + 1, true, false},
		"as the API server answers again":      {false, time.Second, true, false},
		"while the API server does not answer": {true, time.Second, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			at := time.Minute
			words := types.Witnesses(nil).Hear(spoken(7), true, at).Hear(spoken(7), row.answered, at)
			at += row.gap
			words = words.Hear(spoken(8), row.answers, at)
			if seen, changed := words.Seen(now, at)["n3"]; seen.IsZero() == row.counts || !changed {
				t.Errorf("it is from %v, changed: %v", seen, changed)
			}
			if seen := words.Seen(now, at+types.WitnessAnswered+1)["n3"]; now.Sub(seen) != types.WitnessAnswered+1 {
				t.Errorf("if it stays it is from %v", seen)
			}
			words = words.Hear(spoken(8), true, at+time.Second)
			if seen := words.Seen(now, at+time.Second)["n3"]; seen.IsZero() == row.counts {
				t.Errorf("when it is heard once more it is from %v", seen)
			}
			words = words.Hear(spoken(9), true, at+2*time.Second)
			if got := words.Seen(now, at+2*time.Second)["n3"]; !got.Equal(now) {
				t.Errorf("the next one is from %v", got)
			}
		})
	}
	words := types.Witnesses(nil).Hear(spoken(7), true, time.Minute).Hear(spoken(8), true, 65*time.Second).Hear(spoken(8), false, 66*time.Second)
	if got := words.Hear(spoken(8), true, 67*time.Second).Seen(now, 67*time.Second)["n3"]; now.Sub(got) != 2*time.Second {
		t.Errorf("one from before a silence, which has not changed, is from %v", got)
	}
}

// A table of nodes lags while its watch has ended, and then shows all that it missed, one after the other.
func TestWordsThatATableShowsLateAreOfUnknownAge(t *testing.T) {
	for lag, counts := range map[time.Duration]bool{5 * time.Second: true, 22 * time.Second: true, 26 * time.Second: false, time.Hour: false} {
		at := time.Minute
		words := types.Witnesses(nil).Hear(spoken(1), true, at-5*time.Second).Hear(spoken(2), true, at)
		for end := at + lag; at < end; at += time.Second {
			words = words.Hear(spoken(2), true, at)
		}
		for round := int64(3); round < 9; round++ {
			words = words.Hear(spoken(round), true, at)
			if seen := words.Seen(now, at)["n3"]; seen.IsZero() == counts {
				t.Errorf("after %s word %d is from %v", lag, round, seen)
			}
			at += 100 * time.Millisecond
		}
		at += 2 * time.Second
		if got := words.Hear(spoken(9), true, at).Seen(now, at)["n3"]; !got.Equal(now) {
			t.Errorf("after %s the next one is from %v", lag, got)
		}
	}
}

func TestHowLongTheClusterIsOutOfViewIsMeasuredByTheUptime(t *testing.T) {
	tell(t, cluster, func(s *story) {
		configured1(s)
		a := pod("a")
		_ = s.pods.Publish(a.Key(), a)
		s.expect(status(types.AppKubeRunning, here))
		_ = s.api.Publish(types.Global, types.APIStatus{})
		s.wait()
		s.asleep = trust // what the uptime counts and the clock does not, as if that were set back
		_ = s.nodes.Publish("n2", types.Node{Name: "n2"})
		s.expect(status(types.AppKubeAPIUnreachable))
	})
}

// A command that was killed leaves its request there.
func TestARequestByHandIsAsOldAsTheUptimeSays(t *testing.T) {
	for name, r := range map[string]struct {
		at, clock, since time.Duration // uptime that the request has; since it was made, by the clock and truly
		counts           bool
	}{
		"just made": {up, 0, 0, true},
		"a quarter of an hour ago, and the clock was set": {up, time.Hour, asked, true},
		"longer ago": {up, asked + 1, asked + 1, false},
		"an hour ago, and the clock was set back":                         {up, 0, time.Hour, false},
		"in a former boot":                                                {up + time.Hour, 0, 0, false},
		"by an earlier release, just now":                                 {0, 0, 0, true},
		"by an earlier release, longer ago":                               {0, asked + 1, asked + 1, false},
		"by an earlier release, and the clock has been set back since":    {0, -asked, 0, true},
		"by an earlier release, and the clock has been set back too much": {0, -asked - 1, 0, false},
	} {
		s := newScene()
		s.ask(true)
		request := s.requests[appID]
		request.Uptime = r.at
		s.requests[appID] = request
		s.now, s.uptime = now.Add(r.clock), up+r.since
		if _, counts := s.request(s.apps()[0]); counts != r.counts {
			t.Errorf("%s: it counts: %v", name, counts)
		}
	}
}
