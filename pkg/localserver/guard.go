package localserver

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/proof"
	"github.com/zedkube/zedkube/types"
)

// maxTarget bounds the path and the query of a request, in bytes.
const maxTarget = 2048

// refusal is an answer to somebody who does not get what he asked for.
type refusal struct {
	code int
	why  string
}

var full = &refusal{http.StatusServiceUnavailable, "as many as can be are being answered: ask again soon"}

// write answers, and takes little of what else is sent.
func (f *refusal) write(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTimeout))
		w.Header().Set("Connection", "close")
	}
	switch f.code {
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", "GET, HEAD")
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "5")
	}
	http.Error(w, f.why, f.code)
}

// form judges what is asked, whoever asks: nothing here takes anything.
func form(r *http.Request) *refusal {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return &refusal{http.StatusMethodNotAllowed, "only GET and HEAD are answered here"}
	case r.ContentLength != 0:
		return &refusal{http.StatusBadRequest, "a request here has no body"}
	case len(r.RequestURI) > maxTarget:
		return &refusal{http.StatusRequestURITooLong, "the path is too long"}
	case strings.ContainsFunc(r.URL.Path, odd):
		return &refusal{http.StatusBadRequest, "the path has characters that no path here has"}
	}
	return nil
}

// odd are what would have other meanings to a terminal or another system.
func odd(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' }

// fromHere judges who asks over loopback: programs of this device, and pages
// that came from here. A web site in a browser on the device, or in one at the
// other end of a tunnel, is neither: by DNS it may pretend to be this address,
// so the name in Host has to be one that no DNS gives away, and the browser says
// in Origin and Sec-Fetch-Site what page asks.
func fromHere(r *http.Request) *refusal {
	switch {
	case !isLoopback(r.Host):
		return &refusal{http.StatusForbidden, "only 127.0.0.1, [::1] and localhost are answered for here"}
	case len(r.Header["Origin"]) > 0 && !slicesOnly(r.Header["Origin"], "http://"+r.Host):
		return &refusal{http.StatusForbidden, "another site asks"}
	}
	for _, site := range r.Header["Sec-Fetch-Site"] {
		if site != "same-origin" && site != "none" { // none is a person who typed the address
			return &refusal{http.StatusForbidden, "another site asks"}
		}
	}
	return nil
}

// slicesOnly reports whether every value is want, in letters of any case.
func slicesOnly(values []string, want string) bool {
	for _, v := range values {
		if !strings.EqualFold(v, want) {
			return false
		}
	}
	return true
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
func (c *Component) member(r *http.Request, local net.Addr) *refusal {
	status, _ := c.Status.Get(types.Global)
	key, err := proof.Key(status)
	if err == nil {
		to := proof.Ask{Method: r.Method, Host: withoutZone(local), Path: r.RequestURI}
		err = c.proofs.Check(to, r.Header.Get(proof.Header), key, time.Now())
	}
	if err != nil {
		return &refusal{http.StatusForbidden, "refuse proof: " + err.Error()}
	}
	return nil
}

func withoutZone(a net.Addr) string {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.String()
	}
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()).String()
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
