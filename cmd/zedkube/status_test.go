package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// troubled is a node with a problem of most kinds, and hostile names.
func troubled() overview.Overview {
	told := func(file string, d time.Duration) overview.Told { return overview.Told{File: file, At: ago(d)} }
	restarts := uint32(6)
	app := func(n byte, name string) overview.App {
		id := uuid.UUID{n, n, n, n}.String()
		return overview.App{Name: name, UUID: id, KubeName: "x-" + id[:5] + "-0", VM: true, Activate: true, Designated: true, Affinity: "Preferred"}
	}
	runs, down, off := app(0xaa, "plc"), app(0xbb, "Camera_9"), app(0xcc, "scale\x1b[31m\u202eX")
	runs.State, runs.Here, runs.Node, runs.Since, runs.Restarts, runs.Ports = "RunningState", true, "node-2", ago(26*time.Hour), &restarts, []string{"8022->22/tcp"}
	runs.Console = &types.AppConsoleStatus{Open: true, VNCPort: 5907, Since: ago(time.Minute)}
	runs.Pods = []types.KubePodInfo{{Name: "plc-0", Status: types.KubePodRunning, NodeName: "node-2", RestartCount: 6, RestartTimestamp: types.TextTime(ago(time.Minute)), Reason: "CrashLoopBackOff"}}
	down.State, down.Since = "NotRunningState", ago(20*time.Minute)
	down.Repair = &types.AppRepairStatus{
		Phase: types.RepairRefused, Act: types.ActFailover, Reason: "Volume cam-data has no whole replica on another node.", Since: ago(20 * time.Minute), Lost: "node-3",
		Evidence: []string{"The device of node node-3 answers none of [node-1 node-2]."},
		Steps:    []types.RepairStep{{At: ago(19 * time.Minute), Act: types.ActMove, Step: "Its affinity names node-2 now.", Failed: "refused"}},
	}
	down.Console = &types.AppConsoleStatus{Why: "its virtual machine has not started", Since: ago(20 * time.Minute)}
	off.State, off.Activate, off.Designated, off.Affinity, off.Since = "NotRunningState", false, false, "Required", ago(300*24*time.Hour)
	o := overview.Overview{
		ReadAt: screenNow,
		Node:   overview.Node{Told: told("/run/zedagent/EdgeNodeInfo/global.json", time.Hour), Name: "node-2", UUID: uuid.NameSpaceOID.String()},
		Agent:  overview.Agent{Runs: true, PID: 4711, Seen: ago(4 * time.Second)},
		API:    overview.API{Kubeconfig: told("/run/.kube/k3s/k3s.yaml", time.Hour), Answers: types.ConditionTrue},
		Cluster: overview.Cluster{
			Told: told("/run/zedkube/EdgeNodeClusterStatus/global.json", 3*24*time.Hour), Name: "plant-7", ID: uuid.NameSpaceURL.String(), Interface: "eth1", Address: "10.0.0.2/24",
			AddressReady: true, Role: "server", JoinServer: "10.0.0.1", Wanted: true,
			Membership: overview.Membership{Told: told("/persist/status/zedkube/ClusterMembership/global.json", time.Hour), State: types.MembershipDoubtful, Reason: "no peer has been told yet who the masters are now", InvalidSince: ago(time.Hour)},
			Members:    overview.Members{Told: told("/run/zedkube/ClusterMembers/global.json", time.Minute), Masters: []string{"a", "b", "c"}, TieBreaker: "node-4"},
		},
		Drain:   overview.Drain{Told: told("/run/zedkube/NodeDrainProgress/global.json", time.Second), Progress: emptying().Progress, Status: "DRAINRETRYING", RequestedBy: "DEVICEOP"},
		Lease:   overview.Lease{Told: told("/run/zedkube/KubeLeaderElectInfo/global.json", time.Hour), Leader: "node-1", Takes: true, Running: true, Since: ago(50 * time.Hour)},
		Report:  overview.Report{Told: told("/run/zedkube/KubeReportHealth/global.json", time.Minute), Sections: []types.ReportSection{{Name: types.SectionServices, Known: true}, {Name: types.SectionIngresses, Known: true, StaleSince: ago(15 * time.Minute), Why: "ingresses is forbidden"}}},
		Storage: overview.Storage{Told: overview.Told{File: "/run/zedkube/KubeStorageStatus/global.json"}, Health: "Degraded", Since: ago(10 * time.Minute), Volumes: []overview.Volume{{Name: "cam-data", Robustness: "Degraded", Replicas: 2, Online: 1, Here: true, Rebuilding: 42}}},
		Apps:    overview.Apps{Told: told("/run/zedagent/AppInstanceConfig", time.Hour), List: []overview.App{down, runs, off}},
		Nodes:   troubledNodes(),
		Conditions: overview.Conditions{
			Told: told("/persist/status/zedkube/KubeNodeConditions/global.json", time.Minute), Kubernetes: "v1.34.2+k3s1", Longhorn: "v1.9.0",
			List: []types.NodeStateCondition{
				{Type: types.StateClientCertificate, Status: types.ConditionFalse, Since: ago(time.Hour), Message: "The client certificate ends in 9 days.", ExpiresAt: ago(-9 * 24 * time.Hour)},
				{Type: types.StateCordon, Status: types.ConditionTrue},
				{Type: types.StateLeader, Status: types.ConditionUnknown},
			},
			Certificates: []types.NodeCertificate{{Name: "client", NotAfter: ago(-9 * 24 * time.Hour)}},
		},
		Disks: []overview.Disk{{Path: "/run", Size: 2 << 30, Free: 1 << 30}, {Path: "/persist", Size: 100 << 30, Free: 3 << 30}},
	}
	o.Problems = overview.Problems(o)
	return o
}

