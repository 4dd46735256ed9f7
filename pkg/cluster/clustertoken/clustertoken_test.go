package clustertoken

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

func TestATokenIsHadWhateverComesLast(t *testing.T) {
	steps := map[string]func(*stage){
		"config":     func(s *stage) { s.is(member(bootstrap)) },
		"controller": func(s *stage) { s.giveController("right") },
		"node":       func(s *stage) { s.giveNode("right") },
		"key":        func(s *stage) { s.device.key.Store(true) },
	}
	for _, order := range permutations("config", "controller", "node", "key") {
		for _, pause := range []time.Duration{0, time.Hour} {
			t.Run(fmt.Sprint(strings.Join(order, " "), " ", pause), func(t *testing.T) {
				play(t, func(s *stage) {
					_ = s.controller.Unpublish("01")
					_ = s.node.Unpublish("02")
					s.device.key.Store(false)
				}, func(s *stage) {
					for _, step := range order {
						if row, _ := s.token.Get(types.Global); row.Token != "" {
							t.Error("there is a token too early")
						}
						steps[step](s)
						s.sleep(pause)
					}
					switch {
					case order[3] != "key":
						s.sleep(time.Millisecond) // everything but the key rings
					case pause == 0:
						s.sleep(minRetry)
					default:
						s.sleep(maxRetry)
					}
					s.has(secret, "")
					s.sleep(period)
					s.holds(paper)
				})
			})
		}
	}
}

func permutations(of ...string) (all [][]string) {
	if len(of) == 0 {
		return [][]string{nil}
	}
	for i := range of {
		rest := append(append([]string{}, of[:i]...), of[i+1:]...)
		for _, tail := range permutations(rest...) {
			all = append(all, append([]string{of[i]}, tail...))
		}
	}
	return all
}

func TestAFailureIsNoSuccessAndKeepsTheLastGoodTokenOfTheSameCluster(t *testing.T) {
	play(t, nothing, func(s *stage) {
		s.is(member())
		s.has(secret, "")
		s.is(member(func(c *types.EdgeNodeClusterConfig) { c.CipherToken.CipherData = []byte("x") }))
		first := s.has(secret, "the hash does not hold")
		if first.Error.ErrorTime.IsZero() || first.Error.ErrorSeverity != types.ErrorSeverityError {
			t.Errorf("got %+v", first.Error)
		}
		s.sleep(time.Hour)
		s.is(member(func(c *types.EdgeNodeClusterConfig) { c.CipherToken.CipherData = []byte("y") }))
		if again := s.has(secret, "the hash does not hold"); again.Error.ErrorTime != first.Error.ErrorTime {
			t.Errorf("the same error moved from %s to %s", first.Error.ErrorTime, again.Error.ErrorTime)
		}
		s.giveController("wrong")
		synctest.Wait()
		s.is(member(withToken("n3w " + secret)))
		s.has(secret, "the hash does not hold")
		s.giveController("right")
		synctest.Wait()
		s.has("n3w "+secret, "")
	})
}

func TestAnErrorKeepsItsTimeOverARestartOfTheAgent(t *testing.T) {
	play(t, func(s *stage) { s.device.key.Store(false) }, func(s *stage) {
		s.is(member())
		before := s.blocks.All()
		s.sleep(time.Hour)
		s.restart()
		if d := cmp.Diff(before, s.blocks.All()); d != "" || before[one.String()].Error == "" {
			t.Error("want -, got +\n" + d)
		}
	})
}

func TestTheTokenOfAnotherClusterIsGoneAtOnce(t *testing.T) {
	play(t, nothing, func(s *stage) {
		s.is(member(bootstrap))
		s.holds(paper)
		s.device.hangs.Store(true)
		s.is(member(bootstrap, inOther))
		s.has("", "")
		s.holds("")
		s.device.hangs.Store(false)
		s.sleep(time.Minute)
		s.has("other "+secret, "")
		s.holds(paper)
		s.device.key.Store(false)
		s.is(member())
		s.has("", "the key file is not there")
	})
}

