// Package kubetest is a cluster in memory for the stories of components: it
// obeys their verbs, shows the result in the tables they read, and fails when
// it is told to. It knows types only, so that a test of a component needs no
// Kubernetes library. All its waiting is done with timers, so it lives happily
// in testing/synctest.
package kubetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// Table is what the cluster shows itself in; *pubsub.Table satisfies it.
type Table[T any] interface {
	Get(key string) (T, bool)
	All() map[string]T
	Publish(key string, v T) error
	Unpublish(key string) error
}

// Fault is how the API server fails.
type Fault int

// The faults: a refused connection fails at once, a hung one when the caller
// gives up.
const (
	None Fault = iota
	Refused
	Hung
)

// Call is one verb the cluster was asked for, whether it succeeded or not.
type Call struct {
	At     time.Time
	Verb   string // as in the comments of the verbs: cordon, list, evict, lock, ...
	Object string // node name, the pod's namespace/name, or the holder of the lock
}

// Cluster is the fake. Fill the tables before the first call. Several
// components may share one, each with its own node in it.
type Cluster struct {
	Nodes Table[types.Node]
	Pods  Table[types.Pod] // the pods of every node a test cares for
	API   Table[types.APIStatus]
	VMIs  Table[types.VMI]    // of eve-kube-app, by name
	Sets  Table[types.AppSet] // of eve-kube-app, by kind/name

	Disks            Table[types.LonghornNode]    // of every node, by name
	LonghornSettings Table[types.LonghornSetting] // by name
	SnapshotJobs     Table[types.SnapshotJob]     // by name

	Leases Table[types.Lease] // the drain lock, as a Lease; nil where no test looks

	// Grace is how long a pod terminates before it is gone.
	Grace time.Duration

	// Gate is asked before each verb, with the context of its caller; nil lets all of them
	// pass. What it returns is the error of a call that nobody answered.
	Gate func(ctx context.Context, verb string) error

	mu      sync.Mutex // guards the fields in this block, and is held for no longer
	fault   Fault
	latency time.Duration
	fails   map[string]error
	loses   map[string]int // answers still to be lost, by verb
	budgets map[string]bool
	calls   []Call

	world sync.Mutex // held by whoever changes what the cluster holds
	held  holdings

	lease lease
}

// holdings is what the cluster holds besides its tables.
type holdings struct {
	lock       types.DrainLock
	version    int // of the last write of the lock
	renewed    map[string]time.Time
	events     []types.Event
	storage    types.Storage
	users      map[string]func(types.Pod) bool // by volume
	situations map[string]types.PodSituation
	right      right
	nads       map[string]NAD // by interface
	sriov      sriov
	longhorn   int // version of the last write there
	apps       applications
	kubelets   map[string]kubelet // by node
}

// hungFor is how long a call on a server that hangs waits for its answer.
const hungFor = 10 * time.Second

// SetFault makes the API server fail in every verb from now on, or work
// again, and says so in the API table.
func (c *Cluster) SetFault(f Fault) {
	c.mu.Lock()
	c.fault = f
	c.mu.Unlock()
	status := types.APIStatus{Synced: true, Apps: true}
	if f != None {
		status = types.APIStatus{SilentSince: time.Now(), Reason: "fault of the test", Synced: true, Apps: true}
		if was, ok := c.API.Get(types.Global); ok && !was.Answers() { // another fault, the same silence
			status.SilentSince = was.SilentSince
		}
	}
	_ = c.API.Publish(types.Global, status)
}

// SetLatency makes every verb take d; the API table goes on saying that the
// server answers: slow is not dead.
func (c *Cluster) SetLatency(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latency = d
}

// FailVerb makes verb answer err; nil lets it work again.
func (c *Cluster) FailVerb(verb string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails == nil {
		c.fails = map[string]error{}
	}
	c.fails[verb] = err
}

// LoseAnswer makes the next call of verb that is accepted take effect and fail
// all the same, with an error that wraps types.ErrNoAnswer.
func (c *Cluster) LoseAnswer(verb string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loses == nil {
		c.loses = map[string]int{}
	}
	c.loses[verb]++
}

// Block makes a disruption budget refuse the eviction of the pod under key, or
// allow it again.
func (c *Cluster) Block(key string, refuse bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.budgets == nil {
		c.budgets = map[string]bool{}
	}
	c.budgets[key] = refuse
}

