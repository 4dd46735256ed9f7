// Package stream stands before the port of cloudcore at which logs, exec and metrics of edge nodes are to be had.
// cloudcore asks nobody there who he is; this asks as the kubelet of a node does: a client certificate of the cluster
// or a token, and the permissions of nodes/proxy, nodes/stats and so on (docs/edge.md, "Who may read and execute").
//
//	reads:  edge nodes; TokenReviews and SubjectAccessReviews for each request
//	serves: port 10003 of cloudcore's pod, and passes on to 127.0.0.1
package stream

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/edge/settings"
)

const (
	connections  = 1000 // at once without a request of somebody who may
	requests     = 1000 // at once of those who may; each follows a log or is short
	headerBytes  = 64 << 10
	headerWithin = 10 * time.Second
	// answerWithin is how long an edge node may take to begin its answer. KubeEdge itself waits for ever for one
	// that is cut off. A log that is followed has no such limit: its answer begins with its next line.
	answerWithin = 10 * time.Second
	looksEvery   = 5 * time.Second // whether the edge node of a request is still Ready
	asksWithin   = 5 * time.Second // of the API server, whether somebody may
	meetsWithin  = 5 * time.Second // cloudcore beside it, before that begins to ask the edge node
	idleFor      = 2 * time.Minute

	// silent is the code for an edge node that does not answer. Of one of those that would fit better, 503 and 504, the
	// API server does not pass on to kubectl what it says.
	silent = http.StatusBadGateway
)

// User is who asks, as the API server knows him.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Access is what he wants of an edge node.
type Access struct {
	Node, Verb, Subresource string
}

// Node is what is known of an edge node.
type Node struct {
	Name, Address string
	// Since is when it was last seen to change to not Ready; zero while it is Ready.
	Since time.Time
}

// Kube answers who somebody is and what he may.
type Kube interface {
	// Who returns whose token that is. known is false where it is nobody's.
	Who(ctx context.Context, token string) (who User, known bool, err error)
	// May returns nil where he may, and an error that says why not where he may not.
	May(ctx context.Context, who User, what Access) (may bool, why string, err error)
	// Node returns the edge node of that name or address.
	Node(nameOrAddress string) (n Node, known bool)
	// NodeOf returns the name of the node that has a pod; "" where there is no such pod.
	NodeOf(ctx context.Context, namespace, pod string) (node string, err error)
}

// Server serves one pod of cloudcore. Every field is required.
type Server struct {
	Log         logrus.FieldLogger
	Kube        Kube
	Certificate tls.Certificate // the one that cloudcore uses too
	Clients     *x509.CertPool  // who may have signed a client's certificate
	Behind      string          // where cloudcore listens, as in 127.0.0.1:10013
}

// Serve serves until ctx is done.
func (s Server) Serve(ctx context.Context, l net.Listener) error {
	handler, err := s.handler()
	if err != nil {
		return err
	}
	web := boundedhttp.Serve(s.Log, "stream", &boundedhttp.Newest{Listener: l, Most: connections}, &http.Server{
		Handler: handler, ReadHeaderTimeout: headerWithin, IdleTimeout: idleFor, MaxHeaderBytes: headerBytes,
		BaseContext: func(net.Listener) context.Context { return ctx },
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{s.Certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: s.Clients,
		},
	})
	if err := web.Until(ctx); err != nil {
		return fmt.Errorf("serve the stream: %w", err)
	}
	return nil
}

