package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zedkube/zedkube/pkg/operate/actions"
)

// playedEdge is the program zedkube-edge.
type playedEdge struct {
	mu      sync.Mutex
	missing bool
	on      bool
	limit   string
	nodes   map[string]string // states by name
	ran     []string
}

// run plays a command of zedkube-edge.
func (e *playedEdge) run(_ context.Context, out io.Writer, args ...string) error {
	line := strings.Join(args, " ")
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.missing {
		return fmt.Errorf("%w: \"make edge\" builds it, see docs/edge.md", actions.ErrNoEdge)
	}
	e.ran = append(e.ran, line)
	switch {
	case line == "status -o json":
		return e.status(out)
	case strings.HasSuffix(line, "--dry-run"):
		fmt.Fprintf(out, "Plan of %s\nNothing was changed.\n", line)
	case strings.Contains(line, "nodeLimit=900"):
		return errors.New("refused: nodeLimit is 900, and may be 250")
	case strings.HasPrefix(line, "enable"):
		e.on = true
		fmt.Fprintln(out, "KubeEdge is on.")
	case strings.HasPrefix(line, "set nodeLimit="):
		e.limit = strings.Fields(strings.TrimPrefix(line, "set nodeLimit="))[0]
		fmt.Fprintln(out, "The settings are written.", asScript)
	case strings.HasPrefix(line, "leave"):
		e.nodes[args[1]] = map[bool]string{true: "refused", false: "left"}[slices.Contains(args, "--lost")]
		fmt.Fprintln(out, args[1], "has left.", asScript)
	case strings.HasPrefix(line, "join"):
		e.nodes[args[1]] = "asked"
		if slices.Contains(args, "--bundle") {
			fmt.Fprint(out, "the bundle of "+args[1])
			return nil
		}
		fmt.Fprintf(out, `{"name":%q,"command":"sh -c 'join %s --token SECRET'","keadm":"keadm join --token=SECRET","keadmLacks":["it has no address"],"tokenUntil":"2030-01-01T00:00:00Z"}`, args[1], args[1])
	}
	return nil
}

func (e *playedEdge) status(out io.Writer) error {
	type row struct{ Name, Value, Default, Allowed, Restarts, Means string }
	type node struct{ Name, State string }
	var nodes []node
	for name, state := range e.nodes {
		nodes = append(nodes, node{name, state})
	}
	return json.NewEncoder(out).Encode(map[string]any{
		"Enabled": e.on, "Wanted": 1, "Available": 1, "Addresses": []string{"192.0.2.1"}, "Nodes": nodes,
		"Ports":    []map[string]any{{"Port": 31000, "Protocol": "tcp", "Name": "cloudhub"}, {"Port": 31002, "Protocol": "tcp", "Name": "cloudhub-https"}},
		"Problems": []string{"image " + asImage + " is missing on node node-2"},
		"Settings": []row{
			{"ha", "false", "false", "true|false", "cloudcore", "as many cloudcores as there are servers, three at most"},
			{"nodeLimit", e.limit, "100", "number", "cloudcore", "how many edge nodes there may be, 1 to 250"},
			{"websocketPort", "0", "31000", "number", "", "port of the Service"},
			{"image", "docker.io/kubeedge/cloudcore:v1.20.0", "docker.io/kubeedge/cloudcore:v1.20.0", "text", "cloudcore", "cloudcore's image"},
		},
	})
}

func (e *playedEdge) hasRun(line string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.ran, line)
}

// fill changes what is in a field.
func (tb *tab) fill(selector, text string) {
	tb.t.Helper()
	tb.do(fmt.Sprintf(`const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new Event("input")); e.dispatchEvent(new Event("change"))`, selector, text))
}

func (tb *tab) scrollTo(selector string) {
	tb.t.Helper()
	tb.do(fmt.Sprintf(`document.querySelector(%q).scrollIntoView({ behavior: "instant" })`, selector))
}

