package draincmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

// askedCluster is a cluster that notes what commands do to it.
type askedCluster struct {
	nodes []types.Node
	lock  types.DrainLock
	err   error // of every write
	did   []string
}

func (c *askedCluster) FreshNodes(context.Context) ([]types.Node, error) { return c.nodes, nil }

func (c *askedCluster) KeepCordon(_ context.Context, node string) error {
	c.did = append(c.did, "keep "+node)
	return c.err
}

func (c *askedCluster) DrainLock(context.Context) (types.DrainLock, error) { return c.lock, nil }

func (c *askedCluster) FreeDrainLock(_ context.Context, lock types.DrainLock) error {
	c.did = append(c.did, "free "+lock.Holder+" "+lock.Version)
	return c.err
}

func (c *askedCluster) Event(_ context.Context, e types.Event) error {
	c.did = append(c.did, fmt.Sprintf("event %s %v %s: %s", e.Node, e.Warning, e.Reason, e.Message))
	return nil
}

func TestUnlockFreesTheLockOfWhoeverIsNamed(t *testing.T) {
	const event = "event %s true DrainLockFreed: an operator released the drain lock of node %s by \"zedkube drain unlock\" on node node-2"
	running := device.AgentLife{Runs: true}
	restarted := device.AgentLife{Why: "process 7 is gone", Seen: cmdtest.Now.Add(-50 * time.Second)}
	for name, c := range map[string]struct {
		holder, named string
		step          types.K3sStep // of k3s, on the holder
		record        drainRecord
		err           error
		did           []string
		says          string // in output or error
		code          int
	}{
		"a node that is off":          {holder: "node-1", named: "node-1", did: []string{"free node-1 7", fmt.Sprintf(event, "node-1", "node-1")}, says: "node-1 was released"},
		"a node that is Ready":        {holder: "node-3", named: "node-3", did: []string{"free node-3 7", fmt.Sprintf(event, "node-3", "node-3")}, says: "node-3 is Ready"},
		"a node that changes k3s":     {holder: "node-3", named: "node-3", step: "change", did: []string{"free node-3 7", fmt.Sprintf(event, "node-3", "node-3")}, says: "node-3 changes k3s to v1.35.4+k3s1, which goes on there without the lock"},
		"one that does, and is off":   {holder: "node-1", named: "node-1", step: "return", did: []string{"free node-1 7", fmt.Sprintf(event, "node-1", "node-1")}, says: "No other node begins a change meanwhile"},
		"ours, drained for k3s":       {holder: "node-2", named: "node-2", record: drainRecord{Agent: running, Progress: &types.NodeDrainProgress{Phase: types.PhaseComplete, Requesters: []string{"K3S"}}}, says: "zedkube k3s hold", code: 1},
		"ours, and k3s changes":       {holder: "node-2", named: "node-2", step: "change", record: drainRecord{Agent: running}, says: "zedkube k3s rollback", code: 1},
		"ours, k3s, the agent dead":   {holder: "node-2", named: "node-2", step: "change", did: []string{"free node-2 7", fmt.Sprintf(event, "node-2", "node-2")}, says: "changes k3s"},
		"a node that is deleted":      {holder: "gone", named: "gone", did: []string{"free gone 7", fmt.Sprintf(event, "node-2", "gone")}, says: "gone was released"},
		"somebody else holds it":      {holder: "node-1", named: "node-3", says: "held by node-1, not by node-3", code: 1},
		"nobody holds it":             {named: "node-1", says: "No node holds the drain lock"},
		"ours, and the drain runs":    {holder: "node-2", named: "node-2", record: drainRecord{Agent: running, Progress: emptying().Progress}, says: "zedkube drain cancel", code: 1},
		"ours, the agent restarted":   {holder: "node-2", named: "node-2", record: drainRecord{ReadAt: cmdtest.Now, Agent: restarted, Progress: emptying().Progress}, says: "zedkube drain cancel", code: 1},
		"ours, k3s, it restarted":     {holder: "node-2", named: "node-2", step: "change", record: drainRecord{ReadAt: cmdtest.Now, Agent: restarted}, says: "zedkube k3s rollback", code: 1},
		"ours, dead for a minute":     {holder: "node-2", named: "node-2", record: drainRecord{ReadAt: cmdtest.Now.Add(11 * time.Second), Agent: restarted, Progress: emptying().Progress}, did: []string{"free node-2 7", fmt.Sprintf(event, "node-2", "node-2")}},
		"ours, and the agent is dead": {holder: "node-2", named: "node-2", record: drainRecord{Progress: emptying().Progress}, did: []string{"free node-2 7", fmt.Sprintf(event, "node-2", "node-2")}},
		"ours, without a drain":       {holder: "node-2", named: "node-2", record: drainRecord{Agent: running, Progress: &types.NodeDrainProgress{Phase: types.PhaseIdle}}, did: []string{"free node-2 7", fmt.Sprintf(event, "node-2", "node-2")}},
		"it changed meanwhile":        {holder: "node-1", named: "node-1", err: types.ErrConflict, did: []string{"free node-1 7"}, says: "changed by someone else", code: 2},
		"nothing answers":             {holder: "node-1", named: "node-1", err: types.ErrNoAnswer, did: []string{"free node-1 7"}, code: 2},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &askedCluster{nodes: cmdtest.ThreeNodes(), lock: types.DrainLock{Holder: c.holder, Version: "7"}, err: c.err}
			for i := range cluster.nodes {
				if cluster.nodes[i].Name == c.holder {
					cluster.nodes[i].K3s = &types.K3sStamp{Step: c.step, To: "v1.35.4+k3s1"}
				}
			}
			var out bytes.Buffer
			u := unlocking{holder: c.named, info: cmdtest.OwnInfo, record: c.record, out: &out, warn: &out}
			err := device.APIError(u.run(t.Context(), cluster))
			if code := terminal.ExitCode(err); code != c.code {
				t.Errorf("exit code %d: %v", code, err)
			}
			if got, want := strings.Join(cluster.did, "\n"), strings.Join(c.did, "\n"); got != want {
				t.Errorf("did %s\nwant %s", got, want)
			}
			if text := fmt.Sprint(out.String(), err); !strings.Contains(text, c.says) {
				t.Errorf("says %q", text)
			}
		})
	}
}