// Calls returns the calls of one verb so far, in order; all of them for "".
func (c *Cluster) Calls(verb string) []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Call
	for _, call := range c.calls {
		if verb == "" || call.Verb == verb {
			out = append(out, call)
		}
	}
	return out
}

// write carries out a verb that changes a Node or the lock. Without an answer
// it fails with types.ErrNoAnswer.
func (c *Cluster) write(ctx context.Context, verb, object string, act func() error) error {
	err := c.change(ctx, verb, object, act)
	var none *silent
	if errors.As(err, &none) {
		return fmt.Errorf("%s %s: %w: %w", verb, object, types.ErrNoAnswer, err)
	}
	return err
}

// change carries out a verb that changes the world; nobody else changes it
// meanwhile.
func (c *Cluster) change(ctx context.Context, verb, object string, act func() error) error {
	if err := c.enter(ctx, verb, object); err != nil {
		return err
	}
	c.world.Lock()
	defer c.world.Unlock()
	if err := act(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loses[verb] > 0 {
		c.loses[verb]--
		return fmt.Errorf("%s %s: %w: lost on its way", verb, object, types.ErrNoAnswer)
	}
	return nil
}

// enter notes the call, takes its time and fails as the test wishes.
func (c *Cluster) enter(ctx context.Context, verb, object string) error {
	c.mu.Lock()
	c.calls = append(c.calls, Call{At: time.Now(), Verb: verb, Object: object})
	fault, latency, fail := c.fault, c.latency, c.fails[verb]
	c.mu.Unlock()
	if c.Gate != nil {
		if err := c.Gate(ctx, verb); err != nil {
			return &silent{err}
		}
	}
	switch fault {
	case Refused:
		return &silent{&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
	case Hung:
		if err := pass(ctx, hungFor); err != nil {
			return err
		}
		return &silent{context.DeadlineExceeded}
	}
	if err := pass(ctx, latency); err != nil {
		return err
	}
	return fail
}

// silent is the error of a call that nobody answered in time. A caller who
// cancels it has not waited for an answer.
type silent struct{ error }

func (s *silent) Unwrap() error { return s.error }

// pass lets d pass, and fails when the caller gives up before.
func pass(ctx context.Context, d time.Duration) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	if err := ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
		return &silent{err}
	}
	return ctx.Err()
}

// Authority signs the certificates of a test.
type Authority struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
	Pem  []byte
}

// NewAuthority makes a certificate authority for a test.
func NewAuthority(t *testing.T) *Authority {
	a := &Authority{}
	a.Cert, a.key, a.Pem, _ = a.Sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// Sign makes a key and a certificate, and returns both as PEM, too.
func (a *Authority) Sign(t *testing.T, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, []byte, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "test"}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	by, signer := a.Cert, a.key
	if by == nil {
		by, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert, _ := x509.ParseCertificate(der)
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// InMemory carries requests to a handler without a network, so that it works
// in fake time.
type InMemory struct {
	Handler http.Handler
	Refuse  func() error // answers instead, if it returns one
}

// CloseAll does nothing: there are no connections.
func (m *InMemory) CloseAll() {}

// RoundTrip implements http.RoundTripper.
func (m *InMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	if m.Refuse != nil {
		if err := m.Refuse(); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(req.Context())
	r, w := io.Pipe()
	answer := &PipeWriter{Pipe: w, header: http.Header{}, head: make(chan int, 1)}
	go func() {
		m.Handler.ServeHTTP(answer, req.WithContext(ctx))
		answer.WriteHeader(http.StatusOK)
		w.CloseWithError(io.EOF)
	}()
	select {
	case code := <-answer.head:
		context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
		return &http.Response{StatusCode: code, Header: answer.header, Body: &pipeBody{r, cancel}, Request: req}, nil
	case <-ctx.Done():
		cancel()
		_ = r.Close()
		return nil, context.Cause(req.Context())
	}
}

type pipeBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *pipeBody) Close() error { b.cancel(); return b.PipeReader.Close() }

// PipeWriter is an http.ResponseWriter whose body is read while it is written.
type PipeWriter struct {
	Pipe   *io.PipeWriter
	header http.Header
	head   chan int
	once   sync.Once
}

// Header implements http.ResponseWriter.
func (p *PipeWriter) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *PipeWriter) WriteHeader(code int) { p.once.Do(func() { p.head <- code }) }

// Flush implements http.Flusher.
func (p *PipeWriter) Flush() {}

// Write implements http.ResponseWriter.
func (p *PipeWriter) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.Pipe.Write(b)
}
