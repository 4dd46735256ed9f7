package clustertoken

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// Each change makes an attempt of its own, and what it leads to is published,
// be it better or worse.
func TestEveryChangeOfACertificateAContextOrATokenIsTriedAtOnce(t *testing.T) {
	inContext := func(controller, device byte) func(*types.EdgeNodeClusterConfig) {
		return func(c *types.EdgeNodeClusterConfig) {
			c.CipherToken.CipherContext.ControllerCertHash = []byte{controller}
			c.CipherToken.CipherContext.DeviceCertHash = []byte{device}
		}
	}
	bad := func(c *types.EdgeNodeClusterConfig) { c.CipherToken.CipherData = []byte("noise") }
	const noise = "the hash does not hold"
	play(t, func(s *stage) {
		_ = s.controller.Publish("03", types.ControllerCert{CertHash: []byte{3}, Cert: []byte("right")})
		_ = s.node.Publish("04", types.EdgeNodeCert{CertID: []byte{4}, Cert: []byte("right")})
		_ = s.node.Publish("05", types.EdgeNodeCert{CertID: []byte{5}, Cert: []byte("wrong")})
	}, func(s *stage) {
		for i, step := range []struct {
			change      func()
			token, text string
		}{
			{func() { s.is(member()) }, secret, ""},
			{func() { s.giveController("wrong") }, secret, noise}, // the same hash with another content
			{func() { s.giveController("right") }, secret, ""},
			{func() { s.giveController("right as well") }, secret, ""},
			{func() { s.giveNode("wrong") }, secret, noise},
			{func() { s.is(member(withToken("2 " + secret))) }, secret, noise},
			{func() { s.giveNode("right") }, "2 " + secret, ""},
			{func() { _ = s.controller.Unpublish("01") }, "2 " + secret, "controller certificate 01 is not there"},
			{func() { s.is(member(withToken("3 "+secret), inContext(3, 2))) }, "3 " + secret, ""},
			{func() { s.is(member(withToken("3 "+secret), inContext(3, 5))) }, "3 " + secret, noise},
			{func() { s.is(member(withToken("4 "+secret), inContext(3, 4))) }, "4 " + secret, ""},
			{func() { s.is(member(bad, inContext(3, 4))) }, "4 " + secret, noise},
			{func() { s.is(member(withToken("5 "+secret), inContext(3, 4))) }, "5 " + secret, ""},
			{func() { s.is(member(withToken("5 "+secret), inContext(3, 4), inOther)) }, "", "controller certificate 01 is not there"},
			{func() { s.giveController("right") }, "other " + secret, ""},
		} {
			before := s.device.calls.Load()
			step.change()
			synctest.Wait()
			s.has(step.token, step.text)
			if n := s.device.calls.Load() - before; n != 1 {
				t.Errorf("step %d: %d attempts", i, n)
			}
		}
	})
}

// What was asked, not asked and asked again while the TPM thought about it is
// asked again: that it was cut short says nothing of it.
func TestAConfigurationThatComesBackInTheMeantimeIsNoFailure(t *testing.T) {
	play(t, func(s *stage) {
		s.device.hangs.Store(true)
		s.device.slow = time.Second
	}, func(s *stage) {
		s.is(member())
		s.is(member(withToken("2 " + secret)))
		s.is(member())
		s.device.hangs.Store(false)
		s.sleep(time.Second)
		s.has(secret, "")
		if m, _ := s.metrics.Get(types.Global); m.FailureCount != 0 || m.SuccessCount != 1 || s.logged(logrus.WarnLevel) != 0 {
			t.Errorf("got %+v and %d warnings", m, s.logged(logrus.WarnLevel))
		}
	})
}

// The kube container writes the token into a line of YAML, and it goes with
// all else that the status says in one packet.
func TestATokenThatCannotBeHandedOnIsAnError(t *testing.T) {
	for name, r := range map[string]struct{ token, want, text string }{
		"a newline in it":      {secret + "\nserver: https://evil", secret, "a control character"},
		"a zero byte":          {secret + "\x00", secret, "a control character"},
		"as long as a packet":  {strings.Repeat("x", 60_000), secret, "it has 60000 bytes, more than 4096"},
		"one byte too long":    {strings.Repeat("x", maxToken+1), secret, "it has 4097 bytes, more than 4096"},
		"as long as it may be": {strings.Repeat("x", maxToken), strings.Repeat("x", maxToken), ""},
		"blanks only":          {" \n", secret, "contains no cluster token"},
		"blanks around it":     {" 2" + secret + "\r\n", "2" + secret, ""},
		"letters of the world": {"schlüssel", "schlüssel", ""},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nothing, func(s *stage) {
				s.is(member())
				s.is(member(withToken(r.token)))
				s.sleep(time.Hour)
				s.has(r.want, r.text)
			})
		})
	}
}

// deaf is a topic that cannot be written for a while, as on a full disk.
type deaf[T any] struct {
	pubsub.Table[T]
	left int
}

func (d *deaf[T]) Publish(key string, v T) error {
	if d.left--; d.left >= 0 {
		return errors.New("no space left on device")
	}
	return d.Table.Publish(key, v)
}

func TestWhatCouldNotBePublishedIsPublishedLater(t *testing.T) {
	play(t, func(s *stage) { s.blocks.left = 3 }, func(s *stage) {
		s.is(member())
		s.sleep(time.Second)
		s.has(secret, "") // it holds nothing else up
		s.sleep(time.Minute)
		if _, ok := s.blocks.Get(one.String()); !ok {
			t.Error("the block is not told")
		}
		if n := s.logged(logrus.ErrorLevel); n != 1 {
			t.Errorf("%d errors", n)
		}
	})
}
