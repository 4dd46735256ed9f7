package kubeapi

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// inMemory carries requests to a handler without a network, so that it works
// in fake time.
type inMemory struct {
	handler http.Handler
	refuse  func() error // answers instead, if it returns one
}

func (m *inMemory) closeAll() {}

func (m *inMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	if m.refuse != nil {
		if err := m.refuse(); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(req.Context())
	r, w := io.Pipe()
	answer := &pipeWriter{pipe: w, header: http.Header{}, head: make(chan int, 1)}
	go func() {
		m.handler.ServeHTTP(answer, req.WithContext(ctx))
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

type pipeWriter struct {
	pipe   *io.PipeWriter
	header http.Header
	head   chan int
	once   sync.Once
}

func (p *pipeWriter) Header() http.Header  { return p.header }
func (p *pipeWriter) WriteHeader(code int) { p.once.Do(func() { p.head <- code }) }
func (p *pipeWriter) Flush()               {}
func (p *pipeWriter) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.pipe.Write(b)
}
