package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/types"
)

const (
	// AnswerWithin bounds the wait for the head of every answer, watches
	// included: longer than a loaded API server takes, shorter than a person's
	// patience.
	AnswerWithin = 10 * time.Second
	// readWithin bounds the reading of an answer that is not a stream: a list
	// of thousands of pods takes seconds on a small machine.
	readWithin = 30 * time.Second
	// watchWithin bounds a watch: the Reflector asks for up to 10 minutes, and
	// the server ends it. One that does not has forgotten it.
	watchWithin = 11 * time.Minute
	// answerSize bounds an answer that is not a stream: a list of 15,000 pods.
	// Client-go reads it whole.
	answerSize = 128 << 20
)

var errNoAnswer = errors.New("no answer within " + AnswerWithin.String())

// circuitBreaker keeps requests back while a probe has shown that nobody answers, so
// that an outage does not meet with a storm of requests.
type circuitBreaker struct {
	base    http.RoundTripper
	silence *Liveness
}

func (g *circuitBreaker) RoundTrip(req *http.Request) (*http.Response, error) {
	if reason, dead := g.silence.Dead(); dead {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, fmt.Errorf("%w: %s", types.ErrNoAPI, reason)
	}
	return g.base.RoundTrip(req)
}

// livenessTransport gives every request a deadline and tells the silence how it went.
type livenessTransport struct {
	base    http.RoundTripper
	silence *Liveness
	retired context.Context // once done, what comes back is no longer news
}

func (o *livenessTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	start := time.Now()
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(AnswerWithin, func() { cancel(errNoAnswer) })
	end := func() { timer.Stop(); cancel(nil) }
	resp, err := o.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		if errors.Is(context.Cause(ctx), errNoAnswer) {
			err = errNoAnswer
		}
		end()
		if req.Context().Err() == nil { // else the caller gave up, which says nothing
			o.unanswered(start, ReasonOf(err))
		}
		return nil, err
	}
	body := &bounded{ReadCloser: resp.Body, ctx: ctx, end: end, within: readWithin, left: answerSize}
	o.judge(req, resp, body, start)
	// client-go would take this as an order to wait and repeat, up to ten
	// times, inside the call; our callers decide for themselves when to look again.
	resp.Header.Del("Retry-After")
	if watches(req) {
		body.within, body.left = watchWithin, math.MaxInt64
	}
	timer.Reset(body.within)
	resp.Body = body
	return resp, nil
}

// judge takes any whole answer below 500 to show that the server lives, but not a 401: to
// us a server that does not know us is as good as dead. A watch is none by
// beginning: what resets connections in mid-answer lets it begin, too. One that
// breaks off is a doubt from then on.
func (o *livenessTransport) judge(req *http.Request, resp *http.Response, body *bounded, start time.Time) {
	code := resp.StatusCode
	if code >= http.StatusInternalServerError || code == http.StatusUnauthorized {
		o.unanswered(start, fmt.Sprintf("HTTP %d %s", code, http.StatusText(code)))
		return
	}
	stream := watches(req) && code == http.StatusOK
	body.done = func(err error) {
		whole := errors.Is(err, io.EOF)
		switch {
		case whole && !stream:
			o.answered()
		case whole || req.Context().Err() != nil: // as it should, or the caller gave up
		case stream:
			o.unanswered(time.Now(), ReasonOf(err))
		default:
			o.unanswered(start, ReasonOf(err))
		}
	}
}

func watches(req *http.Request) bool { return req.URL.Query().Get("watch") == "true" }

func (o *livenessTransport) answered() {
	if o.retired.Err() == nil {
		o.silence.answered()
	}
}

func (o *livenessTransport) unanswered(start time.Time, reason string) {
	if o.retired.Err() == nil {
		o.silence.unanswered(start, reason)
	}
}

// ReasonOf is err without what differs from try to try, such as ports.
func ReasonOf(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		var invalid x509.CertificateInvalidError
		if errors.As(err, &invalid) && invalid.Reason == x509.Expired { // its text has the time of the try
			return "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"
		}
		return cert.Error()
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Op + ": " + op.Err.Error()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "connection closed"
	}
	return err.Error()
}

// bounded ends its request's context when it is closed, and names the bound
// when that is what ended it.
type bounded struct {
	io.ReadCloser
	ctx    context.Context
	end    func()
	within time.Duration
	left   int64       // bytes
	done   func(error) // called with what ended the answer, if not nil
	closed atomic.Bool // by the caller
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("read answer: more than %d MiB", answerSize>>20)
	}
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(b.ctx), errNoAnswer) {
		err = fmt.Errorf("read answer: not complete within %s", b.within)
	}
	if err != nil && b.done != nil && !b.closed.Load() {
		b.done(err)
		b.done = nil
	}
	if err != nil && !errors.Is(err, io.EOF) && b.within != watchWithin {
		err = torn{err}
	}
	return n, err
}

// torn is why an answer that is not a stream broke off. HTTP/2 has errors of
// its own for that, which have no type that could be asked for.
type torn struct{ error }

// Unwrap makes errors.Is look inside.
func (t torn) Unwrap() error { return t.error }

func (b *bounded) Close() error {
	b.closed.Store(true)
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// errorSize bounds what is read of an answer that is none.
const errorSize = 64 << 10

// logsClient is a client for streams. What a reader does not take stays with
// the kubelet, but for a small window.
func logsClient(cfg *rest.Config, base RoundTripper, s *Liveness) (typedcore.CoreV1Interface, error) {
	return ClientOver(cfg, &circuitBreaker{base: &unhurried{forLogs(base)}, silence: s}, typedcore.NewForConfigAndClient)
}

// forLogs is the part of base that the streams of logs go through, on connections of
// their own: they write nothing, their answers show nothing of the server, and they
// are counted and timed apart from other requests.
func forLogs(base RoundTripper) http.RoundTripper {
	switch t := base.(type) {
	case *AuditTransport:
		if logs := forLogs(t.RoundTripper); logs != http.RoundTripper(t.RoundTripper) {
			return logs
		}
	case *CredentialsRecorder:
		return forLogs(t.RoundTripper)
	case *MetricsTransport:
		return &MetricsTransport{endedElsewhere{forLogs(t.RoundTripper)}, t.Requests}
	case *dialed:
		return t.streams
	}
	return base
}

// endedElsewhere is a part of a transport, which is ended with the whole of it.
type endedElsewhere struct{ http.RoundTripper }

func (endedElsewhere) CloseAll() {}

// unhurried hides from client-go the order to wait and repeat: callers decide
// for themselves when to look again. It bounds what client-go reads of an answer
// that is none.
type unhurried struct{ base http.RoundTripper }

func (u *unhurried) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := u.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Header.Del("Retry-After")
	if resp.StatusCode >= http.StatusMultipleChoices {
		resp.Body = &excerpt{io.LimitReader(resp.Body, errorSize), resp.Body}
	}
	return resp, nil
}

// excerpt is the beginning of an answer.
type excerpt struct {
	io.Reader
	io.Closer
}