func TestOnlyACordonOfZedkubesIsKept(t *testing.T) {
	ours := &types.Cordon{By: "zedkube"}
	for name, c := range map[string]struct {
		own  types.Node
		did  string
		says string
	}{
		"ours":          {types.Node{Unschedulable: true, CordonedBy: ours}, "keep node-2", "zedkube uncordon node-2"},
		"none":          {types.Node{}, "", "it is not cordoned"},
		"an operator's": {types.Node{Unschedulable: true}, "", "cordoned by somebody else"},
		"the workloads'": {
			types.Node{Unschedulable: true, CordonKept: true, CordonedBy: &types.Cordon{By: "zedkube", Kind: types.CordonWorkloads}}, "", "until zedkube workloads enable",
		},
	} {
		nodes := cmdtest.ThreeNodes()
		c.own.Name, c.own.UUID = nodes[1].Name, nodes[1].UUID
		nodes[1] = c.own
		cluster := &askedCluster{nodes: nodes}
		var out bytes.Buffer
		err := keepCordon(t.Context(), &out, cluster, cmdtest.OwnInfo)
		if strings.Join(cluster.did, "") != c.did || (err == nil) != (c.did != "") {
			t.Errorf("%s: did %q, %v", name, cluster.did, err)
		}
		if text := fmt.Sprint(out.String(), err); !strings.Contains(text, c.says) {
			t.Errorf("%s: says %q", name, text)
		}
	}
	if err := keepCordon(t.Context(), &bytes.Buffer{}, &askedCluster{}, cmdtest.OwnInfo); err == nil {
		t.Error("a device that is no node has kept a cordon")
	}
}

func TestCancelSaysWhetherPodsComeAgain(t *testing.T) {
	for cordon, want := range map[string]string{"zedkube": "The node becomes schedulable again as soon as", "kept": "Its cordon is kept, as you asked. To make the node schedulable again: zedkube uncordon node-2"} {
		p := deviceWith(t, fmt.Sprintf(`{"Phase":%q,"Cordon":%q,"Requesters":["OPERATOR"]}`, types.PhaseEmptying, cordon))
		cmdtest.Lay(t, p.PID, strconv.Itoa(os.Getpid()))
		cmdtest.Lay(t, p.Touch, "")
		cmdtest.Lay(t, p.TopicFile("zedagent", "EdgeNodeInfo"), `{"DeviceName":"Node_2"}`)
		cmdtest.Lay(t, p.TopicFile(device.CommandAgent, "NodeDrainRequest"), `{"RequestedBy":1}`)
		var out bytes.Buffer
		if err := cancelDrain(&out, p, time.Now()); err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.String(), "has been withdrawn.\n"+want) {
			t.Errorf("cordon %s: %s", cordon, out.String())
		}
	}
}

func TestErrorsOfTheAPIServerHaveTheirExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, 0},
		{errors.New("no"), 1},
		{fmt.Errorf("plan: %w", types.ErrNoAPI), 2},
		{fmt.Errorf("plan: %w", types.ErrRefused), 2},
		{context.DeadlineExceeded, 2},
		{fmt.Errorf("list nodes: %w", &url.Error{Op: "Get", URL: "https://127.0.0.1:6443", Err: errors.New("no answer within 10s")}), 2},
		{terminal.ExitWith(terminal.ExitDrainFailed, errors.New("no")), 3},
	} {
		if got := terminal.ExitCode(device.APIError(c.err)); got != c.code {
			t.Errorf("%v: %d, want %d", c.err, got, c.code)
		}
	}
}
