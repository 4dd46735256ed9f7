// Package k3scerts watches when the certificates of k3s on this node expire: k3s renews them
// only when it starts, and its authorities never (docs/wire.md, "K3sCertificates"). It
// changes nothing.
//
//	reads:  certificates in files and in handshakes, EdgeNodeInfo, EdgeNodeClusterStatus, ZedAgentStatus, KubeLifecycleJournal, APIStatus, nodes and their clocks
//	writes: K3sCertificates
package k3scerts

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	period      = time.Hour        // each handshake without a client certificate is a line in etcd's log
	dueEvery    = 5 * time.Minute  // while one is about to expire
	soon        = time.Minute      // while this node's address is not known, or its clock is doubted
	renewing    = 15 * time.Second // while k3s is restarted to renew them
	showsWithin = 5 * time.Second  // for one handshake; all are made at once
	maxFile     = 64 << 10         // of a certificate with its chain, in bytes
	maxFiles    = 64               // of a directory
	maxUnread   = 20
	maxError    = 300 // of a text of Unread, in bytes
	maxName     = 100 // of a name or a subject
	extension   = ".crt"
)

// Where k3s has its files: in EVE's persistent storage, and elsewhere. The first that is
// there counts.
const (
	DefaultDir = "/persist/vault/kube/rancher/k3s"
	OtherDir   = "/var/lib/rancher/k3s"
)

// Component is the watch. Every field is required.
type Component struct {
	Log    logrus.FieldLogger
	Pulse  *loop.Pulse
	Dirs   []string
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Info   pubsub.Reader[types.EdgeNodeInfo]
	Status pubsub.Reader[types.EdgeNodeClusterStatus]
	Agent  pubsub.Reader[types.ZedAgentStatus]
	API    pubsub.Reader[types.APIStatus]
	Nodes  pubsub.Reader[types.Node]
	Clocks pubsub.Reader[types.NodeClock]
	// Journal says when k3s is restarted to renew them.
	Journal pubsub.Reader[types.KubeLifecycleJournal]

	Operations   types.OperationLog
	Certificates pubsub.Writer[types.K3sCertificates]
}

// Run steps until ctx is done.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Info, c.Status, c.Agent, c.Journal)
}

// Step looks, decides and publishes once.
func (c *Component) Step(ctx context.Context) error {
	f := facts{now: time.Now().UTC(), clocks: map[string]types.NodeClock{}}
	agent, _ := c.Agent.Get(types.ZedAgentKey)
	f.contact = agent.ConfigGetStatus == types.ConfigGetSuccess
	f.published, _ = c.Certificates.Get(types.Global)
	info, _ := c.Info.Get(types.Global)
	nodes := c.Nodes.All()
	own, named := types.OwnNode(nodes, info)
	for name, clock := range c.Clocks.All() {
		if n, there := nodes[name]; there && name != own.Name && n.Ready != types.ConditionUnknown { // the last reading of one that is lost may have come late
			f.clocks[name] = clock
		}
	}
	api, known := c.API.Get(types.Global)
	f.hears = named && known && api.Answers() && api.Synced
	status, _ := c.Status.Get(types.Global)
	host := own.InternalIP
	if address, ok := status.OwnAddress(); ok {
		host = address.String()
	}
	seen := map[[sha256.Size]byte]bool{} // one that is in several places counts once
	var signers []*x509.Certificate
	fail := func(where string, err error) {
		if len(f.unread) < maxUnread { // crypto/x509 quotes from the certificate
			f.unread = append(f.unread, phrase.Cut(fmt.Sprintf("%s: %v", where, err), maxError))
		}
	}
	take := func(cert *x509.Certificate, name, where string) {
		id := sha256.Sum256(cert.Raw)
		row := types.K3sCertificate{
			Name: phrase.Cut(name, maxName), Where: where, Subject: phrase.Cut(cert.Subject.CommonName, maxName),
			NotBefore: cert.NotBefore.UTC(), NotAfter: cert.NotAfter.UTC(),
		}
		switch inFile := filepath.IsAbs(where); {
		case seen[id]:
			return
		case row.NotBefore.Year() < 1 || row.NotAfter.Year() > 9999: // JSON has no such time
			fail(where, errors.New("the dates of its certificate are out of range"))
		case !inFile && (cert.IsCA || len(signers) > 0 && !slices.ContainsFunc(signers, func(ca *x509.Certificate) bool { return cert.CheckSignatureFrom(ca) == nil })):
			fail(where, errors.New("it presents a certificate that no authority of k3s has signed"))
		case cert.IsCA:
			f.authorities, signers = append(f.authorities, row), append(signers, cert)
		default:
			f.leaves = append(f.leaves, row)
		}
		seen[id] = true
	}
	readFiles(c.Dirs, !named || own.HasAPIServer(), take, fail)
	c.shake(ctx, host, own, named, take, fail)
	s := decide(f)
	if err := c.Certificates.Publish(types.Global, s); err != nil {
		return fmt.Errorf("publish K3sCertificates: %w", err)
	}
	if s.SeenAt.Before(f.published.SeenAt) {
		why := fmt.Sprintf("the controller and the other nodes confirm the clock, and this node had seen %s", f.published.SeenAt.Format(time.RFC3339))
		types.Did(types.Because(ctx, "", why), c.Operations, "set back newest time", "topic/K3sCertificates", nil)
	}
	journal, _ := c.Journal.Get(types.Global)
	switch {
	case journal.Kind == types.K3sRestart:
		return loop.Again(renewing)
	case !named, s.ClockDoubt != "": // the clocks that may confirm this one ring for nobody
		return loop.Again(soon)
	case slices.ContainsFunc(s.Leaves, func(l types.K3sCertificate) bool { return l.State == types.CertDue || l.State == types.CertUrgent }):
		return loop.Again(dueEvery) // a restart of k3s renews it
	}
	return nil
}