// runsKubeEdge enables KubeEdge, changes a setting, and lets a device join.
func runsKubeEdge(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	tb := b.open(t, d.url(), wide)
	tb.shows("#state", "Live")
	tb.scrollTo("#edge")
	tb.shows("#edge", "KubeEdge is off", "31002/tcp (cloudhub-https)", asImage, "nodeLimit", "docker.io/kubeedge/cloudcore:v1.20.0", "Enable …")
	if got := eval[string](tb, `[...document.querySelectorAll("#edge-form input[type=text], #edge-form select")].map((e) => e.id + "=" + e.value + "/" + (e.placeholder ?? "")).join(" ")`); got != "edge-ha=false/false edge-nodeLimit=100/100 edge-websocketPort=/31000 edge-image=docker.io/kubeedge/cloudcore:v1.20.0/docker.io/kubeedge/cloudcore:v1.20.0" {
		t.Errorf("the form has %s", got)
	}
	tb.do(`document.querySelector("#edge-ha-too").click()`)
	tb.fill("#edge-nodeLimit", "20")
	tb.shows("#edge-count", "1 setting changed here")
	tb.press("#edge-enable")
	tb.shows("#plan", "Plan of enable --ha nodeLimit=20 --dry-run", "This is the plan.", "zedkube --root /node-2 edge enable --ha nodeLimit=20")
	if d.edge.hasRun("enable --ha nodeLimit=20 --yes") {
		t.Error("it was done before it was confirmed")
	}
	tb.press("#plan-do")
	tb.shows("#plan", "KubeEdge is on.", "Done.")
	tb.press("#plan-close")
	tb.shows("#edge", "KubeEdge is on", "1 of 1 cloudcores available", "Disable …")

	tb.fill("#edge-nodeLimit", "900")
	tb.press("#edge-set")
	tb.shows("#plan", "Plan of set nodeLimit=900")
	tb.press("#plan-do")
	tb.shows("#plan", "It failed: refused: nodeLimit is 900, and may be 250")
	tb.press("#plan-close")
	if got := eval[string](tb, `document.querySelector("#edge-nodeLimit").value`); got != "900" {
		t.Errorf("what was typed became %q", got)
	}
	tb.fill("#edge-nodeLimit", "30")
	tb.press("#edge-set")
	tb.shows("#plan", "Plan of set nodeLimit=30")
	tb.press("#plan-do")
	tb.shows("#plan", "The settings are written.", asScript, "Done.")
	tb.press("#plan-close")
	tb.fill("#edge-websocketPort", "31100")
	tb.do(`document.querySelector("#edge-force-set").click()`)
	tb.press("#edge-set")
	tb.shows("#plan", "Plan of set --force websocketPort=31100 --dry-run", "zedkube --root /node-2 edge set --force websocketPort=31100")
	tb.press("#plan-close")
	d.letsJoin(tb)
	d.letsLeave(tb)
	if eval[bool](tb, `"hacked" in window || document.querySelectorAll("img").length > 0`) {
		t.Error("what zedkube-edge said became more than text")
	}
	tb.clean(d.url())
}

// letsJoin lets a device join while somebody looks, and downloads its bundle.
func (d *device) letsJoin(tb *tab) {
	tb.t.Helper()
	tb.shows("#edge", "Join an edge node")
	tb.press("#edge-join")
	tb.fill("#join-name", "press $(reboot)")
	tb.press("#join-form button[type=submit]")
	tb.press("#join-bundle")
	if eval[bool](tb, `document.querySelector("#plan").open`) {
		tb.t.Error("there is a plan for a name that none can have")
	}
	tb.fill("#join-name", "press-1")
	tb.fill("#join-arch", "arm64")
	tb.press("#join-form button[type=submit]")
	tb.shows("#plan", "Plan of join press-1 --arch arm64 --dry-run", "edge join press-1 --arch arm64")
	tb.press("#plan-do")
	tb.shows("#join", "sh -c 'join press-1 --token SECRET'", "keadm join --token=SECRET", "it has no address", "press-1: asked to join")
	d.edge.mu.Lock()
	d.edge.nodes["press-1"] = "Ready"
	d.edge.mu.Unlock()
	tb.shows("#join-state", "press-1: Ready")
	tb.do(`URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return "#"; }`)
	tb.press("#join-bundle")
	tb.shows("#plan", "This is the plan.")
	tb.press("#plan-do")
	tb.shows("#plan", "The archive was saved")
	wait(tb.t, "the bundle is there", func() error {
		if got := eval[string](tb, `window.saved ?? ""`); got != "the bundle of press-1" {
			return fail("saved is %q", got)
		}
		return nil
	})
	tb.press("#plan-close")
	tb.press("#join-close")
	tb.shows("#edge", "press-1", "Ready")
	wait(tb.t, "the token is gone", func() error {
		if eval[bool](tb, `document.documentElement.outerHTML.includes("SECRET")`) {
			return fail("the token is still on the page")
		}
		return nil
	})
}