func (s Server) handler() (http.Handler, error) {
	config, err := boundedhttp.Pinned(s.Certificate)
	if err != nil {
		return nil, err
	}
	behind := &url.URL{Scheme: "https", Host: s.Behind}
	follow := &http.Transport{
		TLSClientConfig:     config,
		DialContext:         (&net.Dialer{Timeout: meetsWithin}).DialContext,
		TLSHandshakeTimeout: meetsWithin,
		DisableKeepAlives:   true,
	}
	other := follow.Clone()
	other.ResponseHeaderTimeout = answerWithin
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(behind)
			// cloudcore finds the edge node by what was found here, and by nothing else that the request says.
			r.Out.URL.Path, r.Out.URL.RawPath = r.In.URL.Path, ""
			r.Out.Header.Del("X-Forwarded-Uri")
			r.Out.Header.Del("Authorization")
			if to, known := r.In.Context().Value(found{}).(Node); known {
				r.Out.Host = net.JoinHostPort(cmp.Or(to.Address, to.Name), strconv.Itoa(settings.StreamPort))
			}
		},
		FlushInterval:  -1, // a log is followed
		Transport:      transports{follow: follow, other: other},
		ErrorLog:       stdlog.New(io.Discard, "", 0),
		ModifyResponse: believe,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			to, _ := r.Context().Value(found{}).(Node)
			cause := context.Cause(r.Context())
			text, late := "the connection to cloudcore has ended", net.Error(nil)
			switch {
			case errors.As(cause, &offlineError{}):
				text = cause.Error()
			case errors.As(err, &late) && late.Timeout():
				text = fmt.Sprintf("edge node %s has not answered within %s", to.Name, answerWithin)
			}
			if !errors.Is(cause, context.Canceled) { // neither has who asked gone, nor does this server end
				s.Log.WithError(err).Warnf("no answer of edge node %s: %s", to.Name, text)
			}
			boundedhttp.Refuse(w, text, silent)
		},
	}
	refusals := &rate.Sometimes{Interval: time.Second} // a stranger does not fill the log
	places := make(chan struct{}, requests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, to, code, why := s.admit(r)
		if code != http.StatusOK {
			refusals.Do(func() {
				s.Log.Warnf("refused %s %s to %q from %s: %s", r.Method, r.URL.Path, who.Name, r.RemoteAddr, why)
			})
			boundedhttp.Refuse(w, why, code)
			return
		}
		if r.Method != http.MethodGet || r.Header.Get("Upgrade") != "" {
			s.Log.Infof("%s: %s %s of %s", who.Name, r.Method, r.URL.Path, to.Name)
		}
		select {
		case places <- struct{}{}:
		default:
			boundedhttp.Refuse(w, fmt.Sprintf("%d requests are served already", requests), http.StatusServiceUnavailable)
			return
		}
		defer func() { <-places }()
		_, release := boundedhttp.Keep(r)
		defer release()
		ctx, cancel := context.WithCancelCause(context.WithValue(r.Context(), found{}, to))
		defer cancel(nil)
		go s.watch(ctx, to, cancel)
		pass.ServeHTTP(w, r.WithContext(ctx))
	}), nil
}

// believe lets an answer through, unless its request has ended: because the edge node is lost, who asked has gone, or
// this server ends. cloudcore may still have written one then, as its own request has ended too.
func believe(a *http.Response) error {
	ctx := a.Request.Context()
	if a.StatusCode != http.StatusSwitchingProtocols { // which is written to as well
		a.Body = following{a.Body, ctx}
	}
	return context.Cause(ctx)
}

// following is the body of an answer. Nor has it a good end once its request has ended.
type following struct {
	io.ReadCloser
	request context.Context
}

func (f following) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if cause := context.Cause(f.request); errors.Is(err, io.EOF) && cause != nil {
		err = cause
	}
	return n, err
}

// watch ends a request when its edge node is no longer Ready: KubeEdge would let it wait.
func (s Server) watch(ctx context.Context, to Node, end context.CancelCauseFunc) {
	next := time.NewTicker(looksEvery)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			switch now, known := s.Kube.Node(to.Name); {
			case !known:
				end(offlineError{to})
				return
			case !now.Since.IsZero():
				end(offlineError{now})
				return
			}
		}
	}
}

// offlineError is why a request for an edge node is not answered. Without Since the node is gone.
type offlineError struct{ Node }

func (e offlineError) Error() string {
	if e.Since.IsZero() {
		return fmt.Sprintf("edge node %s is no longer in the cluster", e.Name)
	}
	return fmt.Sprintf("edge node %s is offline since %s; its logs can be read when it is back", e.Name, e.Since.UTC().Format(time.RFC3339))
}

// transports are the ways to cloudcore.
type transports struct{ follow, other http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transports) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Path, "/containerLogs/") && r.URL.Query().Get("follow") == "true" {
		return t.follow.RoundTrip(r)
	}
	return t.other.RoundTrip(r)
}

// found is the key of the edge node that a request is for.
type found struct{}

