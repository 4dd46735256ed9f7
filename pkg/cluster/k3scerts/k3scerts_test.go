package k3scerts

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// device is a node of which the files of k3s are below root, and which serves by TLS at
// the ports of serves.
type device struct {
	*Component
	root    string
	serves  map[string]*tls.Config // by port
	asked   chan string
	info    pubsub.Table[types.EdgeNodeInfo]
	status  pubsub.Table[types.EdgeNodeClusterStatus]
	agent   pubsub.Table[types.ZedAgentStatus]
	api     pubsub.Table[types.APIStatus]
	nodes   pubsub.Table[types.Node]
	clocks  pubsub.Table[types.NodeClock]
	journal pubsub.Table[types.KubeLifecycleJournal]
	out     pubsub.Table[types.K3sCertificates]
	did     []types.Operation
}

func (d *device) Begin(o types.Operation) func(types.OperationOutcome, error) {
	d.did = append(d.did, o)
	return func(types.OperationOutcome, error) {}
}

func newDevice(t *testing.T) *device {
	d := &device{root: t.TempDir(), serves: map[string]*tls.Config{}, asked: make(chan string, 100)}
	id := uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")
	_ = d.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1", DeviceID: id})
	_ = d.nodes.Publish("n1", types.Node{Name: "n1", UUID: id.String(), ControlPlane: true, Etcd: true, InternalIP: "10.0.0.1"})
	log := logrus.New()
	log.SetOutput(t.Output())
	_ = d.agent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetSuccess})
	d.Component = &Component{
		Log: log, Pulse: &loop.Pulse{}, Dirs: []string{filepath.Join(d.root, "none"), d.root},
		Info: &d.info, Status: &d.status, Agent: &d.agent, API: &d.api, Nodes: &d.nodes, Clocks: &d.clocks, Journal: &d.journal, Operations: d, Certificates: &d.out,
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			d.asked <- address
			_, port, _ := net.SplitHostPort(address)
			cfg := d.serves[port]
			if cfg == nil {
				return nil, errors.New("connection refused")
			}
			here, there := net.Pipe()
			go func() {
				_ = tls.Server(there, cfg).Handshake()
				_ = there.Close()
			}()
			return here, nil
		},
	}
	return d
}

func (d *device) step(t *testing.T) types.K3sCertificates {
	t.Helper()
	if err := d.Step(t.Context()); err != nil && !errors.As(err, new(loop.After)) {
		t.Fatal(err)
	}
	s, _ := d.out.Get(types.Global)
	return s
}

func made(t *testing.T, name string, left time.Duration, authority bool) (raw []byte, key *ecdsa.PrivateKey) {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true, IsCA: authority,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(left),
	}
	return signed(t, c, nil, nil)
}

// signed is c, signed by ca with its key, or where that is nil by itself.
func signed(t *testing.T, c *x509.Certificate, ca []byte, by *ecdsa.PrivateKey) (raw []byte, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent := c
	if by == nil {
		by = key
	} else if parent, err = x509.ParseCertificate(ca); err != nil {
		t.Fatal(err)
	}
	if raw, err = x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by); err != nil {
		t.Fatal(err)
	}
	return raw, key
}

// presents has the server at a port present a certificate.
func (d *device) presents(port string, raw []byte, key *ecdsa.PrivateKey) {
	d.serves[port] = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
}

func (d *device) file(t *testing.T, path string, content []byte) {
	t.Helper()
	path = filepath.Join(d.root, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func inPEM(raw ...[]byte) (text []byte) {
	for _, r := range raw {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r})...)
	}
	return text
}

func namesOf(list []types.K3sCertificate) string {
	var names []string
	for _, c := range list {
		names = append(names, c.Name+" "+string(c.State))
	}
	return strings.Join(names, ", ")
}

