package kubeapi

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

var logPod = types.Pod{Namespace: access.Namespace, Name: "web-1"}

// serveLog plays a kubelet behind the API server: it says nothing, not even the
// head of its answer, before there is a line.
func serveLog(api *fakeAPI, lines <-chan string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			api.ServeHTTP(w, r)
			return
		}
		for {
			select {
			case line, ok := <-lines:
				if !ok {
					return
				}
				_, _ = io.WriteString(w, line+"\n")
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
}

func TestALogIsFollowedForAsLongAsItTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		lines := make(chan string)
		end := startInMemory(t, c, &kubetest.InMemory{Handler: serveLog(&fakeAPI{}, lines)})
		defer end()
		go func() {
			defer close(lines)
			time.Sleep(5 * time.Minute)
			lines <- "one"
			time.Sleep(time.Hour)
			lines <- "two"
		}()
		body, err := c.Logs(t.Context(), logPod, types.LogOptions{Container: "c", Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(body)
		if string(text) != "one\ntwo\n" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		if s := tb.status(); !s.Answers() {
			t.Errorf("a log without a line makes the server silent: %+v", s)
		}
	})
}

func TestALogEndsWithWhatItIsReadOver(t *testing.T) {
	for name, over := range map[string]func(*Client, *fakeAPI, func()){
		"the connection is retired": func(_ *Client, _ *fakeAPI, end func()) { end() },
		"the server is silent":      func(_ *Client, api *fakeAPI, _ func()) { api.set(func() { api.fault = hang }) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := newTestClient(t)
				api, lines := &fakeAPI{}, make(chan string, 1)
				lines <- "one"
				end := sync.OnceFunc(startInMemory(t, c, &kubetest.InMemory{Handler: serveLog(api, lines)}))
				defer end()
				body, err := c.Logs(t.Context(), logPod, types.LogOptions{Container: "c", Follow: true})
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					time.Sleep(time.Minute)
					over(c, api, end)
				}()
				start := time.Now()
				if text, err := io.ReadAll(body); string(text) != "one\n" || err == nil {
					t.Errorf("%q, %v", text, err)
				}
				if d := time.Since(start); d < time.Minute || d > 2*time.Minute {
					t.Errorf("it ended after %v", d)
				}
			})
		})
	}
}

func TestLinesOfALogAreNoSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api, lines, heard := &fakeAPI{}, make(chan string), make(chan struct{})
		end := startInMemory(t, c, &kubetest.InMemory{Handler: serveLog(api, lines)})
		defer end()
		go func() {
			for range 100 {
				select {
				case lines <- "x":
				case <-heard:
					return
				}
				time.Sleep(time.Second)
			}
		}()
		body, err := c.Logs(t.Context(), logPod, types.LogOptions{Container: "c", Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		api.set(func() { api.fault = hang })
		start := time.Now()
		_, err = io.Copy(io.Discard, body)
		close(heard)
		time.Sleep(2 * time.Second)
		if s := tb.status(); s.Answers() {
			t.Errorf("after %v the server is taken for alive: %+v, %v", time.Since(start), s, err)
		}
		_, err = c.Logs(t.Context(), logPod, types.LogOptions{Container: "c"})
		if !errors.Is(err, types.ErrNoAPI) {
			t.Errorf("a log of a silent server: %v", err)
		}
	})
}

func TestALogThatIsNotThereIsToldFromTrouble(t *testing.T) {
	for code, want := range map[int]bool{404: true, 400: true, 500: false, 503: false, 429: false, 401: false} {
		asked := 0
		api := &fakeAPI{fault: func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.Header().Set("Retry-After", "1")
			reply(w, code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: map[int]metav1.StatusReason{404: "NotFound", 400: "BadRequest"}[code]})
		}}
		c := dialTest(t, api)
		_, err := c.Logs(t.Context(), logPod, types.LogOptions{Container: "c"})
		if err == nil || errors.Is(err, types.ErrNoLog) != want || asked != 1 {
			t.Errorf("HTTP %d, asked %d times: %v", code, asked, err)
		}
	}
}

func TestWhatIsAskedOfALog(t *testing.T) {
	var asked string
	c := dialTest(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.Path + "?" + r.URL.RawQuery }))
	since := time.Date(2026, 5, 3, 8, 9, 30, 999, time.FixedZone("", 7200))
	for want, o := range map[string]types.LogOptions{
		"container=c&follow=true&timestamps=true":                                      {Container: "c", Follow: true},
		"container=c&previous=true&sinceTime=2026-05-03T06%3A09%3A30Z&timestamps=true": {Container: "c", Previous: true, Since: since},
	} {
		body, err := c.Logs(t.Context(), logPod, o)
		if err != nil {
			t.Fatal(err)
		}
		_ = body.Close()
		if asked != "/api/v1/namespaces/eve-kube-app/pods/web-1/log?"+want {
			t.Error(asked)
		}
	}
}

func TestWhatNobodyReadsStaysWithTheServer(t *testing.T) {
	sent := make(chan int, 1<<16)
	c := dialTest(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := strings.Repeat("x", 16<<10-1) + "\n"
		for {
			if n, err := io.WriteString(w, line); err != nil || r.Context().Err() != nil {
				return
			} else if w.(http.Flusher).Flush(); n > 0 {
				sent <- n
			}
		}
	}))
	body, err := c.Logs(t.Context(), logPod, types.LogOptions{Container: "c", Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := bufio.NewReader(body).ReadByte(); err != nil {
		t.Fatal(err)
	}
	total := 0
	for calm := false; !calm; {
		select {
		case n := <-sent:
			total += n
		case <-time.After(300 * time.Millisecond):
			calm = true
		}
	}
	if total > 4*access.StreamWindow {
		t.Errorf("%d KiB were sent to a reader that took one byte", total>>10)
	}
}

func dialTest(t *testing.T, handler http.Handler) *Client {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	kubetest.WriteFile(t, path, dialConfig(server))
	c, done, err := Dial(t.Context(), kubetest.Quiet(), path, types.NoOperations{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return c
}