func TestAConfigurationInClearTextGivesNoToken(t *testing.T) {
	play(t, nothing, func(s *stage) {
		s.is(member(func(c *types.EdgeNodeClusterConfig) { c.CipherToken.IsCipher = false }))
		s.has("", "not encrypted")
		calls := s.device.calls.Load()
		s.sleep(time.Hour)
		if n := s.device.calls.Load(); n != calls {
			t.Errorf("it was tried %d more times, though only another configuration helps", n-calls)
		}
		s.is(member(withToken("")))
		s.has("", "contains no cluster token")
	})
}

// After the start the tables fill up one after the other.
func TestACertificateNotHeardOfYetIsNoError(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.controller.Unpublish("01")
		s.controller.silent.Store(true)
		_ = s.membership.Publish(types.Global, member())
	}, func(s *stage) {
		s.sleep(patience / 2)
		s.has("", "")
		s.giveController("right")
		synctest.Wait()
		s.has(secret, "")
	})
	play(t, func(s *stage) {
		_ = s.controller.Unpublish("01")
		s.controller.silent.Store(true)
		_ = s.membership.Publish(types.Global, member())
	}, func(s *stage) {
		s.sleep(2 * patience)
		s.has("", "controller certificate 01 is not there")
	})
}

func TestATPMThatHangsHoldsNobodyUpAndIsAskedByOne(t *testing.T) {
	play(t, func(s *stage) { s.device.hangs.Store(true) }, func(s *stage) {
		s.is(member(bootstrap))
		s.has("", "")
		s.sleep(askTimeout)
		s.has("", "the TPM does not answer")
		for i := range 50 { // the question changes again and again
			s.is(member(bootstrap, withToken(fmt.Sprint(secret, i))))
			s.sleep(time.Second)
		}
		if n := s.device.most.Load(); n != 1 {
			t.Errorf("it was asked by %d at the same time", n)
		}
		s.device.hangs.Store(false)
		s.sleep(askTimeout + maxRetry)
		s.has(secret+"49", "")
		s.holds(paper)
	})
}

func TestAnAnswerToAnotherQuestionIsThrownAway(t *testing.T) {
	play(t, func(s *stage) { s.device.hangs.Store(true) }, func(s *stage) {
		s.is(member())
		s.device.hangs.Store(false)
		s.is(member(inOther)) // ends the call under way, with an error
		s.has("other "+secret, "")
		if m, _ := s.metrics.Get(types.Global); m.FailureCount != 0 || m.SuccessCount != 1 {
			t.Errorf("got %+v", m)
		}
	})
}

func TestAClockThatIsSetBackHoldsNothingUp(t *testing.T) {
	s := &stage{T: t, vault: filepath.Join(t.TempDir(), "vault")} // neither the vault nor the key is there
	s.giveCerts()
	_ = s.membership.Publish(types.Global, member())
	c, bell := s.component(), make(chan struct{}, 1)
	defer c.closeFile()
	c.decrypting.Notify(bell)
	c.file.Notify(bell)
	_ = c.Step(t.Context()) // what it returns is when the next one should come
	for c.answers[token] == nil || c.file.State().At.IsZero() {
		<-bell
		_ = c.Step(t.Context())
	}
	// No test can set the clock: what has no reading of the monotonic one is
	// measured with the one that can be set.
	for what, at := range map[string]time.Time{
		"the wait for certificates":   c.began,
		"the wait for another try":    c.answers[token].at,
		"the wait for another look":   c.file.State().At,
		"what they are compared with": s.facts(c).now,
	} {
		if at.IsZero() || at == at.Round(0) {
			t.Errorf("%s is measured by the wall clock, from %v", what, at)
		}
	}
	row, _ := s.token.Get(types.Global)
	metrics, _ := s.metrics.Get(types.Global)
	for what, at := range map[string]time.Time{
		"the row":     row.Error.ErrorTime,
		"the block":   s.blocks.All()[one.String()].ErrorTime,
		"the metrics": metrics.LastFailure,
	} {
		if at.IsZero() || at != at.UTC() {
			t.Errorf("%s was told %v", what, at)
		}
	}
}

func (s *stage) facts(c *Component) facts {
	f, err := c.look(s.Context())
	s.must(err)
	return f
}
