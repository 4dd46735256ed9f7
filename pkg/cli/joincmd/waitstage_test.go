package joincmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

var (
	ourCluster   = uuid.MustParse("5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11")
	theirCluster = uuid.MustParse("0c9f6e0a-7d3b-4b1e-8a53-1f2f6f0c3a9e")
)

// cast is a join server in memory: its API answers or not, its status server
// says something, and it notes when it was asked.
type cast struct {
	mu    sync.Mutex
	api   error
	says  string
	began time.Time
	asked []string
}

func (c *cast) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Accept") != "" {
		return nil, syscall.ECONNRESET
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, fmt.Sprintf("%s %s", time.Since(c.began), r.URL))
	switch {
	case r.URL.Scheme == "https" && c.api != nil:
		return nil, c.api
	case r.URL.Scheme == "https":
		return &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody}, nil
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(c.says))}, nil
}

// answers makes the API answer, and the status server say text.
func (c *cast) answers(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.api, c.says = nil, text
}

// waiting is a wait-join in fake time.
type waiting struct {
	*testing.T
	cast   cast
	out    bytes.Buffer
	file   string // EdgeNodeClusterStatus
	joiner joiner
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// waitFor plays a wait for given, after setup.
func waitFor(t *testing.T, given joinTarget, timeout time.Duration, setup, play func(*waiting)) {
	file := filepath.Join(t.TempDir(), "global.json")
	synctest.Test(t, func(t *testing.T) {
		w := &waiting{T: t, file: file, done: make(chan struct{})}
		w.cast.api, w.cast.began = syscall.ECONNREFUSED, time.Now()
		w.joiner = joiner{
			own:      &ownStatus{given: given, file: file},
			asker:    newAsker(&net.Dialer{}, nil, 6443, 12346),
			interval: 10 * time.Second, out: &w.out,
		}
		w.joiner.asker.client, w.joiner.asker.status = &http.Client{Transport: &w.cast}, &http.Client{Transport: &w.cast}
		setup(w)
		ctx, cancel := context.WithCancel(t.Context())
		w.cancel = cancel
		if timeout > 0 {
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		go func() { defer close(w.done); w.err = w.joiner.wait(ctx) }()
		synctest.Wait()
		play(w)
		w.cancel()
		<-w.done
	})
}

func (w *waiting) after(d time.Duration) { time.Sleep(d); synctest.Wait() }

// ended wants the wait to be over with an exit code.
func (w *waiting) ended(code int) {
	w.Helper()
	select {
	case <-w.done:
	default:
		w.Fatal("it still waits")
	}
	if got := terminal.ExitCode(w.err); got != code {
		w.Errorf("exit code %d (%v), want %d", got, w.err, code)
	}
}

// told wants the lines that were printed, each without its time.
func (w *waiting) told(want ...string) {
	w.Helper()
	var got []string
	for line := range strings.Lines(w.out.String()) {
		got = append(got, strings.TrimSpace(line[len("2006-01-02 15:04:05Z"):]))
	}
	if d := cmp.Diff(want, got); d != "" {
		w.Error("told: want -, got +\n" + d)
	}
}

// status makes zedkube say what the cluster is.
func (w *waiting) status(server string, cluster uuid.UUID, change ...func(*types.EdgeNodeClusterStatus)) {
	s := types.EdgeNodeClusterStatus{ClusterID: types.UUIDandVersion{UUID: cluster}, JoinServerIP: net.ParseIP(server)}
	for _, f := range change {
		f(&s)
	}
	raw, err := json.Marshal(s)
	if err = errors.Join(err, os.WriteFile(w.file, raw, 0o600)); err != nil {
		w.Fatal(err)
	}
}

func given(server string, cluster uuid.UUID) joinTarget {
	return joinTarget{server: netip.MustParseAddr(server), cluster: cluster}
}

func nothing(*waiting) {}

const (
	apiRefuses = "waits: the API server of 10.0.0.1, port 6443, refuses connections: it is not running yet"
	notYetEVE  = "waits: 10.0.0.1 is not yet a working server of its cluster"
	mayJoin    = "may join: 10.0.0.1 is a working server of cluster 5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11"
)
