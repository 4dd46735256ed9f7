package browser

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// fleet is a real cluster with a device on each node; the second one's page is
// looked at.
type fleet struct {
	*player.Fleet
	cluster *devcluster.Cluster
	url     string

	mu   sync.Mutex
	said []string
}

// apps are what runs on the cluster: the second, on the second node, is held by
// a budget.
var apps = []string{"cam", "plc", "hmi"}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	dir, err := os.MkdirTemp("", "browser-") // sockets want a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := agent.Build(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	f := &fleet{}
	if f.cluster, err = devcluster.Start(ctx, devcluster.Options{Log: t.Output(), Nodes: 3}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	f.Fleet, err = player.NewFleet(context.Background(), f.cluster, player.FleetOptions{Dir: dir, Program: []string{program}, Say: f.hear, Apps: configured})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.end(t) })
	if err := f.Configure(player.ShortWindow()); err != nil {
		t.Fatal(err)
	}
	f.begin(t, ctx)
	return f
}

// begin switches the devices on and starts the applications.
func (f *fleet) begin(t *testing.T, ctx context.Context) {
	t.Helper()
	f.url = "http://" + tunnel(t, filepath.Join(f.Members[1].Root, "run/zedkube/zedkube.sock")) + "/"
	for _, m := range f.Members {
		if err := m.Boot(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for i, app := range configured(0) {
		err := f.cluster.CreateApp(ctx, devcluster.App{
			Name: app.KubeName(), Domain: fmt.Sprintf("%s.1.%d", app.UUIDandVersion.UUID, i+1), Node: f.cluster.Nodes[i].Name,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.cluster.SetBudget(ctx, configured(0)[1].KubeName(), 1); err != nil {
		t.Fatal(err)
	}
	f.answers(t, ctx)
}

// answers waits until the agent serves the page: a browser does not ask again.
func (f *fleet) answers(t *testing.T, ctx context.Context) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			resp.Body.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatal("the page is not served: ", err)
		}
	}
}

// configured is what the controller tells each device of the applications.
func configured(int) []types.AppInstanceConfig {
	var all []types.AppInstanceConfig
	for _, name := range apps {
		all = append(all, types.AppInstanceConfig{
			UUIDandVersion: types.UUIDandVersion{UUID: uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)), Version: "1"},
			DisplayName:    name, Activate: true,
			FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationNoHyper},
		})
	}
	return all
}

func (f *fleet) hear(device, agent, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, device+" "+agent+": "+text)
}

func (f *fleet) end(t *testing.T) {
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		f.mu.Lock()
		defer f.mu.Unlock()
		t.Log(strings.Join(f.said, "\n"))
	}
}

// TestThePageOfARealAgent watches a reboot of a device from one page that stays
// open: the drain that hangs, the agent killed, the budget opened, the reboot.
func TestThePageOfARealAgent(t *testing.T) {
	b := openBrowser(t)
	f := newFleet(t)
	m := f.Members[1]
	tb := b.open(t, f.url, wide)
	tb.shows("#state", "Live")
	tb.shows("#name", m.Name)
	tb.shows("#nodes", f.Members[0].Name, m.Name+" (this one)", f.Members[2].Name, "Ready")
	tb.shows("#apps", "cam", "plc", "hmi", "RunningState")
	tb.shows("#drain", "Idle")
	tb.shows("#device", "devcluster", "Member", "running", "answers")

	m.CommandReboot()
	tb.shows("#drain", "Emptying", "DEVICEOP", "NEVER", "budget", "plc")
	tb.shows("#problems", "will not leave this node without action", "What to do", "plc")
	tb.shows("#nodes", "cordoned")
	tb.do(`document.querySelector("#audit").scrollIntoView({ behavior: "instant" })`)
	tb.shows("#audit", "cordon", "DEVICEOP", "evict")
	tb.shows("#metrics", "Requests to the API server")

	m.KillProgram()
	tb.shows("#state", "Connection lost")
	tb.shows("#drain", "NEVER")
	if err := m.StartProgram(); err != nil {
		t.Fatal(err)
	}
	tb.shows("#state", "Live")
	tb.shows("#drain", "Emptying", "NEVER")

	if err := f.cluster.SetBudget(context.Background(), configured(0)[1].KubeName(), 0); err != nil {
		t.Fatal(err)
	}
	wait(t, "the device reboots", func() error {
		if m.Boots() < 2 {
			return fail("%d boots", m.Boots())
		}
		return nil
	})
	tb.shows("#drain", "Idle")
	tb.shows("#state", "Live")
	wait(t, "the cordon goes", func() error {
		if text := tb.text("#nodes"); strings.Contains(text, "cordoned") {
			return fail("%s", text)
		}
		return nil
	})
	tb.shows("#audit", "uncordon")
	f.acts(tb, m)
}

// acts requests a drain from the page, withdraws it, and does what is refused.
func (f *fleet) acts(tb *tab, m *player.Member) {
	tb.t.Helper()
	do := func(name, plan string, says ...string) {
		tb.t.Helper()
		tb.press("[data-key='act " + name + "']")
		tb.shows("#plan", plan, "This is the plan. Nothing has been changed.")
		tb.press("#plan-do")
		tb.shows("#plan", says...)
		tb.press("#plan-close")
	}
	do("keep-cordon", "Idle", "It failed: node "+m.Name+" was not cordoned by zedkube")
	do("drain-request", "Plan for the drain of "+m.Name, "A drain of this node has been requested.", "zedkube --root "+m.Root+" drain cancel", "Done.")
	tb.shows("#drain", "Complete", "OPERATOR")
	do("keep-cordon", "Complete", "The cordon of "+m.Name+" is kept.", "Done.")
	do("drain-cancel", "Complete", "The operator's request has been withdrawn.", "Done.")
	tb.shows("#drain", "Idle")
	tb.shows("#nodes", "kept so by an operator")
	do("workloads-disable", "Workloads: ", "The request to disable the workloads of the cluster has been made.", "Done.")
	tb.shows("#device", "Disabled")
	do("workloads-enable", "Workloads: Disabl", "The request to enable the workloads of the cluster has been made.", "Done.")
	wait(tb.t, "the workloads are enabled", func() error {
		if text := tb.text("#device"); strings.Contains(text, "Disabled") || strings.Contains(text, "Enabling") {
			return fail("%s", text)
		}
		return nil
	})
	do("bundle", "without the secrets", "The archive was saved")
	tb.do(`document.querySelector("#audit").scrollIntoView({ behavior: "instant" })`)
	tb.shows("#audit", "command/support-bundle")
	tb.do(`document.querySelector("#audit > div button")?.click()`) // the newest 20 are shown first
	tb.shows("#audit", "command/drain request", "command/drain cancel", "command/drain keep-cordon", "command/workloads disable", "command/workloads enable", "command/support-bundle", "requested on the page", "was not cordoned by zedkube")
	tb.do(`document.querySelector("header").scrollIntoView({ behavior: "instant" })`)
}
