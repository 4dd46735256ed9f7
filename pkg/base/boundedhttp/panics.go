package boundedhttp

import (
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"
)

// Recover calls next, and keeps a fault in it to the one request. Without it
// net/http ends the connection and tells its ErrorLog, which our servers discard,
// since whatever a stranger sends is reported there. Where next panics, the request is answered with 500, or, if
// the answer has begun already, its connection is closed; the panic is logged as
// an error with its stack, once for each line of code that it comes from.
func Recover(log logrus.FieldLogger, next http.Handler) http.Handler {
	var known sync.Map // lines of code whose panic is logged
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &begun{ResponseWriter: w}
		f := Catch(func() { next.ServeHTTP(out, r) })
		if f == nil {
			return
		}
		if _, logged := known.LoadOrStore(f.at, true); !logged {
			log.WithFields(logrus.Fields{"path": r.URL.Path, "at": f.at, "stack": f.stack}).Errorf("a request ended in a panic: %v", f.reason)
		}
		out.end()
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

type begun struct {
	http.ResponseWriter
	yes bool
}

// Unwrap is for http.ResponseController.
func (a *begun) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *begun) WriteHeader(code int) {
	a.yes = true
	a.ResponseWriter.WriteHeader(code)
}

func (a *begun) Write(p []byte) (int, error) {
	a.yes = true
	return a.ResponseWriter.Write(p)
}

// end tells the one who asked that there is no answer, or no more of it: a part must
// not look like the whole.
func (a *begun) end() {
	if !a.yes {
		http.Error(a.ResponseWriter, "internal error, see the agent's log", http.StatusInternalServerError)
		return
	}
	if conn, _, err := http.NewResponseController(a.ResponseWriter).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// Fault is a panic of a goroutine that worked for a request. Uncaught it would end
// the process, as net/http recovers in the goroutine of the handler alone.
type Fault struct {
	reason any
	at     string // line of code that panicked
	stack  string
}

// Error implements error.
func (f *Fault) Error() string { return fmt.Sprint(f.reason) }

// Catch calls f and returns the panic that it ended in, nil for none. A fault that
// was raised in another goroutine stays what it is.
func Catch(f func()) (fault *Fault) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case *Fault:
			fault = reason
		default:
			fault = &Fault{reason: reason, at: origin(), stack: string(debug.Stack())}
		}
	}()
	f()
	return nil
}

// Raise panics with f, unless it is nil. It is for the goroutine of a handler,
// where Recover logs and answers it as a panic of the line of code that it came
// from.
func (f *Fault) Raise() {
	if f != nil {
		panic(f)
	}
}

// Group is goroutines that work for one request. Its zero value is ready.
type Group struct {
	all   sync.WaitGroup
	mu    sync.Mutex
	first *Fault
}

// Go calls f in a goroutine.
func (g *Group) Go(f func()) {
	g.all.Go(func() {
		if fault := Catch(f); fault != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.first == nil {
				g.first = fault
			}
		}
	})
}

// Wait waits for all of them, and then panics as the first that did, if any.
func (g *Group) Wait() {
	g.all.Wait()
	g.first.Raise()
}
