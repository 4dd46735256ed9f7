package caught

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Fault is a panic of a goroutine that worked for a request. Uncaught it would end
// the process, as net/http recovers in the goroutine of the handler alone.
type Fault struct {
	reason any
	at     string // line of code that panicked
	stack  string
}

// Error implements error.
func (f *Fault) Error() string { return fmt.Sprint(f.reason) }

// In calls f and returns the panic that it ended in, nil for none.
func In(f func()) (fault *Fault) {
	defer func() {
		if reason := recover(); reason != nil {
			fault = faultOf(reason)
		}
	}()
	f()
	return nil
}

// faultOf is called where the panic is recovered. A fault that was raised in
// another goroutine stays what it is.
func faultOf(reason any) *Fault {
	if f, ok := reason.(*Fault); ok {
		return f
	}
	return &Fault{reason: reason, at: origin(), stack: string(debug.Stack())}
}

// Raise panics with f, unless it is nil. It is for the goroutine of a handler,
// where Handler logs and answers it as a panic of the line of code that it came
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
		if fault := In(f); fault != nil {
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
