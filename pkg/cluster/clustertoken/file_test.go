package clustertoken

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/types"
)

func TestTheManifestIsForTheBootstrapNodeAlone(t *testing.T) {
	play(t, nothing, func(s *stage) {
		s.is(member(bootstrap, func(c *types.EdgeNodeClusterConfig) { c.BootstrapNode = false }))
		s.sleep(time.Minute)
		s.holds("")
		s.is(member(bootstrap))
		s.holds(paper)
		s.is(member(bootstrap, func(c *types.EdgeNodeClusterConfig) { c.BootstrapNode = false }))
		s.holds("")
		s.is(member(bootstrap))
		s.holds(paper)
		s.is(member(bootstrap, func(c *types.EdgeNodeClusterConfig) {
			c.CipherGzipRegistrationManifestYaml = types.CipherBlockStatus{}
		}))
		s.holds("")
	})
}

// zedagent gives one block for token and manifest.
func TestABlockWithoutAManifestIsNoFailure(t *testing.T) {
	play(t, nothing, func(s *stage) {
		s.is(member(bootstrap))
		s.holds(paper)
		s.is(member(bootstrap, withManifest("")))
		s.holds("")
		s.restart()
		s.must(os.WriteFile(s.file(), []byte("former"), 0o600))
		s.sleep(period)
		s.holds("")
		for key, b := range s.blocks.All() {
			if b.Error != "" {
				t.Errorf("block %s: %s", key, b.Error)
			}
		}
		if m, _ := s.metrics.Get(types.Global); m.FailureCount != 0 || s.logged(logrus.WarnLevel) != 0 {
			t.Errorf("%d failures, %d warnings", m.FailureCount, s.logged(logrus.WarnLevel))
		}
		s.is(member(bootstrap))
		s.holds(paper)
	})
}

func TestANodeThatKnowsNothingLeavesTheFileAlone(t *testing.T) {
	play(t, func(s *stage) {
		s.must(os.Mkdir(filepath.Dir(s.file()), 0o700))
		s.must(os.WriteFile(s.file(), []byte("former"), 0o600))
		s.device.key.Store(false)
	}, func(s *stage) {
		s.sleep(time.Minute)
		s.holds("former") // no membership yet
		s.is(types.ClusterMembership{State: types.MembershipNever})
		s.sleep(time.Minute)
		s.holds("former")
		s.is(member(bootstrap, func(c *types.EdgeNodeClusterConfig) { c.ClusterID.UUID = uuid.Nil }))
		s.sleep(time.Minute)
		s.holds("former")
		s.is(member(bootstrap)) // its manifest cannot be obtained
		s.sleep(time.Minute)
		s.holds("former")
		s.device.key.Store(true)
		s.sleep(maxRetry)
		s.holds(paper)
	})
}

func TestWhatWasReadBeforeALeaveIsForgotten(t *testing.T) {
	play(t, nothing, func(s *stage) {
		s.is(member(bootstrap))
		s.is(types.ClusterMembership{State: types.MembershipLeft})
		s.device.key.Store(false)
		s.is(member(bootstrap))
		s.sleep(time.Minute)
		s.holds("")
		s.has("", "the key file is not there")
	})
}

func TestTheVaultIsWaitedForAndNeverMade(t *testing.T) {
	play(t, func(s *stage) { s.must(os.Remove(s.vault)) }, func(s *stage) {
		s.is(member(bootstrap))
		s.sleep(time.Hour)
		if _, err := os.Stat(s.vault); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal("somebody made the vault")
		}
		if n := s.logged(logrus.WarnLevel); n != 1 {
			t.Errorf("%d warnings", n)
		}
		s.must(os.Mkdir(s.vault, 0o755))
		s.sleep(period)
		s.holds(paper)
	})
}

func TestWhatSomebodyDidToTheFileIsUndoneOnTheNextLook(t *testing.T) {
	play(t, nothing, func(s *stage) {
		s.is(member(bootstrap))
		s.must(os.RemoveAll(filepath.Dir(s.file())))
		s.sleep(period)
		s.holds(paper)
		s.is(types.ClusterMembership{State: types.MembershipLeft})
		s.must(os.WriteFile(s.file(), []byte("former"), 0o600))
		s.sleep(period)
		s.holds("")
	})
}

