package browser

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focused is what has the focus, "" for nothing.
const focused = `(() => { const e = document.activeElement; return e === document.body ? "" : (e.getAttribute("aria-label") || e.innerText || e.id).trim().slice(0, 60) + (getComputedStyle(e).outlineStyle === "none" ? " (unseen)" : ""); })()`

// key presses a key.
func (tb *tab) key(key string) {
	tb.t.Helper()
	tb.must(chromedp.Do(tb.ctx, chromedp.KeyEvent(key)))
}

// tabTo presses Tab until what is wanted has the focus.
func (tb *tab) tabTo(want string) {
	tb.t.Helper()
	var stops []string
	for range 150 {
		tb.key(kb.Tab)
		at := eval[string](tb, focused)
		if strings.HasPrefix(at, want) {
			return
		}
		stops = append(stops, at)
	}
	tb.t.Fatalf("no way by Tab to %q: %s", want, strings.Join(stops, "; "))
}

// worksWithoutAMouse goes through the page by keyboard, and drains the node so.
func worksWithoutAMouse(t *testing.T, b *browser) {
	for name, look := range map[string]window{"phone": phone, "wide": wide} {
		t.Run(name, func(t *testing.T) {
			d := newDevice(t)
			d.full()
			tb := b.open(t, d.url(), look)
			tb.shows("#apps", "historian")
			tb.tabTo("Skip to content")
			if look.width == phone.width {
				tb.tabTo("Audit")
				tb.key(kb.Enter) // the link unfolds what it goes to
				if eval[bool](tb, `document.querySelector("#audit").classList.contains("folded")`) {
					t.Error("a link goes to a part that stays folded")
				}
				tb.tabTo("Logs of an application")
				tb.key(kb.Enter)
			}
			tb.unfold()
			tb.shows("#actions", "Drain this node")
			tb.do(`document.querySelector(".skip").focus()`)
			var stops []string
			for range 150 {
				tb.key(kb.Tab)
				at := eval[string](tb, focused)
				if at == "" {
					break
				}
				stops = append(stops, at)
			}
			all := strings.Join(stops, "; ")
			for _, want := range []string{"Problems", "Logs", "Copy kubectl -n eve-kube-app edit pdb plc", "Drain this node", "Log of historian", "audit-text", "logs-follow", "Show"} {
				if !strings.Contains(all, want) {
					t.Errorf("no way by Tab to %q: %s", want, all)
				}
			}
			if strings.Contains(all, "(unseen)") {
				t.Errorf("the focus cannot be seen: %s", all)
			}
			tb.do(`document.querySelector("[data-key='act drain-request']").focus()`)
			tb.key(kb.Enter)
			tb.shows("#plan", "it would not end by itself", "Nothing has been changed")
			if got := eval[bool](tb, `document.querySelector("#plan").contains(document.activeElement)`); !got {
				t.Error("the focus is not in the plan")
			}
			tb.key(kb.Escape)
			wait(t, "Escape closes the plan", func() error {
				if eval[bool](tb, `document.querySelector("#plan").open`) {
					return fail("it is open")
				}
				return nil
			})
			if got := eval[string](tb, focused); !strings.HasPrefix(got, "Drain this node") {
				t.Errorf("after the plan the focus is on %q", got)
			}
			tb.key(kb.Enter)
			tb.shows("#plan", "it would not end by itself")
			tb.tabTo("Drain this node")
			if d.hasRun("drain request") {
				t.Error("it was done before it was confirmed")
			}
			tb.key(kb.Enter)
			tb.shows("#plan", "said by drain request", "Done.")
			tb.clean(d.url())
		})
	}
}

// node is one of the tree that a screen reader reads.
type node struct{ role, name string }

// tree is what a screen reader reads, in its order.
func (tb *tab) tree() []node {
	tb.t.Helper()
	tree, err := chromedp.Call(tb.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	tb.must(err)
	var all []node
	for _, n := range tree.Nodes {
		if n.Ignored || n.Role == nil {
			continue
		}
		at := node{role: strings.Trim(string(n.Role.Value), `"`)}
		if n.Name != nil {
			tb.must(json.Unmarshal(n.Name.Value, &at.name))
		}
		all = append(all, at)
	}
	return all
}

// worksWithoutEyes reads the tree of a screen reader, of the page and of a plan.
func worksWithoutEyes(t *testing.T, b *browser) {
	for name, look := range map[string]window{"phone": phone, "wide": wide} {
		t.Run(name, func(t *testing.T) {
			d := newDevice(t)
			d.full()
			tb := b.open(t, d.url(), look)
			tb.shows("#apps", "historian")
			tb.unfold()
			tb.shows("#actions", "Drain this node")
			roles, named := map[string]int{}, map[node]bool{}
			for _, n := range tb.tree() {
				roles[n.role]++
				named[n] = true
				if n.name == "" && strings.Contains(" button link checkbox searchbox combobox progressbar region image log navigation heading dialog ", " "+n.role+" ") {
					t.Errorf("a %s has no name", n.role)
				}
			}
			for _, want := range []string{"main", "navigation", "banner", "region", "table", "columnheader", "rowheader", "cell", "heading", "status", "image", "log"} {
				if roles[want] == 0 {
					t.Errorf("a screen reader is told of no %s: %v", want, roles)
				}
			}
			for _, want := range []node{
				{"heading", "node-2"},
				{"heading", "What is wrong"},
				{"heading", "Actions"},
				{"region", "Drain of this node"},
				{"navigation", "Parts of the page"},
				{"button", "Drain this node …"},
				{"button", "Copy kubectl -n eve-kube-app edit pdb plc"},
				{"button", "Log of historian"},
				{"progressbar", "pods gone"},
			} {
				if !named[want] {
					t.Errorf("a screen reader does not find the %s %q", want.role, want.name)
				}
			}
			tb.press("[data-key='act drain-request']")
			tb.shows("#plan", "it would not end by itself")
			named = map[node]bool{}
			for _, n := range tb.tree() {
				named[n] = true
			}
			for _, want := range []node{{"dialog", "Drain this node"}, {"region", "Plan"}, {"button", "Drain this node"}, {"button", "Cancel"}} {
				if !named[want] {
					t.Errorf("in the plan a screen reader does not find the %s %q", want.role, want.name)
				}
			}
			if named[node{"button", "Log of historian"}] {
				t.Error("what is behind the plan is read as well")
			}
		})
	}
}
