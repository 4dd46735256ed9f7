package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// policy lets the page load and ask nothing but its own server, and run nothing
// but its own script, which cannot turn text into HTML either.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// kinds are the media types of the page's files.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// files are the page's own files, by path.
func files() map[string]http.Handler {
	handlers := map[string]http.Handler{}
	for name, kind := range names() {
		handlers["/"+strings.TrimPrefix(name, "index.html")] = file(name, kind)
	}
	return handlers
}

// names are the embedded files with their media types.
func names() map[string]string {
	entries, err := static.ReadDir("static")
	if err != nil {
		return nil // it is embedded: the tests find it
	}
	all := map[string]string{}
	for _, e := range entries {
		all[e.Name()] = kinds[path.Ext(e.Name())]
	}
	return all
}

// file serves an embedded file, which the browser keeps for as long as it is
// the same.
func file(name, kind string) http.Handler {
	content, err := static.ReadFile("static/" + name)
	sum := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err != nil || r.URL.Path != "/"+strings.TrimPrefix(name, "index.html") {
			http.NotFound(w, r) // "/" is a subtree to a ServeMux
			return
		}
		head := w.Header()
		head.Set("Content-Type", kind)
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cache-Control", "no-cache")
		head.Set("ETag", tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	})
}
