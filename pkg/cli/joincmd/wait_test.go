package joincmd

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

func TestItAsksAtOnceAndThenEveryTenSecondsAndTellsOnlyNews(t *testing.T) {
	waitFor(t, given("10.0.0.1", ourCluster), 0, nothing, func(w *waiting) {
		w.after(25 * time.Second)
		w.cast.answers("")
		w.after(20 * time.Second)
		w.cast.answers(" cluster: " + ourCluster.String() + "\n")
		w.after(10 * time.Second)
		w.ended(0)
		w.told(apiRefuses, notYetEVE, mayJoin)
		const api, status = " https://10.0.0.1:6443/", " http://10.0.0.1:12346/status"
		want := []string{"0s" + api, "10s" + api, "20s" + api, "30s" + api, "30s" + status, "40s" + api, "40s" + status, "50s" + api, "50s" + status}
		if d := cmp.Diff(want, w.cast.asked); d != "" {
			w.Error("asked: want -, got +\n" + d)
		}
	})
}

func TestIPv6IsAskedInBrackets(t *testing.T) {
	ready := func(w *waiting) { w.cast.answers("cluster:" + ourCluster.String()) }
	for server, host := range map[string]string{"fd00::1": "[fd00::1]", "fe80::1%eth0": "[fe80::1%25eth0]"} {
		waitFor(t, given(server, ourCluster), 0, ready, func(w *waiting) {
			w.ended(0)
			want := []string{"0s https://" + host + ":6443/", "0s http://" + host + ":12346/status"}
			if d := cmp.Diff(want, w.cast.asked); d != "" {
				w.Error("asked: want -, got +\n" + d)
			}
		})
	}
}

func TestTheTimeoutHasAnExitCodeOfItsOwnAndCtrlCHasThatOfFailure(t *testing.T) {
	waitFor(t, given("10.0.0.1", ourCluster), time.Minute, nothing, func(w *waiting) {
		w.after(time.Minute)
		w.ended(terminal.ExitJoinTimeout)
		if want := "timed out: this node is not allowed to join yet: " + strings.TrimPrefix(apiRefuses, "waits: "); w.err.Error() != want {
			w.Errorf("got %q, want %q", w.err, want)
		}
	})
	waitFor(t, given("10.0.0.1", ourCluster), 0, nothing, func(w *waiting) {
		w.after(24 * time.Hour)
		w.cancel()
		w.after(0)
		w.ended(terminal.ExitUsage)
	})
}

func TestWhatTheCommandLineLeavesOutIsReadAndFollowed(t *testing.T) {
	waitFor(t, joinTarget{}, 0, nothing, func(w *waiting) {
		w.cast.answers("cluster:" + ourCluster.String())
		w.after(30 * time.Second)
		w.status("", ourCluster)
		w.after(2 * time.Second)
		w.status("10.0.0.1", theirCluster)
		w.after(2 * time.Second)
		if err := os.WriteFile(w.file, []byte(`{"ClusterID":`), 0o600); err != nil {
			w.Fatal(err)
		}
		w.after(30 * time.Second)
		w.status("10.0.0.1", ourCluster)
		w.after(2 * time.Second)
		w.ended(0)
		w.told(
			"waits: this device has no EdgeNodeClusterStatus yet, "+w.file,
			"waits: this device's EdgeNodeClusterStatus names no server of cluster "+ourCluster.String()+" to join",
			"waits: 10.0.0.1 is a server of cluster "+ourCluster.String()+", and this device belongs to "+theirCluster.String()+": waiting does not help",
			mayJoin,
		)
	})
}

func TestAWithdrawnStatusEndsTheWait(t *testing.T) {
	for name, withdraw := range map[string]func(w *waiting){
		"removed": func(w *waiting) { _ = os.Remove(w.file) },
		"zeroed":  func(w *waiting) { w.status("", uuid.Nil) },
	} {
		waitFor(t, joinTarget{}, 0, func(w *waiting) { w.status("10.0.0.1", ourCluster) }, func(w *waiting) {
			w.after(time.Minute)
			withdraw(w)
			w.after(2 * time.Second)
			if w.ended(terminal.ExitJoinWithdrawn); w.Failed() {
				w.Errorf("when it is %s", name)
			}
		})
	}
	waitFor(t, given("10.0.0.1", ourCluster), 0, func(w *waiting) { w.status("10.0.0.1", ourCluster) }, func(w *waiting) {
		_ = os.Remove(w.file)
		w.after(time.Minute)
		w.told(apiRefuses) // nothing was taken from it
	})
}