func TestWhatIsInFilesIsFoundOnceAndAuthoritiesApart(t *testing.T) {
	d := newDevice(t)
	ca, _ := made(t, "ca", 3650*day, true)
	api, _ := made(t, "api", 50*day, false)
	etcd, _ := made(t, "etcd", 300*day, false)
	kubelet, _ := made(t, "kubelet", time.Hour, false)
	d.file(t, "server/tls/server-ca.crt", inPEM(ca))
	d.file(t, "agent/server-ca.crt", inPEM(ca))
	d.file(t, "server/tls/serving-kube-apiserver.crt", inPEM(api, ca))
	d.file(t, "server/tls/serving-kube-apiserver.key", []byte("secret"))
	d.file(t, "server/tls/etcd/server-client.crt", inPEM(etcd))
	d.file(t, "agent/serving-kubelet.crt", inPEM(kubelet))
	s := d.step(t)
	if got := namesOf(s.Leaves); got != "serving-kubelet Urgent, serving-kube-apiserver Due, server-client Fine" {
		t.Error(got)
	}
	if got := namesOf(s.Authorities); got != "server-ca Fine" || s.Authorities[0].Subject != "ca" {
		t.Error(got)
	}
	if n := len(s.Unread); n != 4 { // nobody answers
		t.Errorf("%q", s.Unread)
	}
}

func TestWhatIsInTheFilesAndIsNoCertificateIsSaidAndHurtsNothing(t *testing.T) {
	d := newDevice(t)
	good, _ := made(t, "good", 300*day, false)
	d.file(t, "server/tls/good.crt", inPEM(good))
	d.file(t, "server/tls/empty.crt", nil)
	d.file(t, "server/tls/key.crt", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")}))
	d.file(t, "server/tls/torn.crt", inPEM(good[:len(good)/2]))
	d.file(t, "server/tls/long.crt", append(inPEM(good), make([]byte, maxFile)...))
	if err := os.Symlink("/dev/zero", filepath.Join(d.root, "server/tls/zero.crt")); err != nil {
		t.Fatal(err)
	}
	s := d.step(t)
	if got := namesOf(s.Leaves); got != "good Fine" {
		t.Error(got)
	}
	said := strings.Join(s.Unread, "\n")
	for _, name := range []string{"empty", "key", "torn", "long", "zero"} {
		if !strings.Contains(said, name+".crt") {
			t.Errorf("nothing is said of %s: %s", name, said)
		}
	}
	if strings.Contains(said, "secret") {
		t.Error(said)
	}
}

func TestOutOfReachOfTheFilesTheServersAreSeen(t *testing.T) {
	d := newDevice(t)
	for port, asks := range map[string]tls.ClientAuthType{"6443": tls.RequestClientCert, "10250": tls.NoClientCert, "2379": tls.RequireAnyClientCert, "2380": tls.RequireAnyClientCert} {
		raw, key := made(t, "s"+port, 100*day, false)
		d.serves[port] = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}, ClientAuth: asks}
	}
	d.serves["2380"].MaxVersion = tls.VersionTLS12 // which refuses us before the end of the handshake
	s := d.step(t)
	for _, name := range []string{"API server", "kubelet", "etcd client", "etcd peer"} {
		if !strings.Contains(namesOf(s.Leaves), name+" Renewable") {
			t.Errorf("%s is missing: %+v", name, s)
		}
	}
	for range 4 {
		if a := <-d.asked; !strings.HasPrefix(a, "10.0.0.1:") {
			t.Errorf("asked was %s", a)
		}
	}
	// A worker has a kubelet only, and is asked at its cluster address.
	_ = d.nodes.Publish("n1", types.Node{Name: "n1", UUID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8", InternalIP: "10.0.0.1"})
	_ = d.status.Publish(types.Global, types.EdgeNodeClusterStatus{ClusterIPPrefix: &net.IPNet{IP: net.ParseIP("10.90.7.1"), Mask: net.CIDRMask(24, 32)}})
	s = d.step(t)
	if got := namesOf(s.Leaves); got != "kubelet Renewable" || <-d.asked != "10.90.7.1:10250" || len(d.asked) > 0 {
		t.Errorf("a worker: %s, %d more asked", got, len(d.asked))
	}
}

func TestWhatWasSeenOutlastsAK3sThatIsDown(t *testing.T) {
	d := newDevice(t)
	raw, key := made(t, "kubelet", 100*day, false)
	d.serves["10250"] = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	d.step(t)
	delete(d.serves, "10250")
	if s := d.step(t); namesOf(s.Leaves) != "kubelet Renewable" || len(s.Unread) != 4 {
		t.Errorf("%+v", s)
	}
}

func TestWhatNoAuthorityOfK3sHasSignedIsNotTaken(t *testing.T) {
	d := newDevice(t)
	ca, by := made(t, "ca", 3650*day, true)
	d.file(t, "server/tls/server-ca.crt", inPEM(ca))
	good := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "good"}, NotBefore: time.Now().Add(-day), NotAfter: time.Now().Add(-time.Hour)}
	raw, key := signed(t, good, ca, by)
	d.presents("10250", raw, key) // has expired, which is what we want to know
	raw, key = made(t, "foreign", time.Hour, false)
	d.presents("6443", raw, key)
	raw, key = made(t, "authority", time.Hour, true)
	d.presents("2379", raw, key)
	s := d.step(t)
	if leaves, authorities := namesOf(s.Leaves), namesOf(s.Authorities); leaves != "kubelet Urgent" || authorities != "server-ca Fine" {
		t.Errorf("%s; %s", leaves, authorities)
	}
	said := strings.Join(s.Unread, "\n")
	for _, address := range []string{"10.0.0.1:6443", "10.0.0.1:2379"} {
		if !strings.Contains(said, address+": it presents a certificate that no authority") {
			t.Errorf("nothing is said of %s: %s", address, said)
		}
	}
	// Without the files an authority is refused none the less: no server of k3s presents one.
	d = newDevice(t)
	d.presents("2379", raw, key)
	if s := d.step(t); len(s.Leaves)+len(s.Authorities) > 0 {
		t.Errorf("%+v", s)
	}
}

