package statusserver

import (
	"io"
	"net/http"
)

// handler is the whole surface; everything else is Go's 404.
func (c *Component) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/status", c.serveStatus)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		if allowed(w, r) {
			_, _ = io.WriteString(w, "ok\n")
		}
	})
	mux.HandleFunc("/readyz", c.serveReady)
	mux.HandleFunc(reachPath, c.serveReach)
	for _, path := range []string{appPath, appPath + "/"} {
		mux.HandleFunc(path, c.serveApp)
	}
	for _, path := range []string{clusterAppPath, clusterAppPath + "/"} {
		mux.HandleFunc(path, c.serveClusterApp)
	}
	return mux
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

// allowed refuses what neither GET nor HEAD is.
func allowed(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	refuse(w, http.StatusMethodNotAllowed, "only GET and HEAD are answered here")
	return false
}

// refuse says no in one line.
func refuse(w http.ResponseWriter, code int, why string) { http.Error(w, why, code) }
