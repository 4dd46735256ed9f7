package kubeapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/types"
)

// Logs opens a container's log. Reading it ends when ctx does, when the
// container has ended, when another kubeconfig comes into use, and when the API
// server is found silent; it has no deadline of its own. It tells nothing about
// the server either way: the kubelet of a container that says nothing does not
// even send the head of its answer. The error wraps types.ErrNoLog where there
// is no such log.
func (c *Client) Logs(ctx context.Context, pod types.Pod, o types.LogOptions) (io.ReadCloser, error) {
	return c.stream(ctx, pod, func(client rest.Interface) *rest.Request {
		return client.Get().Namespace(pod.Namespace).Name(pod.Name).Resource("pods").SubResource("log").
			VersionedParams(logOptions(o), scheme.ParameterCodec)
	})
}

// stream opens what is asked for of a pod's log.
func (c *Client) stream(ctx context.Context, pod types.Pod, ask func(rest.Interface) *rest.Request) (io.ReadCloser, error) {
	conn, done, err := c.use()
	if err != nil {
		return nil, fmt.Errorf("read log of pod %s: %w", pod.Key(), err)
	}
	if reason, dead := conn.silence.dead(); dead {
		done()
		return nil, fmt.Errorf("read log of pod %s: %w: %s", pod.Key(), types.ErrNoAPI, reason)
	}
	alive, _ := conn.silence.gates()
	ctx, cancel := context.WithCancel(ctx)
	s := &logStream{ctx: ctx, unlink: []func() bool{context.AfterFunc(conn.ctx, cancel), context.AfterFunc(alive, cancel)}}
	s.end = sync.OnceFunc(func() {
		for _, stop := range s.unlink {
			stop()
		}
		cancel()
		done()
	})
	s.body, err = ask(conn.logs.RESTClient()).MaxRetries(0).Stream(ctx)
	if err != nil {
		s.end()
		if noLog(err) {
			err = fmt.Errorf("%w: %w", types.ErrNoLog, err)
		}
		return nil, fmt.Errorf("read log of pod %s: %w", pod.Key(), err)
	}
	return s, nil
}

func logOptions(o types.LogOptions) *corev1.PodLogOptions {
	options := &corev1.PodLogOptions{Container: o.Container, Previous: o.Previous, Follow: o.Follow, Timestamps: true}
	if !o.Since.IsZero() {
		since := metav1.NewTime(o.Since)
		options.SinceTime = &since
	}
	if o.Tail > 0 {
		options.TailLines = &o.Tail
	}
	return options
}

// noLog tells what the kubelet says of a log that is not there from an API
// server in trouble.
func noLog(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) }

// logStream is a log under way.
type logStream struct {
	ctx    context.Context
	body   io.ReadCloser
	unlink []func() bool
	end    func()
}

// Read implements io.Reader.
func (s *logStream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if err != nil {
		if s.ctx.Err() != nil { // cut off here, which is no end of the log
			err = s.ctx.Err()
		}
		s.end() // whoever forgets to close it holds nobody up
	}
	return n, err
}

// Close implements io.Closer.
func (s *logStream) Close() error {
	s.end()
	return s.body.Close()
}

// logsClient is a client for streams. What a reader does not take stays with
// the kubelet, but for a small window.
func logsClient(cfg *rest.Config, base transport, s *silence) (typedcore.CoreV1Interface, error) {
	rt := http.RoundTripper(base)
	if s, ok := base.(interface{ forLogs() http.RoundTripper }); ok {
		rt = s.forLogs()
	}
	return clientOver(cfg, &gate{base: &unhurried{rt}, silence: s}, typedcore.NewForConfigAndClient)
}

// unhurried hides from client-go the order to wait and repeat: callers decide
// for themselves when to look again. It bounds what client-go reads of an answer
// that is none.
type unhurried struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
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
