package page

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// limit is what the page may weigh in all.
const limit = 150_000

func TestThePageIsSmallAndItsOwn(t *testing.T) {
	total := 0
	foreign := regexp.MustCompile(`https?:|//[a-z]|url\(|@import|innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|new Function|style=|onclick|onload=|<script>`)
	imported := regexp.MustCompile(`(?:from|src=|href=) ?"(/[^"]*)"`)
	served := newStage(t).page.Routes()
	files, err := static.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := file.Name()
		content, err := static.ReadFile("static/" + name)
		if err != nil {
			t.Fatal(err)
		}
		total += len(content)
		text := strings.ReplaceAll(string(content), "http://www.w3.org/2000/svg", "") // a name, not an address
		text = regexp.MustCompile(`(?m)(^|\s)//.*$`).ReplaceAllString(text, "")
		if found := foreign.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		for _, m := range imported.FindAllStringSubmatch(string(content), -1) {
			if served[m[1]].Handler == nil {
				t.Errorf("%s wants %s, which nobody serves", name, m[1])
			}
		}
	}
	if total > limit || total < 10_000 {
		t.Errorf("the page has %d bytes, want at most %d", total, limit)
	}
	t.Logf("the page has %d bytes", total)
}

func TestFilesAreServedAsWhatTheyAre(t *testing.T) {
	served := newStage(t).page.Routes()
	for path, kind := range map[string]string{"/": "text/html", "/page.js": "text/javascript", "/draw.js": "text/javascript", "/page.css": "text/css", "/icon.svg": "image/svg+xml", "/manual": "text/html"} {
		get := func(tag string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("If-None-Match", tag)
			w := httptest.NewRecorder()
			served[path].Handler.ServeHTTP(w, r)
			return w
		}
		w := get("")
		head := w.Result().Header
		if w.Code != 200 || !strings.HasPrefix(head.Get("Content-Type"), kind) || head.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, w.Code, head)
		}
		for _, word := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if policy := head.Get("Content-Security-Policy"); !strings.Contains(policy, word) || strings.Contains(policy, "unsafe") {
				t.Errorf("%s: policy %s", path, policy)
			}
		}
		if again := get(head.Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s is sent again: %d", path, again.Code)
		}
	}
	w := httptest.NewRecorder()
	served["/"].Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/nothing", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("the page answers for what is not there: %d", w.Code)
	}
}