// letsLeave lets one edge node leave, and another one as lost.
func (d *device) letsLeave(tb *tab) {
	tb.t.Helper()
	d.edge.mu.Lock()
	d.edge.nodes["press-2"] = "offline"
	d.edge.mu.Unlock()
	tb.shows("#edge", "2 edge nodes", "press-2")
	button := func(name string, lost bool) string {
		return fmt.Sprintf(`#edge button[data-key="leave %s %v"]`, name, lost)
	}
	tb.press(button("press-1", false))
	tb.shows("#plan", "Plan of leave press-1 --dry-run", "waits 45 s", "zedkube --root /node-2 edge leave press-1")
	if d.edge.hasRun("leave press-1 --yes --timeout 45s") {
		tb.t.Error("it was done before it was confirmed")
	}
	tb.press("#plan-do")
	tb.shows("#plan", "press-1 has left.", asScript, "Done.")
	tb.press("#plan-close")
	tb.press(button("press-2", true))
	tb.shows("#plan", "Plan of leave press-2 --lost --dry-run", "its name is refused", "edge leave press-2 --lost")
	tb.press("#plan-do")
	tb.shows("#plan", "Done.")
	tb.press("#plan-close")
	tb.shows("#edge", "left", "refused")
	if n := eval[int](tb, `document.querySelectorAll("#edge button[data-key^=leave]").length`); n != 0 {
		tb.t.Errorf("of those that have left %d can leave", n)
	}
}

// readsKubeEdge reads over loopback, where nothing can be changed, and where the program is missing.
func readsKubeEdge(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	base := "http://" + d.direct + "/"
	tb := b.open(t, base+"#token="+d.secret(), phone)
	tb.shows("#apps", "historian")
	tb.scrollTo("#edge") // it is folded
	tb.shows("#actions h2", "Actions")
	if d.edge.hasRun("status -o json") {
		t.Error("zedkube-edge ran although nobody looks")
	}
	tb.unfold()
	tb.scrollTo("#edge")
	tb.shows("#edge", "KubeEdge is off", "nodeLimit", "This connection only reads", "zedkube --root /node-2 edge set KEY=VALUE", "zedkube --root /node-2 edge join NAME", "zedkube --root /node-2 edge leave NAME --lost")
	if n := eval[int](tb, `document.querySelectorAll("#edge button:not(.copy, h2 button), #edge input, #edge select").length`); n != 0 {
		t.Errorf("%d ways to change something are offered", n)
	}
	got := eval[string](tb, fmt.Sprintf(`(async () => {
		const all = [];
		for (const path of ["plan", "do"]) all.push((await fetch("/api/edge/" + path, { method: "POST", body: "{}", headers: { Authorization: "Bearer %s", "Zedkube-Plan": "A" } })).status);
		return all.join(" ");
	})()`, d.secret()))
	if got != "405 405" {
		t.Errorf("over loopback a plan is answered by %s", got)
	}
	d.edge.mu.Lock()
	d.edge.missing = true // from the next look on
	d.edge.mu.Unlock()
	tb.shows("#edge", "zedkube-edge, which runs KubeEdge, is not installed beside this agent", "make edge")
}
