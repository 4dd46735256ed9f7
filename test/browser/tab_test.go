package browser

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// browser is one chromium for all tests: it takes seconds to start.
type browser struct{ ctx context.Context }

// foreignHosts are sites of the tests' own: every name that ends so is this
// machine, as an attacker's DNS would say.
const foreignHosts = "MAP *.example 127.0.0.1"

func openBrowser(t *testing.T) *browser {
	t.Helper()
	ctx, cancel := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(
		chromedp.ExecPath(program(t)),
		chromedp.NoSandbox, // root has none
		chromedp.DisableGPU,
		chromedp.Flag("host-resolver-rules", foreignHosts),
	))
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		cancel()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return &browser{ctx}
}

// window is how somebody looks.
type window struct {
	width, height int64
	dark          bool
}

var (
	wide   = window{width: 1280, height: 1250}
	phone  = window{width: 390, height: 1250}
	inDark = window{width: 1280, height: 1250, dark: true}
)

// tab is one page under test.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	said     []string // on the console
	requests []string // URLs
}

// open opens an address in a tab that knows nothing of the others.
func (b *browser) open(t *testing.T, address string, look window) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	tb := &tab{t: t, ctx: ctx}
	scheme := "light"
	if look.dark {
		scheme = "dark"
	}
	tb.must(chromedp.Do(ctx))
	var listening sync.WaitGroup
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		cancel()
		listening.Wait()
	})
	console := chromedp.Console(ctx)
	sent := chromedp.Events(ctx, network.RequestWillBeSent)
	listening.Go(func() {
		for m, err := range console {
			if err != nil {
				return
			}
			tb.note(&tb.said, m.String()+" "+m.URL)
		}
	})
	listening.Go(func() {
		for e, err := range sent {
			if err != nil {
				return
			}
			tb.note(&tb.requests, e.Request.URL)
		}
	})
	tb.must(chromedp.Do(ctx, chromedp.EmulateViewport(look.width, look.height)))
	tb.media("", &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
	tb.must(chromedp.Do(ctx, chromedp.Navigate(address)))
	return tb
}

// media makes the tab a screen, "", or paper, "print".
func (tb *tab) media(kind string, features ...*emulation.MediaFeature) {
	tb.t.Helper()
	_, err := chromedp.Call(tb.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: kind, Features: features})
	tb.must(err)
}

func (tb *tab) note(where *[]string, text string) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	*where = append(*where, text)
}

func (tb *tab) must(err error) {
	tb.t.Helper()
	if err != nil {
		tb.t.Fatal(err)
	}
}

// eval is what an expression of JavaScript gives.
func eval[T any](tb *tab, expression string) T {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tb.t.Fatalf("evaluate %s: %v", expression, err)
	}
	return v
}

// do runs a statement of JavaScript.
func (tb *tab) do(statement string) {
	tb.t.Helper()
	eval[bool](tb, "(() => { "+statement+"; return true; })()")
}

// press clicks an element with the mouse. Where the page moves between the press
// and its release the click goes to something else, and is made again, as a
// person does.
func (tb *tab) press(selector string) {
	tb.t.Helper()
	tb.do("window.pressed = false; document.querySelector(`" + selector + "`).addEventListener(\"click\", () => { window.pressed = true; }, { once: true })")
	wait(tb.t, selector+" is pressed", func() error {
		tb.must(chromedp.Do(tb.ctx, chromedp.Click(chromedp.CSS(selector))))
		if !eval[bool](tb, "window.pressed") {
			return fail("the click went to something else")
		}
		return nil
	})
}

// unfold unfolds all parts of the page.
func (tb *tab) unfold() {
	tb.t.Helper()
	tb.do(`document.querySelectorAll("h2 button[aria-expanded=false]").forEach((b) => b.click())`)
}

// text is what an element shows.
func (tb *tab) text(selector string) string {
	tb.t.Helper()
	return eval[string](tb, `document.querySelector("`+selector+`")?.innerText ?? "no such element"`)
}

// shows waits until an element shows all the texts.
func (tb *tab) shows(selector string, texts ...string) {
	tb.t.Helper()
	wait(tb.t, "the page shows it", func() error {
		got := tb.text(selector)
		for _, text := range texts {
			if !strings.Contains(got, text) {
				return fail("%s lacks %q:\n%s", selector, text, got)
			}
		}
		return nil
	})
}

// clean checks that nothing was said on the console, and nothing asked of
// anybody but its own server.
func (tb *tab) clean(origin string) {
	tb.t.Helper()
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, text := range tb.said {
		tb.t.Errorf("console: %s", text)
	}
	for _, url := range tb.requests {
		if !strings.HasPrefix(url, origin) {
			tb.t.Errorf("it asked %s", url)
		}
	}
	if len(tb.requests) < 5 {
		tb.t.Errorf("only %d requests were seen: %v", len(tb.requests), tb.requests)
	}
}
