package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/page"
	"github.com/zedkube/zedkube/types"
)

// actsAfterItsPlan does from the page what can be done, over the socket.
func actsAfterItsPlan(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	tb := b.open(t, d.url(), wide)
	tb.shows("#actions", "Drain this node", "shows its plan first")
	tb.do(`URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return "#"; }`)
	for name, command := range map[string]string{
		"drain-request": "drain request", "drain-cancel": "drain cancel", "keep-cordon": "drain keep-cordon",
		"workloads-disable": "workloads disable", "workloads-enable": "workloads enable", "bundle": "support-bundle -f -",
	} {
		tb.press("[data-key='act " + name + "']")
		tb.shows("#plan", "This is the plan. Nothing has been changed.", "zedkube --root /node-2 "+strings.TrimSuffix(command, " -f -"))
		if d.hasRun(command) {
			t.Errorf("%s was done before it was confirmed", command)
		}
		tb.press("#plan-close")
		tb.press("[data-key='act " + name + "']")
		tb.shows("#plan", "This is the plan")
		if d.hasRun(command) {
			t.Errorf("%s was done although the plan was left", command)
		}
		tb.press("#plan-do")
		if name == "bundle" {
			tb.shows("#plan", "The archive was saved")
			wait(t, "the archive is there", func() error {
				if got := eval[string](tb, `window.saved ?? ""`); !strings.Contains(got, "said by support-bundle") {
					return fail("saved is %q", got)
				}
				return nil
			})
		} else {
			tb.shows("#plan", "said by "+command, "Done.", asScript, `\u001b[31m`)
		}
		if !d.hasRun(command) {
			t.Errorf("%s was not done", command)
		}
		tb.press("#plan-close")
	}
	if eval[bool](tb, `"hacked" in window`) {
		t.Error("what a command said became more than text")
	}
	tb.clean(d.url())
}

// actsWithoutAPlan requests a drain while the API server is silent, as in a shell.
func actsWithoutAPlan(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	d.mu.Lock()
	d.silent = true
	d.mu.Unlock()
	tb := b.open(t, d.url(), wide)
	tb.shows("#actions", "Drain this node")
	tb.press("[data-key='act drain-request']")
	tb.shows("#plan", "Not all of the plan is known. Nothing has been changed.", "unknown: zedkube --root /node-2 drain plan: "+types.ErrNoAPI.Error())
	if d.hasRun("drain request") {
		t.Error("it was done before it was confirmed")
	}
	tb.press("#plan-do")
	tb.shows("#plan", "said by drain request", "Done.")
	tb.clean(d.url())
}

// pastesOverLoopback reads the page where nothing can be changed.
func pastesOverLoopback(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	base := "http://" + d.direct + "/"
	tb := b.open(t, base+"#token="+d.secret(), wide)
	tb.shows("#actions", "This connection only reads", "ssh -L 12347:/run/zedkube/zedkube.sock root@DEVICE", "zedkube --root /node-2 drain request", "zedkube --root /node-2 support-bundle")
	tb.shows("footer", "read-only")
	if n := eval[int](tb, `document.querySelectorAll("#actions button:not(.copy, h2 button)").length`); n != 0 {
		t.Errorf("%d actions are offered", n)
	}
	tb.clean(base)
	got := eval[string](tb, fmt.Sprintf(`(async () => {
		const all = [];
		for (const method of ["GET", "POST"]) all.push((await fetch("/api/actions/drain-request", { method, headers: { Authorization: "Bearer %s", "Zedkube-Plan": "A" } })).status);
		return all.join(" ");
	})()`, d.secret()))
	if got != "404 405" || d.hasRun("drain plan") || d.hasRun("drain request") {
		t.Errorf("over loopback an action is answered by %s", got)
	}
}

