package statusserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/proof"
	"github.com/zedkube/zedkube/types"
)

const (
	appPath        = "/app"
	clusterAppPath = "/cluster-app"
	// reportTimeout leaves a peer, who gives us five seconds, an answer from a
	// disk that hangs.
	reportTimeout = 4 * time.Second
	maxAppID      = 36 // a UUID in letters
)

var errBusy = errors.New("too many reports are being made, ask again soon")

// serveApp is the report of this node about one application.
func (c *Component) serveApp(w http.ResponseWriter, r *http.Request) {
	id, source, ok := c.admitted(w, r, appPath)
	if !ok {
		return
	}
	out, err := c.report(r.Context(), source, id)
	switch {
	case errors.Is(err, errBusy):
		refuse(w, http.StatusTooManyRequests, err.Error())
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, err.Error())
	default:
		_ = writeJSON(w, out) // who asked is gone: nobody could act on it
	}
}

// admitted reads the application asked for and who asks; it refuses who may not.
func (c *Component) admitted(w http.ResponseWriter, r *http.Request, prefix string) (id string, source netip.Addr, ok bool) {
	// EVE's agents ask with POST, and change nothing by it.
	if !allowed(w, r, http.MethodPost) {
		return "", netip.Addr{}, false
	}
	id, ok = appID(r.URL.Path, prefix)
	if !ok {
		http.Error(w, "App not found", http.StatusNotFound)
		return "", netip.Addr{}, false
	}
	local, remote := ends(r)
	if err := c.judge(r, remote, local); err != nil {
		refuse(w, http.StatusForbidden, "not for "+plain(remote.Addr()).String()+": "+err.Error())
		return "", netip.Addr{}, false
	}
	return id, plain(remote.Addr()), true
}

// ends are the two addresses of the connection that r came by.
func ends(r *http.Request) (local, remote netip.AddrPort) {
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		local = addr.AddrPort()
	}
	remote, _ = netip.ParseAddrPort(r.RemoteAddr) // what cannot be read is no address of anyone's
	return local, remote
}

var errNotAMember = errors.New("only this node and the other nodes of its cluster may ask")

// judge says why r is not to be answered, nil if it is.
func (c *Component) judge(r *http.Request, remote, local netip.AddrPort) error {
	switch admit(remote.Addr(), local.Addr(), c.Nodes.All(), c.withoutProof()) {
	case free:
		return nil
	case denied:
		return errNotAMember
	}
	status, _ := c.Status.Get(types.Global)
	key, err := proof.Key(status)
	if err == nil {
		a := proof.Ask{Method: r.Method, Host: netip.AddrPortFrom(plain(local.Addr()), local.Port()).String(), Path: r.URL.EscapedPath()}
		err = c.limits.proofs.Check(a, r.Header.Get(proof.Header), key, time.Now())
	}
	if err != nil {
		return fmt.Errorf("refuse proof: %w", err)
	}
	return nil
}

// appID is the application named in path below prefix, "" for none: its UUID or
// the front of one. ok is false for what can be no UUID.
func appID(path, prefix string) (id string, ok bool) {
	id = strings.TrimPrefix(strings.TrimPrefix(path, prefix), "/")
	if len(id) > maxAppID || strings.Trim(id, "0123456789abcdefABCDEF-") != "" {
		return "", false
	}
	return strings.ToLower(id), true
}

// report makes the report of this node beside the request, which a disk that
// hangs does not hold up: the report alone then keeps its place at the gate.
func (c *Component) report(ctx context.Context, source netip.Addr, id string) (report, error) {
	if !c.limits.reports.enter(source, maxReports, maxReportsEach) {
		return report{}, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	type outcome struct {
		report
		fault *boundedhttp.Fault
	}
	done := make(chan outcome, 1)
	c.ending.Go(func() {
		defer c.limits.reports.leave(source)
		var o outcome
		o.fault = boundedhttp.Catch(func() { o.report = c.collect(ctx, id) })
		done <- o
	})
	var out outcome
	select {
	case out = <-done:
	case <-ctx.Done():
	}
	out.fault.Raise()
	if err := ctx.Err(); err != nil {
		return report{}, fmt.Errorf("read the files of the report: %w", err)
	}
	return out.report, nil
}
