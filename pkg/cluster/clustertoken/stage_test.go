package clustertoken

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret, paper = "s3cr3t", "kind: Registration # p4p3r\n"

var (
	one   = uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")
	other = uuid.MustParse("6ba7b811-9dad-41d1-80b4-00c04fd430c8")
)

// block is what only a device with both certificates and its key can read.
func block(id, clear string) types.CipherBlockStatus {
	return types.CipherBlockStatus{
		CipherBlockID: id, CipherContextID: "ctx-1", IsCipher: true, CipherData: []byte("sealed " + clear),
		CipherContext: &types.CipherContext{ContextID: "ctx-1", ControllerCertHash: []byte{1}, DeviceCertHash: []byte{2}},
	}
}

func zip(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

// member is the membership of a node of cluster one, with a token.
func member(change ...func(*types.EdgeNodeClusterConfig)) types.ClusterMembership {
	c := types.EdgeNodeClusterConfig{
		Initialized: true, Valid: true, ClusterID: types.UUIDandVersion{UUID: one},
		ClusterIPPrefix: &net.IPNet{IP: net.IPv4(10, 244, 244, 2), Mask: net.CIDRMask(28, 32)},
		CipherToken:     block(one.String(), secret),
	}
	for _, f := range change {
		f(&c)
	}
	return types.ClusterMembership{State: types.MembershipMember, Config: &c}
}

func bootstrap(c *types.EdgeNodeClusterConfig) {
	c.BootstrapNode = true
	c.CipherGzipRegistrationManifestYaml = block("manifest", zip(paper))
}

func inOther(c *types.EdgeNodeClusterConfig) {
	c.ClusterID.UUID = other
	c.CipherToken = block(other.String(), "other "+secret)
}

func withToken(clear string) func(*types.EdgeNodeClusterConfig) {
	return func(c *types.EdgeNodeClusterConfig) { c.CipherToken = block(one.String(), clear) }
}

func withManifest(raw string) func(*types.EdgeNodeClusterConfig) {
	return func(c *types.EdgeNodeClusterConfig) {
		c.CipherGzipRegistrationManifestYaml = block("manifest", raw)
	}
}

// source is a table whose publisher may not have spoken yet.
type source[T any] struct {
	pubsub.Table[T]
	silent atomic.Bool
}

func (s *source[T]) Synced() bool { return !s.silent.Load() }

// stage is a device in fake time.
type stage struct {
	*testing.T
	membership pubsub.Table[types.ClusterMembership]
	controller source[types.ControllerCert]
	node       source[types.EdgeNodeCert]
	device     device
	vault      string
	token      pubsub.Table[types.ClusterToken]
	blocks     deaf[types.CipherBlockStatus]
	metrics    pubsub.Table[types.CipherMetrics]
	work       func(keptfile.File, keptfile.Desired) (keptfile.Result, error)
	logs       *logtest.Hook
	stop       func()
}

// play runs a component in fake time, with a vault and everything it needs but
// a configuration; what setup takes away or adds counts from the first moment.
func play(t *testing.T, setup, tell func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, vault: filepath.Join(t.TempDir(), "vault")}
		s.must(os.Mkdir(s.vault, 0o755))
		s.device.key.Store(true)
		s.giveCerts()
		setup(s)
		s.start()
		tell(s)
		s.stop()
		s.keepsSecrets()
	})
}

func nothing(*stage) {}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) giveCerts() { s.giveController("right"); s.giveNode("right") }

func (s *stage) giveController(text string) {
	_ = s.controller.Publish("01", types.ControllerCert{CertHash: []byte{1}, Cert: []byte(text)})
}

func (s *stage) giveNode(text string) {
	_ = s.node.Publish("02", types.EdgeNodeCert{CertID: []byte{2}, Cert: []byte(text)})
}

func (s *stage) start() {
	c := s.component()
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	s.stop = func() { cancel(); <-done }
	synctest.Wait()
}

func (s *stage) component() *Component {
	log, hook := logtest.NewNullLogger()
	s.logs = hook
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Operations: types.NoOperations{}, Membership: &s.membership, ControllerCerts: &s.controller, DeviceCerts: &s.node,
		Device: &s.device, Manifest: s.file(), Token: &s.token, Blocks: &s.blocks, Metrics: &s.metrics,
	}
	c.file.Work = s.work
	return c
}

// restart makes a new process of the agent: tables in memory are gone.
func (s *stage) restart() {
	s.stop()
	s.token = pubsub.Table[types.ClusterToken]{}
	s.start()
}

func (s *stage) file() string { return filepath.Join(s.vault, "manifests", "registration.yaml") }

func (s *stage) is(m types.ClusterMembership) {
	_ = s.membership.Publish(types.Global, m)
	synctest.Wait()
}

func (s *stage) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// has expects a token and the end of an error's text, "" for none.
func (s *stage) has(token, text string) types.ClusterToken {
	s.Helper()
	row, ok := s.token.Get(types.Global)
	switch {
	case !ok && token == "" && text == "":
	case !ok:
		s.Errorf("there is no row, not %q with %q", token, text)
	case row.Token != token || (row.Error.Error == "") != (text == "") || !strings.HasSuffix(row.Error.Error, text):
		s.Errorf("got %q with %q, not %q with %q", row.Token, row.Error.Error, token, text)
	}
	return row
}

// holds expects the file's content, "" for no file.
func (s *stage) holds(content string) {
	s.Helper()
	got, err := os.ReadFile(s.file())
	if string(got) != content || err != nil && content != "" {
		s.Errorf("the file holds %q, not %q: %v", got, content, err)
	}
}

// keepsSecrets looks for what was decrypted in everything that others can see.
func (s *stage) keepsSecrets() {
	s.Helper()
	var seen []string
	for _, e := range s.logs.AllEntries() {
		text, _ := e.String()
		seen = append(seen, text)
	}
	for _, b := range s.blocks.All() {
		seen = append(seen, b.Error)
	}
	row, _ := s.token.Get(types.Global)
	metrics, _ := s.metrics.Get(types.Global)
	seen = append(seen, row.Error.Error, fmt.Sprintf("%+v %#v %v", row, row, metrics))
	for _, text := range seen {
		if strings.Contains(text, secret) || strings.Contains(text, "p4p3r") {
			s.Errorf("this tells a secret: %s", text)
		}
	}
}

func (s *stage) logged(level logrus.Level) (n int) {
	for _, e := range s.logs.AllEntries() {
		if e.Level == level {
			n++
		}
	}
	return n
}
