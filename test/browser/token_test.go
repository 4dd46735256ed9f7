package browser

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/zedkube/zedkube/pkg/operate/localserver"
)

// secret is the reading token as the device has it now.
func (d *device) secret() string {
	d.t.Helper()
	var f localserver.TokenFile
	content, err := os.ReadFile(d.token)
	if err == nil {
		err = json.Unmarshal(content, &f)
	}
	if err != nil || f.Token == "" {
		d.t.Fatalf("no token: %q, %v", content, err)
	}
	return f.Token
}

// asksForItsToken reads the page over loopback: with the address that "zedkube
// page" prints, with a token that was typed, and over a restart of the agent,
// which makes another one.
func asksForItsToken(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	base := "http://" + d.direct + "/"

	with := b.open(t, base+"#token="+d.secret(), wide)
	with.shows("#state", "Live")
	with.shows("#nodes", "node-3")
	with.do(`document.querySelector("#audit").scrollIntoView({ behavior: "instant" })`)
	with.shows("#audit", "cordon")
	if got := eval[string](with, `location.href + document.cookie + JSON.stringify(localStorage)`); strings.Contains(got, d.secret()) {
		t.Errorf("the token is kept in %s", got)
	}
	with.must(chromedp.Do(with.ctx, chromedp.Reload()))
	with.shows("#state", "Live")
	if !eval[bool](with, `document.querySelector("#token").hidden`) {
		t.Error("it asks for a token that it has")
	}
	with.clean(base)
	with.mu.Lock()
	for _, url := range with.requests {
		if strings.Contains(strings.Split(url, "#")[0], d.secret()) {
			t.Errorf("the token went out in %s", url)
		}
	}
	with.mu.Unlock()

	without := b.open(t, base, phone)
	without.shows("#state", "Token required")
	without.shows("#token", "zedkube page")
	if got := without.text("#main"); strings.Contains(got, "node-3") || strings.Contains(got, "historian") {
		t.Errorf("it shows without a token: %s", got)
	}
	typed := func(text string) {
		without.do(`document.querySelector("#token-text").value = "` + text + `"`)
		without.must(chromedp.Do(without.ctx, chromedp.Click(chromedp.CSS("#token-form button"))))
	}
	typed("no token!")
	without.shows("#token-why", "This is not a token")
	typed("ANOTHER")
	without.shows("#token-why", "does not accept this token")
	typed(base + "#token=" + d.secret())
	without.shows("#state", "Live")
	without.shows("#nodes", "node-3")

	was := d.secret()
	d.stopped()
	without.shows("#state", "Connection lost")
	d.start()
	if d.secret() == was {
		t.Error("the agent has the same token after it was started again")
	}
	without.shows("#state", "Token required")
	without.shows("#nodes", "node-3") // what was shown stays, marked as old
	typed(d.secret())
	without.shows("#state", "Live")
}