func TestTheLargestThatAnybodyMayPresentFitsIntoTheTopic(t *testing.T) {
	d := newDevice(t)
	huge := strings.Repeat("\x01<", 20_000)
	for i, port := range []string{"6443", "10250", "2379", "2380"} {
		c := &x509.Certificate{SerialNumber: big.NewInt(int64(i)), Subject: pkix.Name{CommonName: huge}, NotBefore: time.Now().Add(time.Hour), NotAfter: time.Now().Add(day)}
		if port == "2380" { // its parser quotes what it refuses
			c.Subject.CommonName, c.URIs = "uri", []*url.URL{{Opaque: "http://[" + strings.Repeat("<", 40_000)}}
		}
		raw, key := signed(t, c, nil, nil)
		d.presents(port, raw, key)
	}
	for i := range maxFiles { // of k3s itself, more than it has
		leaf, _ := made(t, strings.Repeat("n", 64), 300*day, false)
		for _, dir := range []string{"server/tls", "server/tls/etcd", "agent"} {
			d.file(t, filepath.Join(dir, fmt.Sprintf("%040d.crt", i)), inPEM(leaf))
		}
	}
	bus := pubsub.NewBus(t.TempDir(), d.Log)
	topic := pubsub.NewPublication[types.K3sCertificates](bus, "zedkube", pubsub.Persistent())
	d.Certificates = topic
	if err := bus.Open(); err != nil {
		t.Fatal(err)
	}
	if err := d.Step(t.Context()); !errors.As(err, new(loop.After)) {
		t.Fatal(err)
	}
	s, _ := topic.Get(types.Global)
	if len(s.Leaves) != maxLeaves || len(s.Unread) == 0 {
		t.Errorf("%d leaves, %q", len(s.Leaves), s.Unread)
	}
}

func TestATimeThatJSONCannotWriteIsRefused(t *testing.T) {
	raw, _ := made(t, "late", 300*day, false)
	var c struct {
		TBS struct {
			Version, Serial, Algorithm, Issuer asn1.RawValue
			Validity                           struct{ NotBefore, NotAfter asn1.RawValue }
			Subject, Key, Extensions           asn1.RawValue
		}
		Algorithm, Signature asn1.RawValue
	}
	if _, err := asn1.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	// An hour west of Greenwich, where it is the year 10000.
	c.TBS.Validity.NotAfter = asn1.RawValue{Tag: asn1.TagGeneralizedTime, Bytes: []byte("99991231235959-0100")}
	raw, err := asn1.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	d := newDevice(t)
	good, _ := made(t, "good", 300*day, false)
	d.file(t, "agent/good.crt", inPEM(good))
	d.file(t, "agent/late.crt", inPEM(raw))
	s := d.step(t)
	if _, err := json.Marshal(s); err != nil || namesOf(s.Leaves) != "good Fine" || !strings.Contains(strings.Join(s.Unread, "\n"), "late.crt: the dates") {
		t.Errorf("%v: %+v", err, s)
	}
}