// admit says whether a request is passed on, and to which edge node: http.StatusOK, or another code and why not.
func (s Server) admit(r *http.Request) (who User, to Node, code int, why string) {
	ctx, cancel := context.WithTimeout(r.Context(), asksWithin)
	defer cancel()
	who, known, err := s.who(ctx, r)
	if err != nil {
		s.Log.WithError(err).Warn("it cannot be asked whose token that is")
		return who, to, http.StatusServiceUnavailable, "it cannot be asked who you are" // the reason is for those who are known
	}
	if !known {
		return who, to, http.StatusUnauthorized, "neither a client certificate of this cluster nor a valid token"
	}
	to, there, err := s.target(ctx, r)
	if err != nil {
		return who, to, http.StatusServiceUnavailable, "it cannot be asked which edge node that is: " + err.Error()
	}
	for _, what := range wanted(r, to.Name) {
		may, reason, err := s.Kube.May(ctx, who, what)
		if err != nil {
			return who, to, http.StatusServiceUnavailable, "it cannot be asked what you may: " + err.Error()
		}
		if may {
			why = ""
			break
		}
		why = strings.TrimSuffix(fmt.Sprintf("%s may not %s nodes/%s of %s: %s", who.Name, what.Verb, what.Subresource, cmp.Or(what.Node, "all nodes"), reason), ": ")
	}
	switch {
	case why != "":
		return who, to, http.StatusForbidden, why
	case !there:
		return who, to, http.StatusNotFound, "no edge node has that: " + r.URL.Path
	case !to.Since.IsZero():
		return who, to, silent, offlineError{to}.Error()
	}
	return who, to, http.StatusOK, ""
}

// target is the edge node that a request is for, as cloudcore will take it: of a log, an exec or an attach the one that
// has the pod; of measurements the one whose address is asked, or, since the API server passes on its own address with
// nodes/proxy, the one that it says in X-Forwarded-Uri. KubeEdge serves nothing else.
func (s Server) target(ctx context.Context, r *http.Request) (to Node, there bool, err error) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if slices.Contains(parts, "..") || slices.Contains(parts, ".") || slices.Contains(parts, "") {
		return to, false, nil
	}
	switch n := len(parts); {
	case parts[0] == "containerLogs" && n == 4, (parts[0] == "exec" || parts[0] == "attach") && (n == 4 || n == 5):
		name, err := s.Kube.NodeOf(ctx, parts[1], parts[2])
		if err != nil || name == "" {
			return to, false, err
		}
		to, there = s.Kube.Node(name)
	case parts[0] == "stats", parts[0] == "metrics":
		address, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			address = r.Host
		}
		if to, there = s.Kube.Node(address); there {
			break
		}
		if said := strings.Split(r.Header.Get("X-Forwarded-Uri"), "/"); len(said) > 6 && strings.Join(said[:4], "/") == "/api/v1/nodes" {
			name := strings.Split(said[4], ":") // NAME, or as in https:NAME:10351
			to, there = s.Kube.Node(name[min(1, len(name)-1)])
		}
	}
	return to, there, nil
}

// who finds out who asks, by his certificate or by his token. The handshake has verified the certificate.
func (s Server) who(ctx context.Context, r *http.Request) (User, bool, error) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		name := r.TLS.PeerCertificates[0].Subject
		return User{Name: name.CommonName, Groups: append(name.Organization, "system:authenticated")}, name.CommonName != "", nil
	}
	token, has := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !has || token == "" {
		return User{}, false, nil
	}
	return s.Kube.Who(ctx, token)
}

// wanted is what a kubelet would ask permission for, one of which suffices (Kubernetes,
// "Kubelet authentication/authorization").
func wanted(r *http.Request, node string) []Access {
	verbs := map[string]string{
		http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create", http.MethodPut: "update",
		http.MethodPatch: "patch", http.MethodDelete: "delete",
	}
	at := Access{Node: node, Verb: verbs[r.Method], Subresource: "proxy"}
	if at.Verb == "" {
		at.Verb = strings.ToLower(r.Method)
	}
	below := func(path string) bool { return r.URL.Path == path || strings.HasPrefix(r.URL.Path, path+"/") }
	of := func(subresource string) Access { return Access{node, at.Verb, subresource} }
	switch {
	case below("/stats"):
		return []Access{of("stats")}
	case below("/metrics"):
		return []Access{of("metrics")}
	case below("/logs"):
		return []Access{of("log")}
	case below("/checkpoint"):
		return []Access{of("checkpoint")}
	case below("/pods"), below("/runningPods"):
		return []Access{of("pods"), at}
	case below("/healthz"):
		return []Access{of("healthz"), at}
	case below("/configz"):
		return []Access{of("configz"), at}
	}
	return []Access{at}
}
