package browser

import (
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pkg/operate/page"
)

// saysWhenItIsOld ends the agent under the page, and lets it come back.
func saysWhenItIsOld(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	tb := b.open(t, d.url(), phone)
	tb.shows("#state", "Live")
	tb.shows("#nodes", "node-3")
	if !eval[bool](tb, `document.querySelector("#old").hidden`) {
		t.Error("it calls itself old while it is not")
	}
	ages := func() string {
		return eval[string](tb, `[...document.querySelectorAll("#nodes time")].map((e) => e.innerText).join(" ")`)
	}
	before := ages()

	d.stopped()
	tb.shows("#state", "Connection lost")
	tb.shows("#old", "No answer from the agent", "The data shown is from 20", "Trying again")
	tb.shows("#nodes", "node-3")
	wait(t, "ages go on", func() error {
		if now := ages(); now == before {
			return fail("the ages are still %s", now)
		}
		return nil
	})
	if got := eval[string](tb, `document.title`); got != "Connection lost - (2) node-2 - zedkube" {
		t.Errorf("the title of a page that is old is %q", got)
	}
	tb.do(`window.scrollTo({ top: document.body.scrollHeight, behavior: "instant" })`)
	if top := eval[int](tb, `Math.round(document.querySelector("#old").getBoundingClientRect().top)`); top < 0 || top > 200 {
		t.Errorf("at the end of the page the warning is at %d px", top)
	}
	if !strings.Contains(eval[string](tb, `document.body.className`), "old") {
		t.Error("nothing but words says that the page is old")
	}

	d.show(func(o *overview.Overview) { o.Nodes.List[2].Name = "node-4" })
	d.start()
	tb.shows("#state", "Live")
	tb.shows("#nodes", "node-4")
	if !eval[bool](tb, `document.querySelector("#old").hidden`) {
		t.Error("it calls itself old after the agent is back")
	}
	if got := eval[string](tb, `document.title`); got != "(2) node-2 - zedkube" {
		t.Errorf("the title of a page that is live again is %q", got)
	}
}

// followsALog reads the log of an application while it is written.
func followsALog(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	d.logs.past = []string{"2026-11-21T10:00:00.5Z the first line\n"}
	d.logs.lines = make(chan string)
	tb := b.open(t, d.url(), phone)
	tb.shows("#apps", "historian")
	tb.press(fmt.Sprintf(`[data-key="log %s"]`, appUUID(3)))
	tb.shows("#logs-out", "10:00:00 the first line")
	if got := eval[string](tb, `document.querySelector("#logs-app").selectedOptions[0].innerText`); got != "historian" {
		t.Errorf("%q is chosen", got)
	}
	d.logs.lines <- "2026-11-21T10:00:01Z " + strings.Repeat("long ", 1500) + "\n"
	d.logs.lines <- "2026-11-21T10:00:02Z the next line\n"
	tb.shows("#logs-out", "the next line", "more bytes]")
	tb.shows("#logs-state", "Following")
	for i := range 30 {
		d.logs.lines <- strings.Repeat(fmt.Sprintf("2026-11-21T10:01:00Z line %d\n", i), 100)
	}
	tb.shows("#logs-out", "line 29")
	if got := eval[int](tb, `document.querySelectorAll("#logs-out span").length`); got > 2000 {
		t.Errorf("%d lines are kept", got)
	}
	if eval[int](tb, `(() => { const o = document.querySelector("#logs-out"); return o.scrollHeight - o.clientHeight - Math.round(o.scrollTop); })()`) > 2 {
		t.Error("the newest line is not in view")
	}
	if over := eval[int](tb, `document.querySelector("#logs-out").scrollWidth - document.querySelector("#logs-out").clientWidth`); over > 0 {
		t.Errorf("a long line is not wrapped: %d px too wide", over)
	}
	tb.press("#logs-stop")
	tb.shows("#logs-state", "Stopped")
	wait(t, "the log is closed", func() error {
		if n := d.logs.open.Load(); n != 0 {
			return fail("%d logs are still open", n)
		}
		return nil
	})
	if over := eval[int](tb, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		t.Errorf("the log makes the page %d px too wide", over)
	}
	tb.clean(d.url())
}

