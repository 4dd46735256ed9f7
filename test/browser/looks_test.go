package browser

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// screens is for who changed how the page looks: go test ./test/browser -screens
var screens = flag.Bool("screens", false, "write docs/screens")

// inAnyWindow opens the page of a busy day in three windows.
func inAnyWindow(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	for name, look := range map[string]window{"wide-light": wide, "wide-dark": inDark, "phone-dark": {phone.width, phone.height, true}, "phone-light": phone} {
		t.Run(name, func(t *testing.T) {
			tb := b.open(t, d.url(), look)
			tb.shows("#state", "Live")
			if folded := eval[bool](tb, `getComputedStyle(document.querySelector("#storage > div")).display === "none"`); folded != (look.width == phone.width) {
				t.Errorf("storage is folded: %v", folded)
			}
			tb.unfold()
			tb.shows("#problems", "will not end by itself", "What to do: Run one more replica", "More: ", "BAD", "WARN")
			tb.shows("#drain", "Emptying", "12 of 14 gone", "NEVER", "slow", "eve-kube-app/plc-0", "42% on node-1", "12m to go", "attempt 2 of 5", "EVE sees", "kubectl -n eve-kube-app edit pdb plc")
			tb.shows("#actions", "Drain this node", "zedkube --root /node-2 drain request", "Collect a support bundle")
			tb.shows("#nodes", "node-3", "NotReachable", "cordoned", "drain for DEVICEOP", "2 of 2 witnesses")
			tb.shows("#apps", "historian", "NotRunningState", "waits for a node with 4 GiB")
			tb.shows("#storage", "pvc-0be1f2aa", "42%", "2 of 3 online", "2.0 GiB")
			tb.shows("#metrics", "CPU of this node", "Memory of cam", "4.0 cores")
			tb.shows("#device", "plant-north", "10.244.244.2/28 on eth1", "ClientCertificateValid", "in 11d23h")
			tb.scrollTo("#edge")
			tb.shows("#edge", "KubeEdge is off", "nodeLimit", "Enable")
			tb.sees(look, name)
			tb.clean(d.url())
		})
	}
}

// sees checks what an eye needs.
func (tb *tab) sees(look window, name string) {
	tb.t.Helper()
	tb.do(`document.querySelector("#audit").scrollIntoView({ behavior: "instant" })`)
	tb.shows("#audit", "cordon", "18 times", "DEVICEOP", "3 of the newest 3")
	wait(tb.t, "the page is at its top", func() error {
		if at := eval[int](tb, `(window.scrollTo({ top: 0, behavior: "instant" }), new Promise((done) => setTimeout(() => done(Math.round(scrollY)), 200)))`); at != 0 {
			return fail("at %d px", at)
		}
		return nil
	})
	if over := eval[int](tb, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		tb.t.Errorf("the page is %d px wider than the window; the widest: %s", over, eval[string](tb, `[...document.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + "#" + e.id + "." + e.className).slice(0, 5).join(" ")`))
	}
	if poor := eval[string](tb, contrast); poor != "" {
		tb.t.Errorf("contrast below 4.5:1:\n%s", poor)
	}
	background := eval[string](tb, `getComputedStyle(document.documentElement).backgroundColor`)
	if dark := background != "rgb(255, 255, 255)"; dark != look.dark {
		tb.t.Errorf("background %s where the window is dark: %v", background, look.dark)
	}
	tb.picture(name)
}

// contrast names the texts that are too pale for what is behind them.
const contrast = `(() => {
  const rgb = (s) => (s.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const poor = new Set(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !e.checkVisibility() || ["SCRIPT", "NOSCRIPT"].includes(e.tagName) || e.closest(":disabled")) continue;
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) poor.add(ratio.toFixed(2) + " " + e.tagName + "." + e.className + " " + walk.currentNode.data.slice(0, 40));
  }
  return [...poor].join("\n");
})()`

// pictures are those of docs/screens.
var pictures = map[string]string{"wide-light": "page-wide-light.png", "phone-dark": "page-phone-dark.png"}

// picture keeps what can be seen for docs/screens, where that is asked for.
func (tb *tab) picture(name string) {
	tb.t.Helper()
	file, wanted := pictures[name]
	if !*screens || !wanted {
		return
	}
	shot, err := chromedp.Run(tb.ctx, chromedp.CaptureScreenshot())
	tb.must(err)
	whole, err := png.Decode(bytes.NewReader(shot))
	tb.must(err)
	var out bytes.Buffer
	tb.must((&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, fewColours(whole)))
	tb.must(os.WriteFile(filepath.Join("../../docs/screens", file), out.Bytes(), 0o644))
}

// fewColours paints an image in the 256 colours that it has most of: that takes
// a third of the bytes.
func fewColours(whole image.Image) image.Image {
	count := map[color.RGBA]int{}
	area := whole.Bounds()
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			count[color.RGBAModel.Convert(whole.At(x, y)).(color.RGBA)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return count[b] - count[a] })
	var palette color.Palette
	for _, c := range most[:min(256, len(most))] {
		palette = append(palette, c)
	}
	few := image.NewPaletted(area, palette)
	draw.Draw(few, area, whole, area.Min, draw.Src)
	return few
}

func TestThePicturesInTheDocumentationAreSmall(t *testing.T) {
	for _, file := range pictures {
		info, err := os.Stat(filepath.Join("../../docs/screens", file))
		if err != nil {
			t.Error(err)
		} else if info.Size() > 150_000 {
			t.Errorf("%s has %d bytes, more than 150 kB", file, info.Size())
		}
	}
}
