package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// axe runs axe-core on what is shown: what people without sight, hearing or a mouse stumble
// over, a line each, with how much they do.
const axe = `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
	violations.map((v) => v.impact + " " + v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.target.join(" ")).join(", ")).join("\n"))`

// TestAxeFindsNothingSeriousOnThePage lets axe-core judge the page, a plan, and the manual.
func TestAxeFindsNothingSeriousOnThePage(t *testing.T) {
	files, err := filepath.Glob("../../bin/axe/*/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("axe-core is not there: make axe")
	}
	script, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t)
	for name, look := range map[string]window{"phone-light": phone, "wide-dark": inDark} {
		t.Run(name, func(t *testing.T) {
			d := newDevice(t)
			d.full()
			tb := b.open(t, d.url(), look)
			judge := func(what string) {
				t.Helper()
				for line := range strings.Lines(eval[string](tb, axe)) {
					if strings.HasPrefix(line, "serious") || strings.HasPrefix(line, "critical") {
						t.Errorf("%s: %s", what, line)
						continue
					}
					t.Logf("%s: %s", what, line)
				}
			}
			tb.shows("#apps", "historian")
			tb.do(string(script))
			judge("the page as it is opened")
			tb.unfold()
			tb.shows("#actions", "Drain this node")
			tb.do(`document.querySelector("#audit").scrollIntoView({ behavior: "instant" })`)
			tb.shows("#audit", "18 times")
			judge("the whole page")
			tb.do(`document.querySelector("[data-key='act drain-request']").click()`)
			tb.shows("#plan", "This is the plan")
			judge("a plan")
			tb.do(`document.querySelector("#plan-close").click()`)
			d.edge.mu.Lock()
			d.edge.on = true
			d.edge.nodes["press-1"] = "offline"
			d.edge.mu.Unlock()
			tb.scrollTo("#edge")
			tb.shows("#edge", "Join an edge node", "nodeLimit", "Leave as lost")
			judge("KubeEdge")
			tb.do(`document.querySelector("#edge-join").click()`)
			judge("the join of an edge node")
			tb.do(`document.querySelector("#join-close").click()`)
			d.stopped()
			tb.shows("#state", "Connection lost")
			judge("a page that is old")
			d.start()
			tb.do(`location.href = "/manual"`)
			tb.shows("body", "Runbook")
			tb.do(string(script))
			judge("the manual")
		})
	}
}