func troubledNodes() overview.Nodes {
	node := func(n, status string, since time.Duration) overview.ClusterNode {
		return overview.ClusterNode{Name: "node-" + n, Own: n == "2", Status: status, Since: ago(since), Roles: []string{"control-plane", "etcd"}, Address: "10.0.0." + n, Kubelet: "v1.34.2+k3s1", Agent: "v0.9.0", AgentAt: ago(time.Minute), Created: ago(200 * 24 * time.Hour)}
	}
	ready, own, lost := node("1", "Ready", 26*time.Hour), node("2", "Ready", 90*time.Second), node("3", "NotReachable", 5*time.Hour)
	ready.Pressures = []string{"DiskPressure"}
	own.Cordoned, own.CordonedBy, own.CordonWhy, own.CordonSince, own.Drain = true, "zedkube", "the device reboots", ago(time.Hour), "draining"
	lost.Lost, lost.Roles = "its device answers none of node-1, node-2", []string{"worker"}
	odd := node("4", "Ready", time.Hour)
	odd.Name, odd.Drain, odd.Agent, odd.Kubelet, odd.Address = "n\x1b]0;x", "dra\x1b[2Jned", "\u202ev", "v1\n\nv2", "10.\x1b0"
	return overview.Nodes{Told: overview.Told{At: ago(2 * time.Second)}, From: fromAgent, List: []overview.ClusterNode{ready, own, lost, odd}}
}

// views are what status, nodes and apps print.
func views() map[string]string {
	o := troubled()
	well := overview.Overview{ReadAt: screenNow, Agent: overview.Agent{Runs: true, Seen: screenNow}, Node: overview.Node{NoCluster: "This device's hypervisor is kvm, which runs no Kubernetes."}}
	v := nodesView{ReadAt: screenNow, Nodes: o.Nodes, Problems: []string{"the agent does not run: process 4711 is gone"}}
	text := func(lines []string) string { return strings.Join(lines, "\n") + "\n" }
	out := map[string]string{
		"status":        text(statusLines(o, 80, false)),
		"status-pipe":   text(statusLines(o, wholeLines, false)),
		"status-colour": text(statusLines(o, 80, true)),
		"status-kvm":    text(statusLines(well, 80, false)),
		"nodes":         text(nodesLines(v, false, 80, false)),
		"nodes-pipe":    text(nodesLines(v, false, wholeLines, false)),
		"nodes-40":      text(nodesLines(v, false, 40, false)),
		"apps":          text(appsLines(o, false, 80, false)),
		"apps-pipe":     text(appsLines(o, false, wholeLines, false)),
		"apps-colour":   text(appsLines(o, false, 80, true)),
	}
	for i, a := range o.Apps.List {
		one := o
		one.Apps.List = []overview.App{a}
		out["app-"+[]string{"down", "runs", "off"}[i]] = text(appsLines(one, true, 80, false))
	}
	one := v
	one.Nodes.List, one.Problems = v.Nodes.List[1:2], nil
	out["node"] = text(nodesLines(one, true, 80, false))
	return out
}