// readFiles takes the first certificate of each file, behind which its chain may follow.
// On a worker nobody renews what is left of a former server.
func readFiles(dirs []string, isServer bool, take func(*x509.Certificate, string, string), fail func(string, error)) {
	for _, dir := range dirs {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for _, sub := range []string{"server/tls", "server/tls/etcd", "server/tls/kube-scheduler", "server/tls/kube-controller-manager", "agent"} {
			if !isServer && sub != "agent" {
				continue
			}
			names, err := safefile.Names(filepath.Join(dir, sub), maxFiles)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				fail(filepath.Join(dir, sub), err)
			}
			for _, name := range names {
				path := filepath.Join(dir, sub, name)
				if filepath.Ext(name) != extension {
					continue
				}
				cert, err := readCertificate(path)
				if err != nil {
					fail(path, err)
					continue
				}
				take(cert, strings.TrimSuffix(name, extension), path)
			}
		}
		return
	}
}

func readCertificate(path string) (*x509.Certificate, error) {
	content, err := safefile.Read(path, maxFile)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("it has no certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}

// shake takes what this node's servers present, as far as it has them: what they serve may be
// older than their files, and the files may be out of reach.
func (c *Component) shake(ctx context.Context, host string, own types.Node, named bool, take func(*x509.Certificate, string, string), fail func(string, error)) {
	if host == "" {
		return
	}
	isServer := !named || own.HasAPIServer()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, s := range []struct {
		name string
		port int
		has  bool
	}{{"API server", types.PortAPI, isServer}, {"kubelet", types.PortKubelet, true}, {"etcd client", types.PortEtcdClient, !named || own.Etcd}, {"etcd peer", types.PortEtcdPeer, !named || own.Etcd}} {
		if !s.has {
			continue
		}
		all.Go(func() {
			address := net.JoinHostPort(host, strconv.Itoa(s.port))
			cert, err := presented(ctx, c.Dial, address)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				fail(s.name+" "+address, err)
				return
			}
			take(cert, s.name, address)
		})
	}
	all.Wait()
}

// presented is the certificate that a server presents at address, of k3s or not.
func presented(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), address string) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, showsWithin)
	defer cancel()
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var cert *x509.Certificate
	err = tls.Client(conn, &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // nothing is sent, and nothing but the dates of the certificate is used
		VerifyConnection: func(s tls.ConnectionState) error {
			cert = s.PeerCertificates[0]
			return nil
		},
	}).HandshakeContext(ctx)
	if cert != nil { // a server that wants a certificate from us ends the handshake afterwards
		return cert, nil
	}
	return nil, err
}
