package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	kubeedge "github.com/zedkube/zedkube/kubeapi/edge"
	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/edge/certificates"
	"github.com/zedkube/zedkube/pkg/edge/cloud"
	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/pkg/edge/path"
	"github.com/zedkube/zedkube/pkg/edge/settings"
	"github.com/zedkube/zedkube/pkg/edge/stream"
)

// keeping has a client that keeps these views in sight until ctx is done.
func keeping(ctx context.Context, kubeconfig string, of []cloud.View) (client *kubeedge.Client, ended <-chan struct{}, err error) {
	if client, err = kubeedge.Connect(kubeconfig); err != nil {
		return nil, nil, err
	}
	end := make(chan struct{})
	go func() {
		defer close(end)
		client.Keep(ctx, views(of))
	}()
	return client, end, nil
}

// asking is the API server as the stream asks it.
type asking struct{ *kubeedge.Client }

func (a asking) Who(ctx context.Context, token string) (stream.User, bool, error) {
	who, known, err := a.Client.Who(ctx, token)
	return stream.User(who), known, err
}

func (a asking) May(ctx context.Context, who stream.User, what stream.Access) (bool, string, error) {
	return a.Client.May(ctx, kubeedge.Caller(who), what.Node, what.Verb, what.Subresource)
}

func (a asking) Node(nameOrAddress string) (stream.Node, bool) {
	seen, _ := a.Seen()
	name, address, since, known := cloud.Edge(seen, nameOrAddress)
	return stream.Node{Name: name, Address: address, Since: since}, known
}

func (a asking) NodeOf(ctx context.Context, namespace, pod string) (string, error) {
	o, err := a.Get(ctx, object.Ref{Kind: object.Pod, Namespace: namespace, Name: pod})
	return o.Text("spec", "nodeName"), err
}

// serveStream stands before the stream of the cloudcore in this pod until ctx is done.
func serveStream(ctx context.Context, log logrus.FieldLogger, kubeconfig string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf(":%d", settings.StreamPort))
	if err != nil {
		return fmt.Errorf("serve the stream: %w", err)
	}
	return streamAt(ctx, log, kubeconfig, l, cloud.StreamDir, fmt.Sprintf("127.0.0.1:%d", settings.StreamBehind))
}

// streamAt serves on l, with the certificate of a directory, what listens at behind.
func streamAt(ctx context.Context, log logrus.FieldLogger, kubeconfig string, l net.Listener, dir, behind string) error {
	defer l.Close()
	certificate, err := tls.LoadX509KeyPair(filepath.Join(dir, "stream.crt"), filepath.Join(dir, "stream.key"))
	if err != nil {
		return fmt.Errorf("read the stream's certificate: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "streamCA.crt"))
	if err != nil {
		return fmt.Errorf("read by what clients are known: %w", err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(text) {
		return errors.New("read by what clients are known: streamCA.crt has no certificate")
	}
	ctx, cancel := context.WithCancel(ctx)
	client, ended, err := keeping(ctx, kubeconfig, []cloud.View{{Ref: object.Ref{Kind: object.Node}}})
	if err != nil {
		cancel()
		return err
	}
	defer func() { cancel(); <-ended }()
	return stream.Server{Log: log, Kube: asking{client}, Certificate: certificate, Clients: clients, Behind: behind}.Serve(ctx, l)
}

// signing is what the cluster has of cloudcore.
type signing struct {
	cluster interface {
		Seen() (map[object.Ref]object.Object, bool)
	}
	mu      sync.Mutex
	of      string          // the version of the Secret that serving was read of
	serving tls.Certificate // kept: each handshake asks for it
}

// Authority implements certificates.Kube.
func (k *signing) Authority() (a certificates.Authority, err error) {
	seen, _ := k.cluster.Seen()
	if a.CA, a.Key = cloud.Authority(seen[cloud.RefCA]); len(a.CA) == 0 || len(a.Key) == 0 {
		return a, errors.New("cloudcore has no authority yet")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	secret := seen[cloud.RefServing]
	if of := secret.UID() + "/" + secret.Version(); of != k.of {
		if k.serving, err = cloud.Serving(secret); err != nil {
			k.of = ""
			return a, err
		}
		k.of = of
	}
	a.Serving = k.serving
	return a, nil
}

// Asked implements certificates.Kube.
func (k *signing) Asked(name string) (address string, asked bool) {
	seen, _ := k.cluster.Seen()
	record, _ := cloud.RecordOf(seen, time.Now()) // an entry that cannot be read is the controller's to report, and no other's fault
	a, asked := record.Asked[name]
	return a.Address, asked
}

// serveBefore stands before a port of the cloudcore in this pod until ctx is done.
func serveBefore(ctx context.Context, log logrus.FieldLogger, kubeconfig string, port, behind int, serve front) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return fmt.Errorf("serve before cloudcore: %w", err)
	}
	return beforeAt(ctx, log, kubeconfig, l, fmt.Sprintf("127.0.0.1:%d", behind), serve)
}

// front is what serves there.
type front func(s certificates.Server, ctx context.Context, l net.Listener) error

func beforeAt(ctx context.Context, log logrus.FieldLogger, kubeconfig string, l net.Listener, behind string, serve front) error {
	defer l.Close()
	ctx, cancel := context.WithCancel(ctx)
	client, ended, err := keeping(ctx, kubeconfig, []cloud.View{{Ref: cloud.RefCA}, {Ref: cloud.RefServing}, {Ref: cloud.RefNodes}})
	if err != nil {
		cancel()
		return err
	}
	defer func() { cancel(); <-ended }()
	return serve(certificates.Server{Log: log, Kube: &signing{cluster: client}, Behind: behind}, ctx, l)
}

// leading is what the path is told by the cluster.
type leading struct{ *kubeedge.Client }

// Wanted implements path.Kube.
func (k leading) Wanted() (path.Wanted, error) {
	seen, whole := k.Seen()
	if !whole {
		return path.Wanted{}, errors.New("the settings are not in sight yet")
	}
	s, record, err := cloud.Tunnels(seen)
	if err != nil || record == nil {
		return path.Wanted{}, err
	}
	block, err := netip.ParsePrefix(s.EdgeBlock)
	if err != nil {
		return path.Wanted{}, fmt.Errorf("read edgeBlock: %w", err)
	}
	return path.Wanted{Block: block, Ports: path.Ports(record, settings.StreamPort, s.Destination(), s.LogPort, s.MetricsPort)}, nil
}

// servePath leads requests for edge nodes on this server until ctx is done.
func servePath(ctx context.Context, log logrus.FieldLogger, kubeconfig string) error {
	ready, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", cloud.PathReady))
	if err != nil {
		return fmt.Errorf("serve readiness: %w", err)
	}
	return pathWith(ctx, log, kubeconfig, path.Routes{}, ready)
}

func pathWith(ctx context.Context, log logrus.FieldLogger, kubeconfig string, host path.Host, ready net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	client, ended, err := keeping(ctx, kubeconfig, cloud.PathViews())
	if err != nil {
		cancel()
		return errors.Join(err, ready.Close())
	}
	defer func() { cancel(); <-ended }()
	c := &path.Component{Log: log, Pulse: &loop.Pulse{}, Kube: leading{client}, Host: host}
	web := boundedhttp.Serve(log, "readiness", ready, &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := c.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})})
	c.Run(ctx)
	if err := web.Until(ctx); err != nil {
		return fmt.Errorf("serve readiness: %w", err)
	}
	return nil
}
