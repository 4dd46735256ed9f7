package clustertoken

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/cipher"
	"github.com/zedkube/zedkube/types"
)

func TestATokenIsHadWhateverComesLast(t *testing.T) {
	steps := map[string]func(*stage){
		"config":     func(s *stage) { s.is(member(bootstrap)) },
		"controller": func(s *stage) { s.giveController("right") },
		"node":       func(s *stage) { s.giveNode() },
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
		s.has("", "holds no cluster token")
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

func TestAttemptsAreCounted(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.metrics.Publish(types.Global, types.CipherMetrics{SuccessCount: 4, TypeCounters: []uint64{1}}) // by a former run
		s.device.key.Store(false)
	}, func(s *stage) {
		s.is(member(bootstrap))
		failed := time.Now().UTC()
		s.device.key.Store(true)
		s.sleep(minRetry)
		want := types.CipherMetrics{
			AgentName: "zedkube", FailureCount: 2, SuccessCount: 6, LastFailure: failed, LastSuccess: time.Now().UTC(),
			TypeCounters: []uint64{cipher.Invalid: 1, cipher.NotReady: 2, cipher.NoData: 0},
		}
		got, _ := s.metrics.Get(types.Global)
		if d := cmp.Diff(want, got); d != "" {
			t.Error("want -, got +\n" + d)
		}
	})
}

func TestBlocksTellTheirStateAndStayEncrypted(t *testing.T) {
	sameID := func(c *types.EdgeNodeClusterConfig) {
		c.CipherGzipRegistrationManifestYaml.CipherBlockID = c.CipherToken.CipherBlockID
	}
	play(t, nothing, func(s *stage) {
		expect := func(want map[string]types.CipherBlockStatus) {
			t.Helper()
			got := s.blocks.All()
			for key, b := range got {
				b.ErrorTime, b.ErrorSeverity = time.Time{}, 0
				got[key] = b
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error("want -, got +\n" + d)
			}
		}
		failed := func(b types.CipherBlockStatus, text string) types.CipherBlockStatus {
			b.Error = text
			return b
		}
		m := member(bootstrap)
		s.is(m)
		expect(map[string]types.CipherBlockStatus{
			one.String(): m.Config.CipherToken, "manifest": m.Config.CipherGzipRegistrationManifestYaml,
		})
		m = member(bootstrap, withManifest("x"), sameID)
		s.is(m)
		expect(map[string]types.CipherBlockStatus{
			one.String(): failed(m.Config.CipherGzipRegistrationManifestYaml, "unzip the registration manifest: unexpected EOF"),
		})
		m = member(bootstrap, withManifest("x"), withToken(""), sameID)
		s.is(m)
		expect(map[string]types.CipherBlockStatus{one.String(): failed(m.Config.CipherToken, "the block holds no cluster token")})
		m = member(inOther)
		s.is(m)
		expect(map[string]types.CipherBlockStatus{other.String(): m.Config.CipherToken})
		s.is(types.ClusterMembership{State: types.MembershipLeft})
		expect(map[string]types.CipherBlockStatus{})
	})
}

func TestANodeThatHasLeftHasNoToken(t *testing.T) {
	for state, keeps := range map[types.Membership]bool{
		types.MembershipDoubtful: true, types.MembershipLeaving: true, types.MembershipLeft: false,
	} {
		play(t, nothing, func(s *stage) {
			m := member(bootstrap)
			s.is(m)
			m.State = state
			if !keeps {
				m.Config = nil
			}
			s.is(m)
			if keeps {
				s.has(secret, "")
				s.holds(paper)
			} else if _, ok := s.token.Get(types.Global); ok {
				t.Error("there still is a row")
			} else {
				s.holds("")
			}
		})
	}
}

func TestADecryptionIsLoggedOnceAndAFailureOncePerText(t *testing.T) {
	play(t, func(s *stage) { s.device.key.Store(false) }, func(s *stage) {
		s.is(member())
		s.sleep(time.Hour)
		if n := s.logged(logrus.WarnLevel); n != 1 {
			t.Errorf("%d warnings", n)
		}
		if n := s.device.calls.Load(); n < 55 || n > 65 { // once a minute after a start in seconds
			t.Errorf("%d attempts in an hour", n)
		}
		s.device.key.Store(true)
		s.sleep(time.Hour)
		if n := s.logged(logrus.InfoLevel); n != 1 {
			t.Errorf("%d lines after it", n)
		}
		if n := s.logged(logrus.ErrorLevel); n != 0 {
			t.Errorf("%d errors", n)
		}
	})
}
