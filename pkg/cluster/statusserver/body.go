package statusserver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
)

// maxBody is far more than anybody sends: no question here needs a body.
const maxBody = 4 << 10

// connKey is where the context of a request holds its connection.
type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// bufferedBody hands to next what has come with its whole body. Only from then on
// does the connection count as one that waits for an answer: who promises a
// body and keeps it back is none whom a joining node has to make room for.
func bufferedBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
			code := http.StatusBadRequest
			if long := new(http.MaxBytesError); errors.As(err, &long) {
				code = http.StatusRequestEntityTooLarge
			}
			refuse(w, code, "the request body cannot be read, and none is needed")
			return
		}
		if h, ok := r.Context().Value(connKey{}).(*trackedConn); ok {
			h.busy.Store(true)
		}
		next.ServeHTTP(w, r)
	})
}
