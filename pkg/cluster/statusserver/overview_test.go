package statusserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/proof"
	"github.com/zedkube/zedkube/types"
)

const toldOf = `{"Zedkube":"told"}`

// proving are headers with a proof of a request for the overview of the device at to.
func proving(t *testing.T, to, token string) http.Header {
	t.Helper()
	key, err := proof.Key(withToken(token))
	if err != nil {
		t.Fatal(err)
	}
	a := proof.Ask{Method: http.MethodGet, Host: netip.MustParseAddrPort(to).String(), Path: overviewPath}
	return http.Header{proof.Header: {a.Sign(key, time.Now())}}
}

func TestAnOverviewIsForMembersThatProveIt(t *testing.T) {
	first, _ := pair(t, types.Node{Name: "eve", InternalIP: "127.12.34.3"})
	to := first.at(firstIP)
	for _, r := range []struct {
		name, ip string
		header   http.Header
		want     int
	}{
		{"a member with a proof", secondIP, proving(t, to, token), 200},
		{"a member without", secondIP, nil, 403},
		{"a member with one of another token", secondIP, proving(t, to, "another"), 403},
		{"a member with one for another node", secondIP, proving(t, firstIP+":1", token), 403},
		{"this device without a proof", firstIP, nil, 403},
		{"EVE's node without a proof", "127.12.34.3", nil, 403},
		{"a stranger with a proof", strangerIP, proving(t, to, token), 403},
	} {
		if got, body := from(t, r.ip, to, http.MethodGet, overviewPath, r.header); got != r.want || (got == 200) != (body == toldOf) {
			t.Errorf("%s: %d %q", r.name, got, body)
		}
	}
	if got, body, err := secured(t, secondIP, to, token, http.MethodGet, overviewPath, nil); err != nil || got.Code != 200 || body != toldOf {
		t.Errorf("a member by TLS: %v %q %v", got, body, err)
	}
	if got, body, err := secured(t, strangerIP, to, token, http.MethodGet, overviewPath, nil); err != nil || got.Code != 403 {
		t.Errorf("a stranger by TLS: %v %q %v", got, body, err)
	}
}

func TestAPeerThatAsksForOverviewsInALoopIsToldToWait(t *testing.T) {
	first, _ := pair(t, types.Node{Name: "third", InternalIP: "127.12.34.3", Agent: &types.AgentStamp{}})
	to := first.at(firstIP)
	for i := 0; ; i++ { // a machine that is slow may take a while to ask fast enough
		if got, _ := from(t, secondIP, to, http.MethodGet, overviewPath, proving(t, to, token)); got == http.StatusTooManyRequests {
			break
		}
		if i > 100*overviewsEach {
			t.Fatal("it is answered each time")
		}
	}
	if got, _ := from(t, "127.12.34.3", to, http.MethodGet, overviewPath, proving(t, to, token)); got != 200 {
		t.Errorf("another one is answered %d", got)
	}
}

func TestTurnsAreForEachAddressAndComeAgain(t *testing.T) {
	var turns turns
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	for i := range overviewsEach + 2 {
		if got := turns.take(a, noon); got != (i < overviewsEach) {
			t.Errorf("turn %d: %v", i, got)
		}
	}
	if !turns.take(b, noon) || !turns.take(a, noon.Add(overviewTurn)) || !turns.take(a, noon.Add(-time.Hour)) {
		t.Error("it does not come again, for another, later, or by a clock that was put back")
	}
}

func TestAnOverviewIsAskedForOnceAndNoAnswerIsBelieved(t *testing.T) {
	bad := map[string]http.HandlerFunc{
		"127.12.34.11": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+strangerIP+"/", http.StatusFound)
		},
		"127.12.34.12": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", 2*maxOverview))
		},
		"127.12.34.13": func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"127.12.34.14": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	}
	others := []types.Node{{Name: "other token", InternalIP: "127.12.34.15", Agent: &types.AgentStamp{TLS: true}}}
	for ip := range bad {
		others = append(others, types.Node{Name: ip, InternalIP: ip, Agent: &types.AgentStamp{}})
	}
	first, _ := pair(t, others...)
	var asked atomic.Int32
	for ip, h := range bad {
		player(t, ip, first.port, func(w http.ResponseWriter, r *http.Request) { asked.Add(1); h(w, r) })
	}
	newEVE(t, "127.12.34.15", first.port, "another token", "other")
	ask := func(ip string) ([]byte, error) {
		within := time.Minute
		if ip == "127.12.34.14" { // it hangs
			within = time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return first.told(ctx, netip.MustParseAddr(ip))
	}
	for ip, want := range map[string]string{
		"127.12.34.11": "HTTP 302", "127.12.34.13": "earlier version", "127.12.34.15": "of another cluster token", "127.12.34.17": "refused",
	} {
		if got, err := ask(ip); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v, want %q", ip, got, err, want)
		}
	}
	if got, err := ask("127.12.34.12"); err != nil || len(got) != maxOverview+1 {
		t.Errorf("of a long answer are read %d bytes, %v", len(got), err)
	}
	if got, err := ask("127.12.34.14"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("of one that hangs: %q, %v", got, err)
	}
	if got, err := ask(secondIP); err != nil || string(got) != toldOf {
		t.Errorf("a member answers %q, %v", got, err)
	}
	if n := asked.Load(); n != int32(len(bad)) {
		t.Errorf("%d questions were sent to %d", n, len(bad))
	}
}
