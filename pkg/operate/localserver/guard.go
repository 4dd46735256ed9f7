package localserver

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/pkg/base/peer"
	"github.com/zedkube/zedkube/types"
)

const maxTarget = 2048 // bounds the path and the query of a request, in bytes

type refusal struct {
	code  int
	why   string
	allow string // methods, where it is about the method; "" for GET and HEAD
}

var full = &refusal{code: http.StatusServiceUnavailable, why: "too many requests are being answered: try again soon"}

// write answers, and takes little of what else is sent.
func (f *refusal) write(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTimeout))
		w.Header().Set("Connection", "close")
	}
	switch f.code {
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", cmp.Or(f.allow, "GET, HEAD"))
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "5")
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", strconv.Itoa(int(wrongWithin.Seconds())))
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, f.why, f.code)
}

// form judges what is asked at a place, by anyone. Only over the socket
// anything but a question is heard at all, and only there a body is read.
func form(at place, r *http.Request) *refusal {
	asks := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case !asks && at != onSocket:
		return &refusal{code: http.StatusMethodNotAllowed, why: "only GET and HEAD are answered here"}
	case r.ContentLength != 0 && (at != onSocket || !slices.Contains([]string{http.MethodPut, http.MethodPost, http.MethodPatch}, r.Method)):
		return &refusal{code: http.StatusBadRequest, why: "a request must not have a body here"}
	case len(r.RequestURI) > maxTarget:
		return &refusal{code: http.StatusRequestURITooLong, why: "the path is too long"}
	case strings.ContainsFunc(r.URL.Path, forbiddenRune):
		return &refusal{code: http.StatusBadRequest, why: "the path has invalid characters"}
	}
	return nil
}

// forbiddenRune are what would have other meanings to a terminal or another system.
func forbiddenRune(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' }

// fromHere judges who asks over loopback: programs of this device, and pages
// that came from here. A neighbour is neither, though with route_localnet the
// kernel brings his packets to 127.0.0.1. Nor is a web site in a browser on the
// device, or in one at the other end of a tunnel: see fromOwnPage.
func fromHere(r *http.Request) *refusal {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return &refusal{code: http.StatusForbidden, why: "only programs on this device may send requests here"}
	}
	return fromOwnPage(r, isLoopback)
}

// fromRoot judges who asks over the socket: root, or the agent's own user, by
// the kernel's word. A tunnel may end there too, and so a browser at the other
// end of it, with any site in it.
func fromRoot(r *http.Request) *refusal {
	if p, ok := peer.FromContext(r.Context()); !ok || !p.IsTrusted() {
		return &refusal{code: http.StatusForbidden, why: "only root may send requests here"}
	}
	return fromOwnPage(r, func(host string) bool { return host == socketHost || isLoopback(host) })
}

// socketHost is what commands call the agent. A browser would name a port beside
// it, for what it asks is a tunnel.
const socketHost = "zedkube"

// fromOwnPage refuses web sites that are not this server's own page. By DNS such
// a site may pretend to be this address, so the name in Host has to be one that
// no DNS gives away, and the browser says in Origin and Sec-Fetch-Site what page
// asks.
func fromOwnPage(r *http.Request, isHost func(string) bool) *refusal {
	isForeign := func(origin string) bool { return !strings.EqualFold(origin, "http://"+r.Host) }
	isCrossSite := func(site string) bool { return site != "same-origin" && site != "none" } // none is a person who typed the address
	switch {
	case !isHost(r.Host):
		return &refusal{code: http.StatusForbidden, why: "only the hosts 127.0.0.1, [::1] and localhost are served here"}
	case slices.ContainsFunc(r.Header["Origin"], isForeign), slices.ContainsFunc(r.Header["Sec-Fetch-Site"], isCrossSite):
		return &refusal{code: http.StatusForbidden, why: "the request comes from another site"}
	}
	return nil
}

// isLoopback reports whether host, with or without a port, is this machine in
// every DNS. The port may be the other end of a tunnel's.
func isLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	} else {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback() && ip.Zone() == ""
}

// member judges who asks over the cluster's network: everybody has to prove
// that he knows the cluster token, for this request with its query.
func (c *Component) member(r *http.Request, local netip.AddrPort) *refusal {
	status, _ := c.Status.Get(types.Global)
	if err := c.proofs.CheckRequest(r, local, r.RequestURI, status); err != nil {
		return &refusal{code: http.StatusForbidden, why: err.Error()}
	}
	return nil
}

// secure keeps a browser from doing with an answer what is not meant.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

const (
	// maxWrong is how many wrong tokens are told so within wrongWithin. Those
	// beyond are told that there were too many; the right one is taken all the
	// same, or any program on the device could lock its operator out. It has 128
	// bits or more, so nobody guesses it.
	maxWrong    = 10
	wrongWithin = time.Minute
)

// token is the reading token: a program that has it may read over loopback what else
// only root may read over the socket. It is made at the start of the agent and
// ends with it.
type token struct {
	mu    sync.Mutex
	text  string
	wrong []time.Time // the newest maxWrong
}

func (t *token) value() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text == "" {
		t.text = rand.Text()
	}
	return t.text
}

// check judges the Authorization header of r; nothing else may carry the token,
// since paths and queries are logged, and cookies are sent by other sites too.
func (t *token) check(r *http.Request, now time.Time) *refusal {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || given == "" {
		return &refusal{code: http.StatusUnauthorized, why: "a token is required: \"zedkube page\" prints it on the device, for root"}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	is, want := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(t.text))
	if t.text != "" && subtle.ConstantTimeCompare(is[:], want[:]) == 1 {
		return nil
	}
	if len(t.wrong) == maxWrong {
		if now.Sub(t.wrong[0]) < wrongWithin {
			return &refusal{code: http.StatusTooManyRequests, why: "too many wrong tokens within a minute"}
		}
		t.wrong = t.wrong[1:]
	}
	t.wrong = append(t.wrong, now)
	return &refusal{code: http.StatusUnauthorized, why: "the token is not valid; it changes at each start of the agent: \"zedkube page\" prints it"}
}

// TokenFile is the content of the file with the reading token, as JSON.
type TokenFile struct {
	Address string // host:port, on loopback
	Token   string
}

func (c *Component) keepToken(wanted bool) error {
	if c.TokenFile == "" {
		return nil
	}
	file := keptfile.File{Path: c.TokenFile, Name: "page token"}
	wish := keptfile.Desired{Do: keptfile.Remove}
	if wanted {
		content, err := json.Marshal(TokenFile{Address: c.Address, Token: c.token.value()})
		if err != nil {
			return fmt.Errorf("write page token: %w", err)
		}
		wish = keptfile.Desired{Do: keptfile.Write, Content: string(content)}
	}
	_, err := file.Keep(wish)
	return err
}