// staysUnderThePointer shows a log: the page is at its place at once, for what
// moves while it is pressed is not pressed.
func staysUnderThePointer(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	tb := b.open(t, d.url(), phone)
	tb.shows("#apps", "historian")
	got := eval[int](tb, fmt.Sprintf(`(() => {
		document.querySelector('[data-key="log %s"]').click();
		const stop = document.querySelector("#logs-stop").getBoundingClientRect();
		return Math.round(stop.bottom - innerHeight);
	})()`, appUUID(3)))
	if got > 0 {
		t.Errorf("Stop is %d px below the window when the log is asked for", got)
	}
}

// prints checks what comes on paper.
func prints(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	tb := b.open(t, d.url(), inDark)
	tb.shows("#drain", "Emptying")
	tb.media("print")
	if got := eval[string](tb, `["nav", "#audit-form", "#logs", "#actions"].map((s) => getComputedStyle(document.querySelector(s)).display).join(" ")`); got != "none none none none" {
		t.Errorf("controls are printed: %s", got)
	}
	if got := eval[string](tb, `getComputedStyle(document.documentElement).backgroundColor`); got != "rgb(255, 255, 255)" {
		t.Errorf("paper is printed %s", got)
	}
}

// goesOnAfterAHugeDay shows a device with more of everything than fits.
func goesOnAfterAHugeDay(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	d.show(func(o *overview.Overview) {
		for i := range 3000 {
			app := o.Apps.List[i%3]
			app.Name = fmt.Sprintf("app-%d-%s", i, strings.Repeat("x", 40))
			app.UUID = appUUID(i + 10)
			o.Apps.List = append(o.Apps.List, app)
		}
	})
	begin := time.Now()
	tb := b.open(t, d.url(), phone)
	tb.shows("#apps", "app-200-xxx", "2703 more are not shown")
	t.Logf("3000 applications are shown after %s", time.Since(begin).Round(time.Millisecond))
	d.show(func(o *overview.Overview) { o.Node.DeviceName = strings.Repeat("y", 5<<20) })
	tb.shows("#old", "more than the 4096 kB that a page can show")
	d.show(func(o *overview.Overview) { o.Node.DeviceName, o.Apps.List = "", o.Apps.List[:3] })
	tb.shows("#apps", "3 applications")
	tb.shows("#state", "Live")
	tb.clean(d.url())
}

// forgetsWhatHasGone stays open for a day on which a pod goes and comes.
func forgetsWhatHasGone(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	tb := b.open(t, d.url(), wide)
	tb.shows("#metrics", "CPU of this node")
	// All at once, or what the agent says comes between.
	got := eval[string](tb, `import("/plots.js").then(({ measured }) => {
		const hour = 3600000, tomorrow = Date.now() + 24 * hour;
		const of = (Kind, Pod, at) => measured({ Series: [{ Kind, Name: "x", Pod, Max: 0, Points: [[at, 1]] }] });
		const plot = () => [...document.querySelectorAll("#metrics figure")].find((f) => f.textContent.includes("Memory of x"));
		of("app-memory", "ns/x", tomorrow);
		const first = plot();
		of("node-cpu", "", tomorrow + hour);
		if (plot()) return "the plot of a pod that went is still there";
		of("app-memory", "ns/x", tomorrow + hour);
		return plot() === first ? "what was drawn of it was kept" : plot().querySelector("svg").getAttribute("aria-label");
	})`)
	if !strings.Contains(got, "in 0s") {
		t.Errorf("an hour after a pod went: %s", got)
	}
}

// asksOnceAtATime has a disk that hangs while somebody scrolls up and down.
func asksOnceAtATime(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	var asked atomic.Int32
	free := make(chan struct{})
	d.page.Audit = func(url.Values) (page.Trail, error) {
		asked.Add(1)
		<-free
		return page.Trail{Operations: recorded(time.Now())}, nil
	}
	tb := b.open(t, d.url(), phone)
	tb.shows("#state", "Live")
	tb.unfold()
	eval[bool](tb, `(async () => {
		for (let i = 0; i < 6; i++) {
			document.querySelector(i % 2 ? "header" : "#audit").scrollIntoView({ behavior: "instant" });
			await new Promise((done) => setTimeout(done, 300));
		}
		return true;
	})()`)
	if n := asked.Load(); n != 1 {
		t.Errorf("it asked %d times before the first answer", n)
	}
	close(free)
	tb.shows("#audit", recorded(time.Now())[0].Op)
}
