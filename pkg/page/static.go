package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"time"
)

//go:embed static
var static embed.FS

// policy lets the page load and ask nothing but its own server, and run nothing
// but its own script, which cannot turn text into HTML either.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// files are the page's own files, by path.
func files() map[string]http.Handler {
	return map[string]http.Handler{
		"/":         file("index.html", "text/html; charset=utf-8"),
		"/page.css": file("page.css", "text/css; charset=utf-8"),
		"/page.js":  file("page.js", "text/javascript; charset=utf-8"),
		"/icon.svg": file("icon.svg", "image/svg+xml"),
	}
}

// file serves an embedded file, which the browser keeps for as long as it is
// the same.
func file(name, kind string) http.Handler {
	content, err := static.ReadFile("static/" + name)
	sum := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err != nil || name == "index.html" && r.URL.Path != "/" {
			http.NotFound(w, r)
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