func TestAnEqualFileIsNotWrittenAgain(t *testing.T) {
	play(t, nothing, func(s *stage) {
		s.is(member(bootstrap))
		before, err := os.Stat(s.file())
		s.must(err)
		s.sleep(time.Hour)
		s.restart()
		s.giveController("another that is right")
		s.sleep(time.Hour)
		s.is(member(bootstrap, withManifest(zip(paper)+zip(""))))
		s.sleep(time.Hour)
		after, err := os.Stat(s.file())
		s.must(err)
		if !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
			t.Error("it was")
		}
	})
}

func TestABadManifestIsAnErrorAndTheLastGoodOneStays(t *testing.T) {
	bomb := zip(string(bytes.Repeat([]byte{' '}, maxManifest+1)))
	for name, r := range map[string]struct{ raw, text string }{
		"no gzip":   {"kind: Registration", "gzip: invalid header"},
		"cut short": {zip(paper)[:20], "unexpected EOF"},
		"damaged":   {zip(paper)[:40] + "\xff\xff" + zip(paper)[42:], "unzip"},
		"a bomb":    {bomb, "it is longer than 10485760 bytes"},
		"bombs":     {zip(paper) + bomb, "it is longer than 10485760 bytes"},
		"empty":     {zip(""), "it is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nothing, func(s *stage) {
				s.is(member(bootstrap))
				s.is(member(bootstrap, withManifest(r.raw)))
				s.sleep(time.Minute)
				s.holds(paper)
				if b, _ := s.blocks.Get("manifest"); !strings.Contains(b.Error, r.text) {
					t.Errorf("got %q", b.Error)
				}
				s.must(os.Remove(s.file()))
				s.sleep(period)
				s.holds(paper)
				s.has(secret, "")
			})
		})
	}
}

func TestAManifestMayBeAsLongAsItsLimit(t *testing.T) {
	long := strings.Repeat("#", maxManifest)
	play(t, nothing, func(s *stage) {
		s.is(member(bootstrap, withManifest(zip(long))))
		if got, err := os.ReadFile(s.file()); err != nil || string(got) != long {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

func TestADiskThatHangsHoldsUpNoToken(t *testing.T) {
	var free chan struct{}
	play(t, func(s *stage) {
		free = make(chan struct{})
		s.work = func(f keptfile.File, w keptfile.Desired) (keptfile.Result, error) { <-free; return f.Keep(w) }
	}, func(s *stage) {
		s.is(member(bootstrap))
		s.sleep(time.Hour)
		s.has(secret, "")
		s.is(member(bootstrap, inOther))
		s.sleep(time.Second) // a loop whose step fails takes a breath
		s.has("other "+secret, "")
		if n := s.logged(logrus.ErrorLevel); n != 1 {
			t.Errorf("%d errors", n)
		}
		close(free)
		s.sleep(period)
		s.holds(paper)
	})
}

func TestAFailureOfTheDiskIsToldAndTriedAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.must(os.WriteFile(filepath.Dir(s.file()), nil, 0o600)) // in the directory's place
	}, func(s *stage) {
		s.is(member(bootstrap))
		s.sleep(time.Minute)
		if n := s.logged(logrus.ErrorLevel); n != 1 {
			t.Errorf("%d errors", n)
		}
		s.must(os.Remove(filepath.Dir(s.file())))
		s.sleep(period)
		s.holds(paper)
	})
	play(t, func(s *stage) {
		s.must(os.WriteFile(filepath.Dir(s.file()), nil, 0o600))
	}, func(s *stage) {
		s.is(member(bootstrap))
		s.is(types.ClusterMembership{State: types.MembershipNever}) // it is not wanted any more
		s.sleep(time.Minute)
		if last := s.logs.LastEntry(); last.Message != "step succeeds again" {
			t.Errorf("the last line is %q", last.Message)
		}
	})
}

func TestTheAgentEndsThoughTheDiskHangs(t *testing.T) {
	var free chan struct{}
	play(t, func(s *stage) {
		free = make(chan struct{})
		s.work = func(keptfile.File, keptfile.Desired) (keptfile.Result, error) { <-free; return keptfile.Same, nil }
	}, func(s *stage) {
		s.is(member(bootstrap))
		s.stop()
		if last := s.logs.LastEntry(); !strings.Contains(last.Message, "stopping without it") {
			t.Errorf("the last line is %q", last.Message)
		}
		close(free)
	})
}
