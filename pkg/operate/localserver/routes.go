package localserver

import (
	"net/http"
	"slices"
	"strings"
)

// Access is how far from the socket a path is answered. Over the socket, where
// only root asks, every path is; the zero value is that alone. What is answered
// at one is answered at those before it too.
type Access int

const (
	// SocketOnly is for what is of no use to others, and for all that changes
	// anything.
	SocketOnly Access = iota
	// WithToken is for what the agent reads with rights that others lack: over
	// loopback with the reading token, on the cluster address with a proof.
	WithToken
	// WithPage is for what anyone may see, where the page is served over loopback.
	WithPage
	// Always is for what anyone may see wherever something is served.
	Always
)

// Route is what is answered at one path.
type Route struct {
	Handler http.Handler
	Access  Access
	Methods []string // what may be asked, beside HEAD where GET may; nil for GET. Others need SocketOnly
	Effect  string   // what it changes, for the table in docs/wire.md; "" for nothing. Of GET it can be no more than how often something is read
	Stream  bool     // the answer goes on until the one who asked goes away
	Apart   bool     // it has places of its own among the answers in the making: nobody who asks for anything else keeps it from being answered
}

// methods are those that r answers.
func (r Route) methods() []string {
	if r.Methods == nil {
		return []string{http.MethodGet, http.MethodHead}
	}
	return r.Methods
}

// allows refuses a method that r does not answer.
func (r Route) allows(method string) *refusal {
	if slices.Contains(r.methods(), method) {
		return nil
	}
	allowed := strings.Join(r.methods(), ", ")
	return &refusal{code: http.StatusMethodNotAllowed, why: "this path answers " + allowed, allow: allowed}
}

// answers reports whether a path of this access is answered at a place.
func (c *Component) answers(at place, a Access) bool {
	switch {
	case at == onSocket || a == Always:
		return true
	case at == onLoopback:
		return c.PageToo && a > SocketOnly
	}
	return a > SocketOnly
}