func TestAStatusWithdrawnDuringTheLastQuestionEndsTheWaitToo(t *testing.T) {
	waitFor(t, joinTarget{}, 0, func(w *waiting) {
		w.status("10.0.0.1", ourCluster)
		w.cast.answers("cluster:" + ourCluster.String())
		w.joiner.asker.client.Transport = withdrawing{&w.cast, w.file}
	}, func(w *waiting) { w.ended(terminal.ExitJoinWithdrawn) })
}

// withdrawing answers after the own status is gone.
type withdrawing struct {
	*cast
	file string
}

func (w withdrawing) RoundTrip(r *http.Request) (*http.Response, error) {
	_ = os.Remove(w.file)
	return w.cast.RoundTrip(r)
}

func TestABootstrapNodeJoinsNobody(t *testing.T) {
	boots := func(s *types.EdgeNodeClusterStatus) { s.BootstrapNode = true }
	waitFor(t, joinTarget{}, 0, func(w *waiting) { w.status("10.0.0.1", ourCluster, boots) }, func(w *waiting) { w.ended(terminal.ExitUsage) })
	waitFor(t, joinTarget{server: netip.MustParseAddr("10.0.0.1")}, 0, func(w *waiting) { w.status("10.0.0.2", ourCluster, boots) }, func(w *waiting) {
		w.told(apiRefuses) // it was told whom to ask
	})
}

func TestDataHasALineForEachChange(t *testing.T) {
	waitFor(t, given("10.0.0.1", ourCluster), 0, func(w *waiting) {
		var o terminal.Outputs
		_ = cmdtest.Output("json", o.Flag, o.Parse)
		w.joiner.outputs = &o
	}, func(w *waiting) {
		w.cast.answers("cluster:" + ourCluster.String())
		w.after(time.Minute)
		w.ended(0)
		var got []joinLine
		for dec := json.NewDecoder(&w.out); dec.More(); {
			var line joinLine
			if err := dec.Decode(&line); err != nil {
				w.Fatal(err)
			}
			got = append(got, line)
		}
		line := joinLine{At: w.cast.began.UTC(), Server: "10.0.0.1", Cluster: ourCluster.String(), Reason: "APIRefused", Why: strings.TrimPrefix(apiRefuses, "waits: ")}
		last := line
		last.At, last.MayJoin, last.Reason, last.Why = line.At.Add(10*time.Second), true, "MayJoin", strings.TrimPrefix(mayJoin, "may join: ")
		if d := cmp.Diff([]joinLine{line, last}, got); d != "" {
			w.Error("want -, got +\n" + d)
		}
	})
}

func TestWrongUsageOfWaitJoin(t *testing.T) {
	for _, args := range [][]string{
		{"--server", "node-1"},
		{"--server", "10.0.0.1:6443"},
		{"--server", "[fd00::1]"},
		{"--server", "0.0.0.0"},
		{"--server", "10.0.0.1\x1b[2J"},
		{"--cluster", "plant-7"},
		{"--cluster", uuid.Nil.String()},
		{"--interval", "0s"},
		{"--interval", "-1s"},
		{"--timeout", "-1s"},
		{"-o", "xml"},
		{"10.0.0.1"},
		{"--timeout", "soon"},
	} {
		c := device.NewRoot(&device.Options{}, NewWaitJoinCommand)
		c.SetArgs(append([]string{"wait-join", "--root", t.TempDir()}, args...))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := c.ExecuteContext(ctx)
		cancel()
		if terminal.ExitCode(err) != terminal.ExitUsage || strings.Contains(err.Error(), "interrupted") || strings.ContainsRune(err.Error(), 0x1b) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
