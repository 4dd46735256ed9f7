package kubetest

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// InMemory carries requests to a handler without a network, so that it works
// in fake time.
type InMemory struct {
	Handler http.Handler
	Refuse  func() error // answers instead, if it returns one
}

func (m *InMemory) CloseAll() {}

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

type PipeWriter struct {
	Pipe   *io.PipeWriter
	header http.Header
	head   chan int
	once   sync.Once
}

func (p *PipeWriter) Header() http.Header  { return p.header }
func (p *PipeWriter) WriteHeader(code int) { p.once.Do(func() { p.head <- code }) }
func (p *PipeWriter) Flush()               {}
func (p *PipeWriter) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.Pipe.Write(b)
}
