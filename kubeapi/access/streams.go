package access

import (
	"io"
	"net/http"

	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// errorSize bounds what is read of an answer that is none.
const errorSize = 64 << 10

// logsClient is a client for streams. What a reader does not take stays with
// the kubelet, but for a small window.
func logsClient(cfg *rest.Config, base RoundTripper, s *Liveness) (typedcore.CoreV1Interface, error) {
	rt := http.RoundTripper(base)
	if s, ok := base.(interface{ ForLogs() http.RoundTripper }); ok {
		rt = s.ForLogs()
	}
	return ClientOver(cfg, &circuitBreaker{base: &unhurried{rt}, silence: s}, typedcore.NewForConfigAndClient)
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
