package clustertoken

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/cipher"
	"github.com/zedkube/zedkube/types"
)

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
			got := maps.Clone(s.blocks.All())
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
		expect(map[string]types.CipherBlockStatus{one.String(): failed(m.Config.CipherToken, "the block contains no cluster token")})
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