func TestAClockThatIsSetBackIsInTheAudit(t *testing.T) {
	d := newDevice(t)
	leaf, _ := made(t, "kubelet", 300*day, false)
	d.file(t, "agent/serving-kubelet.crt", inPEM(leaf))
	d.step(t)
	if len(d.did) > 0 {
		t.Errorf("%+v", d.did)
	}
	ahead := types.K3sCertificates{SeenAt: time.Now().Add(3650 * day)}
	_ = d.out.Publish(types.Global, ahead)
	if s := d.step(t); s.ClockDoubt != "" || !s.SeenAt.Before(time.Now().Add(time.Minute)) {
		t.Errorf("%+v", s)
	}
	if len(d.did) != 1 || d.did[0].Op != "set back newest time" || !strings.Contains(d.did[0].Why, ahead.SeenAt.UTC().Format(time.RFC3339)) {
		t.Errorf("%+v", d.did)
	}
}

func TestAWorkersFilesOfAFormerServerAreNotRead(t *testing.T) {
	d := newDevice(t)
	old, _ := made(t, "old", -time.Hour, false)
	kubelet, _ := made(t, "kubelet", 300*day, false)
	d.file(t, "server/tls/client-admin.crt", inPEM(old))
	d.file(t, "agent/serving-kubelet.crt", inPEM(kubelet))
	if got := namesOf(d.step(t).Leaves); got != "client-admin Urgent, serving-kubelet Fine" {
		t.Errorf("a server: %s", got)
	}
	_ = d.nodes.Publish("n1", types.Node{Name: "n1", UUID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8", InternalIP: "10.0.0.1"})
	if got := namesOf(d.step(t).Leaves); got != "serving-kubelet Fine" {
		t.Errorf("a worker: %s", got)
	}
}

func TestTheSchedulersAndControllerManagersAreReadToo(t *testing.T) {
	d := newDevice(t)
	for i, name := range []string{"kube-scheduler", "kube-controller-manager"} {
		raw, _ := made(t, name, time.Duration(300+i)*day, false)
		d.file(t, filepath.Join("server/tls", name, name+".crt"), inPEM(raw))
	}
	if got := namesOf(d.step(t).Leaves); got != "kube-scheduler Fine, kube-controller-manager Fine" {
		t.Error(got)
	}
}

func TestWhileOneIsAboutToExpireItIsReadMoreOften(t *testing.T) {
	d := newDevice(t)
	for left, want := range map[time.Duration]time.Duration{300 * day: 0, 100 * day: 0, 50 * day: dueEvery, -day: dueEvery} {
		leaf, _ := made(t, "kubelet", left, false)
		d.file(t, "agent/serving-kubelet.crt", inPEM(leaf))
		var after loop.After
		if errors.As(d.Step(t.Context()), &after); time.Duration(after) != want {
			t.Errorf("%v: again after %v", left, after)
		}
	}
}

func TestWhileTheClockIsDoubtedTheyAreReadAgainSoon(t *testing.T) {
	d := newDevice(t)
	leaf, _ := made(t, "kubelet", 50*day, false)
	d.file(t, "agent/serving-kubelet.crt", inPEM(leaf))
	_ = d.agent.Publish(types.ZedAgentKey, types.ZedAgentStatus{})
	_ = d.api.Publish(types.Global, types.APIStatus{Synced: true})
	_ = d.nodes.Publish("n2", types.Node{Name: "n2"})
	_ = d.out.Publish(types.Global, types.K3sCertificates{SeenAt: time.Now().Add(-90 * day)})
	for _, row := range []struct {
		ahead time.Duration // of the other node's clock
		want  time.Duration
	}{{-90 * day, soon}, {0, dueEvery}} {
		_ = d.clocks.Publish("n2", types.NodeClock{Node: "n2", Ahead: row.ahead})
		var after loop.After
		if errors.As(d.Step(t.Context()), &after); time.Duration(after) != row.want {
			s, _ := d.out.Get(types.Global)
			t.Errorf("%v: again after %v (%q)", row.ahead, after, s.ClockDoubt)
		}
	}
}

func TestWhileK3sIsRestartedTheyAreReadAgainSoon(t *testing.T) {
	d := newDevice(t)
	leaf, _ := made(t, "kubelet", 300*day, false)
	d.file(t, "agent/serving-kubelet.crt", inPEM(leaf))
	for kind, want := range map[types.K3sChange]time.Duration{types.K3sRestart: renewing, types.K3sPatch: 0} {
		_ = d.journal.Publish(types.Global, types.KubeLifecycleJournal{Step: types.K3sStepChange, Kind: kind})
		var after loop.After
		if errors.As(d.Step(t.Context()), &after); time.Duration(after) != want {
			t.Errorf("%s: again after %v", kind, after)
		}
	}
}

func TestOnlyTheClocksOfOtherNodesConfirmThisOne(t *testing.T) {
	answers := types.APIStatus{Synced: true}
	for name, r := range map[string]struct {
		clocks    map[string]time.Duration
		api       types.APIStatus
		confirmed bool
	}{
		"both others agree":                        {map[string]time.Duration{"n2": 0, "n3": time.Minute}, answers, true},
		"both others agree, and its own is unlike": {map[string]time.Duration{"n1": 9000 * time.Hour, "n2": 0, "n3": time.Minute}, answers, true},
		"nobody but this node":                     {map[string]time.Duration{"n1": 0}, answers, false},
		"one of two others":                        {map[string]time.Duration{"n1": 0, "n2": 0, "n3": -90 * day}, answers, false},
		"one that is lost, as it was last seen":    {map[string]time.Duration{"n4": 0}, answers, false},
		"one, and one that is lost does not count": {map[string]time.Duration{"n2": 0, "n4": day}, answers, true},
		"a node that is gone":                      {map[string]time.Duration{"n9": 0}, answers, false},
		"one of two others, and one that is gone":  {map[string]time.Duration{"n2": 0, "n3": day, "n9": 0}, answers, false},
		"both others, before the API was silent":   {map[string]time.Duration{"n2": 0, "n3": 0}, types.APIStatus{Synced: true, SilentSince: time.Now()}, false},
		"both others, before a new connection":     {map[string]time.Duration{"n2": 0, "n3": 0}, types.APIStatus{}, false},
	} {
		d := newDevice(t)
		leaf, _ := made(t, "kubelet", 300*day, false)
		d.file(t, "agent/serving-kubelet.crt", inPEM(leaf))
		_ = d.agent.Publish(types.ZedAgentKey, types.ZedAgentStatus{})
		_ = d.api.Publish(types.Global, r.api)
		for _, other := range []string{"n2", "n3"} {
			_ = d.nodes.Publish(other, types.Node{Name: other})
		}
		_ = d.nodes.Publish("n4", types.Node{Name: "n4", Ready: types.ConditionUnknown})
		for node, ahead := range r.clocks {
			_ = d.clocks.Publish(node, types.NodeClock{Node: node, Ahead: ahead})
		}
		seen := time.Now().Add(-90 * day)
		_ = d.out.Publish(types.Global, types.K3sCertificates{SeenAt: seen})
		if s := d.step(t); (s.ClockDoubt == "") != r.confirmed || s.SeenAt.After(seen) != r.confirmed {
			t.Errorf("%s: %q, %v", name, s.ClockDoubt, s.SeenAt)
		}
		_ = d.nodes.Unpublish("n1") // which of the clocks is its own is not known
		_ = d.out.Publish(types.Global, types.K3sCertificates{SeenAt: seen})
		if s := d.step(t); s.ClockDoubt == "" {
			t.Errorf("%s, its own Node is gone: %v", name, s.SeenAt)
		}
	}
}
