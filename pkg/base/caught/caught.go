// Package caught keeps a fault in an HTTP handler to the one request and tells
// the log of it. Without it net/http ends the connection and tells its ErrorLog,
// which our servers discard, since whatever a stranger sends is reported there.
package caught

import (
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"
)

// Handler calls next. Where next panics, the request is answered with 500, or, if
// the answer has begun already, its connection is closed; the panic is logged as
// an error with its stack, once for each line of code that it comes from.
func Handler(log logrus.FieldLogger, next http.Handler) http.Handler {
	var known sync.Map // lines of code whose panic is logged
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &answer{ResponseWriter: w}
		defer func() {
			reason := recover()
			if reason == nil {
				return
			}
			f := faultOf(reason)
			if _, logged := known.LoadOrStore(f.at, true); !logged {
				log.WithFields(logrus.Fields{"path": r.URL.Path, "at": f.at, "stack": f.stack}).Errorf("a request ended in a panic: %v", f.reason)
			}
			answer.end()
		}()
		next.ServeHTTP(answer, r)
	})
}

// origin is the line of code that panicked: the first below the runtime's
// frames, as file:line.
func origin() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	for below := false; ; {
		f, more := frames.Next()
		isRuntime := strings.HasPrefix(f.Function, "runtime.")
		switch {
		case f.Function == "runtime.gopanic":
			below = true
		case below && !isRuntime || !more:
			return f.File + ":" + strconv.Itoa(f.Line)
		}
	}
}

// answer notes whether an answer has begun.
type answer struct {
	http.ResponseWriter
	begun bool
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	a.begun = true
	a.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(p)
}

// end tells the one who asked that there is no answer, or no more of it: a part must
// not look like the whole.
func (a *answer) end() {
	if !a.begun {
		http.Error(a.ResponseWriter, "internal error, see the agent's log", http.StatusInternalServerError)
		return
	}
	if conn, _, err := http.NewResponseController(a.ResponseWriter).Hijack(); err == nil {
		_ = conn.Close()
	}
}