// TestViews holds what people see: go test ./cmd/zedkube -run Views -update
// writes it anew.
func TestViews(t *testing.T) {
	all := views()
	var b bytes.Buffer
	if err := (&outputs{form: formJSON}).encode(&b, troubled(), "  "); err != nil {
		t.Fatal(err)
	}
	all["status-json"] = b.String()
	for name, got := range all {
		file := filepath.Join("testdata/views", name+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s, want -, got +:\n%s", name, diff)
		}
		for line := range strings.Lines(got) {
			plain := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[1m", "", "\x1b[0m", "").Replace(strings.TrimRight(line, "\n"))
			if !strings.Contains(name, "pipe") && name != "status-json" && cells(plain) > 79 {
				t.Errorf("%s: a line of %d columns: %s", name, cells(plain), plain)
			}
			if strings.ContainsAny(plain, "\x1b\u202e") {
				t.Errorf("%s: what a name says reaches the terminal: %q", name, plain)
			}
		}
	}
}

func TestStatusIsReadBackFromItsJSON(t *testing.T) {
	var b bytes.Buffer
	if err := (&outputs{form: formJSON}).encode(&b, troubled(), "  "); err != nil {
		t.Fatal(err)
	}
	var back overview.Overview
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(troubled(), back); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestACheckFindsProblems(t *testing.T) {
	o := troubled()
	if err := shownStatus(o, true).err; exitCode(err) != exitFound {
		t.Errorf("a node in trouble ends with %v", err)
	}
	if err := shownStatus(o, false).err; err != nil {
		t.Errorf("without --check it ends with %v", err)
	}
	o.Problems = nil
	if err := shownStatus(o, true).err; err != nil {
		t.Errorf("a node that is well ends with %v", err)
	}
}

func TestApplicationsAreFoundByTheirNames(t *testing.T) {
	o := troubled()
	for name, want := range map[string]string{
		"camera_9": "Camera_9", "bbbbbbbb": "Camera_9", o.Apps.List[1].UUID: "plc", strings.ToUpper(o.Apps.List[0].UUID): "Camera_9",
		"x-aaaaa-0": "plc", "x": "", "": "", "b": "Camera_9",
	} {
		a, err := chosenApp(o, name)
		if a.Name != want || (want == "") != (err != nil) {
			t.Errorf("%q: found %q, %v", name, a.Name, err)
		}
	}
	twice := o
	twice.Apps.List = append(twice.Apps.List[:len(twice.Apps.List):len(twice.Apps.List)], o.Apps.List[1])
	if _, err := chosenApp(twice, "plc"); err == nil || !strings.Contains(err.Error(), "2 applications") {
		t.Errorf("two of the same name: %v", err)
	}
}

func TestNodesThatCannotBeHadAreAnError(t *testing.T) {
	for name, c := range map[string]struct {
		view nodesView
		only []string
		code int
	}{
		"none, and why":          {nodesView{Problems: []string{"no kubeconfig"}}, nil, exitNotPublished},
		"none":                   {nodesView{}, nil, exitNotPublished},
		"some":                   {nodesView{Nodes: troubledNodes()}, nil, 0},
		"one":                    {nodesView{Nodes: troubledNodes()}, []string{"node-1"}, 0},
		"one that is not":        {nodesView{Nodes: troubledNodes()}, []string{"node-9"}, exitUsage},
		"one, of nobody's nodes": {nodesView{Problems: []string{"no kubeconfig"}}, []string{"node-1"}, exitNotPublished},
	} {
		s := shownNodes(c.view, c.only)
		if got := exitCode(s.err); got != c.code {
			t.Errorf("%s: exit code %d, want %d", name, got, c.code)
		}
		said := strings.Join(s.lines(80, false), "\n")
		if s.err != nil && len(c.view.Problems) > 0 && (strings.Contains(said, "no kubeconfig") || !strings.Contains(s.err.Error(), "no kubeconfig")) {
			t.Errorf("%s: %q and %v", name, said, s.err)
		}
	}
}

func TestStatusReadsADeviceThroughItsFlags(t *testing.T) {
	root := t.TempDir()
	out := outputs{asked: "jsonpath={.Problems[*].Name}"}
	if err := out.parse(); err != nil {
		t.Fatal(err)
	}
	if err := checkDevice(options{root: root}); err == nil {
		t.Error("an empty directory is taken for a device")
	}
	if err := os.MkdirAll(filepath.Join(root, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	err := out.show(t.Context(), terminal{Writer: &b, fd: -1}, time.Second, func(context.Context) shown {
		return shownStatus(overview.Read(root, screenNow), true)
	})
	if exitCode(err) != exitFound || b.String() != "AgentDead NoKubeconfig\n" {
		t.Errorf("printed %q, ended with %v", b.String(), err)
	}
}
