package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// hostile are names that want to be more than names.
const (
	asScript = `</script><script>window.hacked=1</script>`
	asImage  = `<img src=x onerror="window.hacked=1">`
	asEscape = "\x1b[31mred\x1b]0;title\x07\u202egnp"
)

// showsNamesAsText gives everything that has a name a hostile one.
func showsNamesAsText(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	now := time.Now().UTC()
	d.show(func(o *overview.Overview) {
		o.Node.Name = asScript
		for i := range o.Problems {
			o.Problems[i].Evidence, o.Problems[i].Remedy, o.Problems[i].Subject, o.Problems[i].Anchor = asImage, asScript, asEscape, asImage
		}
		for i := range o.Apps.List {
			o.Apps.List[i].Name, o.Apps.List[i].Node, o.Apps.List[i].Ports = asScript, asImage, []string{asEscape}
		}
		for i := range o.Nodes.List {
			o.Nodes.List[i].Name, o.Nodes.List[i].CordonWhy, o.Nodes.List[i].Roles = asImage, asScript, []string{asEscape}
		}
		p := *o.Drain.Progress
		p.Reason = asScript
		p.Blockers = []types.DrainBlocker{{Pod: asImage, Why: asEscape, Remedy: asScript, Cause: asImage, Since: now}}
		p.Volumes = []types.DrainVolume{{Name: asScript, Claim: asImage, Rebuilding: asEscape, Percent: 1, Since: now}}
		o.Drain.Progress = &p
		o.Storage.Volumes[0].Name, o.Conditions.List[0].Message, o.Cluster.Name = asScript, asImage, asEscape
		o.Unreadable = []overview.Source{{File: asScript, Why: asImage}}
	})
	d.mu.Lock()
	bad := &d.trail.Operations[0]
	bad.Target, bad.Why, bad.Error = asScript, asImage, asEscape
	for i := range d.cluster {
		r := &d.cluster[i]
		r.Name, r.Why, r.Node.Status = asScript, asImage+asEscape, asImage
		if v := r.View; v != nil {
			v.Why, v.Problems[0].Evidence, v.Problems[0].Rule, v.Apps[0].Name, v.Drain.Progress.Reason = asImage, asScript, asEscape, asImage, asScript
		}
	}
	d.trail.Remarks = []string{"A file cannot be read: " + asScript + asImage}
	d.mu.Unlock()
	m := measured(now)
	m.Pods[0].Name = asImage
	_ = d.metrics.Publish(types.Global, m)
	d.logs.past = []string{"2026-11-21T10:00:00Z " + asScript + "\n", "2026-11-21T10:00:01Z " + asImage + asEscape + "\n", "2026-11-21T10:00:02Z \xff\xfe!-- not the page\n"}

	tb := b.open(t, d.url(), phone)
	tb.unfold()
	tb.shows("#problems", asImage, asScript, `\u001b[31mred\u001b]0;title\u0007\u202egnp`)
	tb.shows("#apps", asScript)
	tb.shows("#nodes", asImage)
	tb.shows("#drain", asScript, asImage)
	tb.shows("#device", asScript, `\u202e`)
	tb.shows("#metrics", asImage)
	tb.do(`document.querySelector("#cluster").scrollIntoView({ behavior: "instant" })`)
	tb.shows("#cluster", asScript, asImage)
	tb.do(`document.querySelector("#audit").scrollIntoView({ behavior: "instant" })`)
	tb.shows("#audit", asScript, asImage, `\u001b`, "A file cannot be read: "+asScript)
	tb.do(`document.querySelector("#apps table button").click()`)
	tb.shows("#logs-out", asScript, asImage, `\u001b[31m`, `\xff\xfe!-- not the page`)
	if eval[bool](tb, `"hacked" in window || document.querySelectorAll("img, script:not([src='/page.js'])").length > 0`) {
		t.Error("a name became more than text")
	}
	if got := eval[string](tb, `document.title`); !strings.Contains(got, "</script>") {
		t.Errorf("title %q", got)
	}
	if over := eval[int](tb, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		t.Errorf("hostile names make the page %d px too wide", over)
	}
	tb.clean(d.url())
}

// keepsForeignSitesOut opens sites of somebody else in the same browser, which
// try to read the page: from their own name, and from one that DNS has turned
// to this device.
func keepsForeignSitesOut(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><title>site</title><link rel=icon href="data:,">`)
	}))
	t.Cleanup(foreign.Close)
	own := b.open(t, d.url(), wide)
	own.shows("#apps", "historian")

	port := foreign.URL[strings.LastIndex(foreign.URL, ":"):]
	site := b.open(t, "http://evil.example"+port+"/", wide)
	if got := eval[string](site, `document.title`); got != "site" {
		t.Fatalf("the foreign site is not there: %q", got)
	}
	for _, target := range []string{d.url(), d.url() + "api/overview", d.url() + "api/events", d.url() + "api/logs?app=" + appUUID(1), "http://localhost" + d.address[strings.LastIndex(d.address, ":"):] + "/api/overview"} {
		if got := eval[string](site, fmt.Sprintf(`fetch(%q).then(r => r.text(), e => "refused")`, target)); got != "refused" {
			t.Errorf("a foreign site reads %s:\n%s", target, got)
		}
	}
	if got := eval[string](site, fmt.Sprintf(`new Promise((done) => { const e = new EventSource(%q); e.onerror = () => done("refused"); e.addEventListener("overview", () => done("read")); })`, d.url()+"api/events")); got != "refused" {
		t.Error("a foreign site hears the events")
	}
	framed := fmt.Sprintf(`new Promise((done) => { const f = document.createElement("iframe"); f.src = %q; f.onload = () => { try { done(f.contentDocument.body.innerText); } catch { done("refused"); } }; document.body.append(f); })`, d.url())
	if got := eval[string](site, framed); got != "refused" {
		t.Errorf("a foreign site frames the page and reads:\n%s", got)
	}

	rebound := b.open(t, "http://rebound.example"+d.address[strings.LastIndex(d.address, ":"):]+"/", wide)
	for _, target := range []string{"/", "/api/overview", "/api/audit"} {
		got := eval[string](rebound, fmt.Sprintf(`fetch(%q).then(async (r) => r.status + " " + await r.text(), (e) => "refused")`, target))
		if !strings.HasPrefix(got, "403 ") || strings.Contains(got, "historian") {
			t.Errorf("by a name that points here %s says\n%s", target, got)
		}
	}
}