// keepsForeignSitesFromActing lets another site in the same browser try, with all that a
// browser sends without asking first, and with all that it asks for first.
func keepsForeignSitesFromActing(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><title>site</title><link rel=icon href="data:,">`)
	}))
	t.Cleanup(foreign.Close)
	own := b.open(t, d.url(), wide)
	own.shows("#actions", "Drain this node")
	port := foreign.URL[strings.LastIndex(foreign.URL, ":"):]
	// The second is of the same host, which cookies would take for the same site.
	for _, address := range []string{"http://evil.example" + port + "/", foreign.URL + "/"} {
		site := b.open(t, address, wide)
		for _, options := range []string{
			`{ method: "GET", mode: "no-cors" }`, `{ method: "POST", mode: "no-cors" }`, `{ method: "POST", mode: "no-cors", body: "x" }`,
			`{ method: "GET" }`, `{ method: "POST", headers: { "Zedkube-Plan": "A" } }`,
		} {
			got := eval[string](site, fmt.Sprintf(`fetch("%sapi/actions/drain-request", %s).then((r) => r.text(), () => "")`, d.url(), options))
			if got != "" {
				t.Errorf("%s reads by %s: %s", address, options, got)
			}
		}
		site.do(fmt.Sprintf(`const f = document.createElement("form"); f.method = "post"; f.action = "%sapi/actions/drain-request"; document.body.append(f); f.submit()`, d.url()))
		site.shows("body", "the request comes from another site")
	}
	if d.hasRun("drain plan") || d.hasRun("drain request") {
		t.Errorf("a foreign site ran %q", d.did)
	}
}

// copiesCommands presses the button beside a command.
func copiesCommands(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	tb := b.open(t, d.url(), wide)
	tb.shows("#problems", "kubectl -n eve-kube-app edit pdb plc")
	tb.do(`Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { window.copied = text; } } })`)
	tb.press("#problems .copy")
	tb.shows("#problems .copy", "Copied")
	if got := eval[string](tb, `window.copied`); got != "kubectl -n eve-kube-app edit pdb plc" {
		t.Errorf("copied is %q", got)
	}
	tb.do(`Object.defineProperty(Navigator.prototype, "clipboard", { get: () => undefined }); delete navigator.clipboard; navigator.clipboard?.writeText && (navigator.clipboard.writeText = async () => { throw 0; })`)
	tb.press("#drain .copy")
	tb.shows("#drain .copy", "press Ctrl+C")
	if got := eval[string](tb, `getSelection().toString()`); got != "kubectl -n eve-kube-app edit pdb plc" {
		t.Errorf("selected is %q", got)
	}
	for text, want := range map[string]string{
		"See who did it with zedkube audit --op cordon,uncordon and ask them first, then: zedkube uncordon node-1.": "zedkube --root /node-2 audit --op cordon,uncordon|zedkube --root /node-2 uncordon node-1",
		"zedkube apps 1f2-3 shows what was seen and done; then the launcher pod's Events.":                          "zedkube --root /node-2 apps 1f2-3",
		"Wait: zedkube drain status. zedkube leave --cancel withdraws an operator's request.":                       "zedkube --root /node-2 drain status|zedkube --root /node-2 leave --cancel",
		"if the data may be lost: zedkube leave plan, then zedkube leave --give-up-data":                            "zedkube --root /node-2 leave plan|zedkube --root /node-2 leave --give-up-data",
		"Save its goroutines (zedkube support-bundle); the watchdog reboots":                                        "zedkube --root /node-2 support-bundle",
		"Is the agent there running? zedkube nodes forget NODE":                                                     "zedkube --root /node-2 nodes forget NODE",
		"if that drain is no longer needed: zedkube drain unlock alpha":                                             "zedkube --root /node-2 drain unlock alpha",
		"zedkube topics EdgeNodeClusterStatus there; look for source zedkube before the device reboots":             "zedkube --root /node-2 topics EdgeNodeClusterStatus",
		"kubectl apply -f deploy/rbac.yaml, as an administrator. kubectl shows the rest.":                           "kubectl apply -f deploy/rbac.yaml",
		"zedkube drain status on that node. zedkube status says what to do":                                         "zedkube --root /node-2 drain status|zedkube --root /node-2 status",
		"No zedkube has reported, and zedkube lacks a permission":                                                   "",
	} {
		got := eval[string](tb, fmt.Sprintf(`import("/commands.js").then(({ withCommands }) => withCommands(%q, "x").filter((x) => x instanceof Node).map((x) => x.querySelector("code").textContent).join("|"))`, text))
		if got != want {
			t.Errorf("the commands of %q are\n%s\nwant\n%s", text, got, want)
		}
	}
	tb.clean(d.url())
}

// showsTwentyOfTheAudit has a long trail.
func showsTwentyOfTheAudit(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	now := time.Now().UTC()
	var all []types.Operation
	for i := range 150 {
		all = append(all, types.Operation{ID: fmt.Sprint(i), At: now.Add(-time.Duration(i) * time.Minute), Op: "evict", Target: fmt.Sprintf("pod/ns/p-%d", i), Outcome: types.OperationOK})
	}
	d.mu.Lock()
	d.trail = page.Trail{Operations: all}
	d.mu.Unlock()
	tb := b.open(t, d.url(), phone)
	tb.shows("#state", "Live")
	tb.unfold()
	tb.do(`document.querySelector("#audit").scrollIntoView({ behavior: "instant" })`)
	tb.shows("#audit", "p-0", "p-19", "Show 130 more")
	if n := eval[int](tb, `document.querySelectorAll("#audit tbody tr").length`); n != 20 {
		t.Errorf("%d rows are shown first", n)
	}
	tb.press("#audit > div button")
	tb.shows("#audit", "p-149")
	if got := eval[string](tb, `document.activeElement.innerText`); !strings.Contains(got, "p-20") {
		t.Errorf("the focus is not on the first that is new: %q", got)
	}
}
