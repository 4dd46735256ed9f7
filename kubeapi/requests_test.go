package kubeapi

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// tally is what was heard.
type tally struct {
	mu       sync.Mutex
	answered map[string]int // by verb and code
	slowest  time.Duration
	watches  int
}

func (h *tally) Answered(verb string, code int, took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.answered == nil {
		h.answered = map[string]int{}
	}
	h.answered[fmt.Sprint(verb, " ", code)]++
	h.slowest = max(h.slowest, took)
}

func (h *tally) Watching(change int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches += change
}

func (h *tally) of(what string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answered[what]
}

func (h *tally) open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.watches
}

func TestEveryRequestIsHeardOfAndWatchesForAsLongAsTheyLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestClient(t)
		heard := &tally{}
		c.Requests = heard
		lines := make(chan string)
		end := startInMemory(t, c, &kubetest.InMemory{Handler: serveLog(&fakeAPI{}, lines)})
		time.Sleep(time.Second)
		synctest.Wait()
		if heard.of("list 200") == 0 || heard.of("get 200") == 0 || heard.of("watch 200") == 0 {
			t.Errorf("heard of %v", heard.answered)
		}
		if heard.open() < 3 || heard.open() > heard.of("watch 200") {
			t.Errorf("%d watches are open of %d", heard.open(), heard.of("watch 200"))
		}
		before := heard.of("get 200")
		go func() { time.Sleep(3 * time.Second); lines <- "one"; close(lines) }()
		body, err := c.Logs(t.Context(), logPod, types.LogOptions{Container: "c", Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		_ = body.Close()
		if heard.of("get 200") <= before || heard.slowest < 3*time.Second {
			t.Errorf("a log is not heard of: %v, the slowest took %v", heard.answered, heard.slowest)
		}
		end()
		synctest.Wait()
		if heard.open() != 0 {
			t.Errorf("%d watches are said to be open at the end", heard.open())
		}
	})
}

func TestRequestsWithoutAnAnswerAreHeardOfToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestClient(t)
		heard := &tally{}
		c.Requests = heard
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.NotFoundHandler(), Refuse: func() error { return http.ErrServerClosed }})
		time.Sleep(time.Second)
		end()
		synctest.Wait()
		none := 0
		for what, n := range heard.answered {
			if what[len(what)-2:] == " 0" {
				none += n
			}
		}
		if none == 0 || heard.open() != 0 {
			t.Errorf("heard of %v, %d watches", heard.answered, heard.open())
		}
	})
}
