package localserver

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bearing asks with a token.
func bearing(token string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/api/logs", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func TestWrongTokensAreBounded(t *testing.T) {
	var k token
	right := k.value()
	if len(right) < 26 { // of 32 letters: 130 bits
		t.Errorf("the token is %q", right)
	}
	now := time.Unix(1_000_000, 0)
	codes := func(token string, at time.Time) int {
		if refused := k.check(bearing(token), at); refused != nil {
			return refused.code
		}
		return http.StatusOK
	}
	for i := range maxWrong {
		if got := codes("wrong", now.Add(time.Duration(i)*time.Second)); got != http.StatusUnauthorized {
			t.Errorf("wrong token %d: %d", i, got)
		}
	}
	for at, want := range map[time.Duration]int{20 * time.Second: http.StatusTooManyRequests, 59 * time.Second: http.StatusTooManyRequests} {
		if got := codes("wrong", now.Add(at)); got != want {
			t.Errorf("after %v: %d", at, got)
		}
	}
	if got := codes(right, now.Add(30*time.Second)); got != http.StatusOK {
		t.Errorf("others' wrong tokens lock the right one out: %d", got)
	}
	if got := codes("wrong", now.Add(wrongWithin)); got != http.StatusUnauthorized {
		t.Errorf("a minute after the first: %d", got)
	}
	if got := codes("wrong", now.Add(wrongWithin)); got != http.StatusTooManyRequests {
		t.Errorf("and one more: %d", got)
	}
}

func TestNoTokenIsNoToken(t *testing.T) {
	var k token
	for _, text := range []string{"", " ", k.text} {
		if k.check(bearing(text), time.Now()) == nil {
			t.Errorf("%q is taken before there is a token", text)
		}
	}
	right := k.value()
	for _, text := range []string{strings.ToLower(right), right + " ", right[1:], right + right} {
		if k.check(bearing(text), time.Now()) == nil {
			t.Errorf("%q is taken for %q", text, right)
		}
	}
}

func TestTheTokenIsInAFileForRootAloneWhileThereIsAPage(t *testing.T) {
	c := component(t)
	c.Address = "127.0.0.1:0"
	c.TokenFile = filepath.Join(filepath.Dir(c.Socket), "page-token.json")
	read := func() (f TokenFile, err error) {
		content, err := os.ReadFile(c.TokenFile)
		if err == nil {
			err = json.Unmarshal(content, &f)
		}
		return f, err
	}
	step := func() {
		t.Helper()
		if err := c.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	step()
	defer func() {
		for at := range c.listening {
			c.stop(t.Context(), at)
		}
		c.ending.Wait()
	}()
	f, err := read()
	if err != nil || f.Token == "" || f.Address != c.Address || c.token.check(bearing(f.Token), time.Now()) != nil {
		t.Errorf("%+v, %v", f, err)
	}
	if info, err := os.Lstat(c.TokenFile); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(c.TokenFile, 0o644); err != nil {
		t.Fatal(err)
	}
	step()
	if info, err := os.Lstat(c.TokenFile); err != nil || info.Mode() != 0o600 {
		t.Errorf("opened to others, and then: %v, %v", info.Mode(), err)
	}
	c.PageToo = false
	step()
	if _, err := os.Lstat(c.TokenFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a page: %v", err)
	}
	var next Component
	if next.token.value() == f.Token {
		t.Error("the next agent has the same token")
	}
}

func TestTheTokenEndsWithTheAgent(t *testing.T) {
	c := component(t)
	c.Address = "127.0.0.1:0"
	c.TokenFile = filepath.Join(filepath.Dir(c.Socket), "page-token.json")
	end := run(t, c)
	eventually(t, func() error { _, err := os.Lstat(c.TokenFile); return err })
	end()
	if left, _ := filepath.Glob(filepath.Dir(c.Socket) + "/*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
