package statusserver

import (
	"io"
	"net/http"
	"slices"
	"strings"
)

// handler is the whole surface; everything else is Go's 404.
func (c *Component) handler() http.Handler {
	mux := http.NewServeMux()
	for path, serve := range c.routes() {
		mux.HandleFunc(path, serve)
	}
	return mux
}

// routes are what is answered, by path.
func (c *Component) routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"/status": c.serveStatus,
		"/healthz": func(w http.ResponseWriter, r *http.Request) {
			if allowed(w, r) {
				_, _ = io.WriteString(w, "ok\n")
			}
		},
		"/readyz": c.serveReady,
		reachPath: c.serveReach,
		appPath:   c.serveApp, appPath + "/": c.serveApp,
		clusterAppPath: c.serveClusterApp, clusterAppPath + "/": c.serveClusterApp,
	}
}

// serveStatus is GET only, byte for byte as joining nodes know it.
func (c *Component) serveStatus(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.WriteHeader(http.StatusMethodNotAllowed)
		_, _ = io.WriteString(w, "405 - Method Not Allowed")
		return
	}
	w.Header().Set("Vary", "Accept")
	if !wantsJSON(r.Header["Accept"]) {
		// Nothing to say is still 200: joiners tell by the body only.
		_, _ = io.WriteString(w, answer(c.look()))
		return
	}
	asked, err := askedCluster(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = writeJSON(w, describe(c.look(), asked)) // who asked is gone: nobody could act on it
}

// serveReady is 200 exactly when /status names the cluster.
func (c *Component) serveReady(w http.ResponseWriter, r *http.Request) {
	if !allowed(w, r) {
		return
	}
	e := explain(c.look())
	if !e.ready {
		refuse(w, http.StatusServiceUnavailable, e.reason+": "+e.why)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// allowed refuses what is neither GET nor HEAD, nor one of the others that the
// path answers.
func allowed(w http.ResponseWriter, r *http.Request, others ...string) bool {
	methods := append([]string{http.MethodGet, http.MethodHead}, others...)
	if slices.Contains(methods, r.Method) {
		return true
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	refuse(w, http.StatusMethodNotAllowed, "only "+strings.Join(methods, ", ")+" are answered here")
	return false
}

// refuse says no in one line.
func refuse(w http.ResponseWriter, code int, why string) { http.Error(w, why, code) }
