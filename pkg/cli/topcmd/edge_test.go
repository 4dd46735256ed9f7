package topcmd

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/report/edgemetrics"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

// atTheEdge is what the agent knows of three edge nodes: one that answers, one that is offline, one that hangs.
func atTheEdge() edgeAsking {
	node := func(at time.Time, n uint64) types.NodeSample {
		return types.NodeSample{At: at, NodeMetrics: types.NodeMetrics{
			Cores: 2, CPU: some(n * 100_000_000), CPUSeconds: some(n * 1_000_000_000), MemoryUsage: some(300 << 20), MemoryWorking: some(200 << 20), MemoryAvailable: some(800 << 20),
			NetworkReceived: some(n * 10_000), NetworkSent: some(n * 5000), FS: &types.FSMetrics{Available: some(6 << 30), Capacity: some(8 << 30), Used: some(2 << 30)},
		}}
	}
	pod := types.PodMetrics{
		Namespace: "plant", Name: "sensor", UID: "u", Ephemeral: &types.FSMetrics{Available: some(6 << 30), Capacity: some(8 << 30), Used: some(1 << 20)},
		Samples: []types.PodSample{
			{At: cmdtest.Ago(8 * time.Second), CPU: some(20_000_000), CPUSeconds: some(1), MemoryUsage: some(9 << 20), MemoryWorking: some(8 << 20), NetworkReceived: some(1000), NetworkSent: some(100)},
			{At: cmdtest.Ago(3 * time.Second), CPU: some(30_000_000), CPUSeconds: some(2), MemoryUsage: some(9 << 20), MemoryWorking: some(8 << 20), NetworkReceived: some(6000), NetworkSent: some(200)},
		},
		// What KubeEdge does not have is -.
		Containers: []types.ContainerMetrics{{Name: "app", Samples: []types.ContainerSample{{At: cmdtest.Ago(3 * time.Second), CPU: some(30_000_000), MemoryUsage: some(9 << 20), MemoryWorking: some(8 << 20)}}}},
	}
	old := pod
	old.Name, old.Samples, old.Containers = "valve", []types.PodSample{{At: cmdtest.Ago(26 * time.Hour), CPU: some(10_000_000), MemoryWorking: some(7 << 20)}}, nil
	one := node(cmdtest.Ago(3*time.Second), 4)
	two := node(cmdtest.Ago(26*time.Hour), 2)
	return edgeAsking{known: []types.KubeNodeMetrics{
		{Node: "edge-1", At: one.At, Metrics: one.NodeMetrics, Samples: []types.NodeSample{node(cmdtest.Ago(8*time.Second), 3), one}, Pods: []types.PodMetrics{pod}},
		{Node: "edge-2", At: two.At, Metrics: two.NodeMetrics, Samples: []types.NodeSample{two}, Pods: []types.PodMetrics{old}, Stale: "offline since 2026-11-19T12:00:00Z"},
		{Node: "edge-3", Stale: "query the kubelet of edge node edge-3: context deadline exceeded"},
	}}
}

func TestScreensOfEdgeNodes(t *testing.T) {
	for _, of := range []string{topNodes, topPods, topContainers} {
		for _, width := range []int{80, 120} {
			o := topOptions{edge: true}
			o.of, o.sort, o.all, o.cluster = of, sortCPU, of != topNodes, of != topNodes
			edge := atTheEdge()
			table := topTable{At: cmdtest.Now, Of: of, Edge: true, Cluster: o.cluster, Agent: device.AgentLife{Runs: true}}
			table.Rows, table.Hidden, table.Problems = edge.rows(o, cmdtest.Now)
			sortRows(table.Rows, o.sort)
			lines := terminal.Draw(width, false, func(s *terminal.Screen) { table.draw(s, o) })
			cmdtest.Same(t, filepath.Join("testdata/screens", "top-edge-"+of+map[int]string{80: "-80", 120: ""}[width]+".txt"), strings.Join(lines, "\n")+"\n")
		}
	}
}

// What a column has no room for are in the JSON.
func TestProgramsGetEveryFieldOfAnEdgeNode(t *testing.T) {
	edge := atTheEdge()
	for of, want := range map[string][]string{
		topNodes: {`"CPUSeconds":4000000000`, `"MemoryUsage":314572800`, `"MemoryWorking":209715200`, `"NetworkReceived":40000`, `"NetworkSent":20000`, `"Available":6442450944`, `"Capacity":8589934592`, `"Used":2147483648`, `"Edge":true`},
		topPods:  {`"CPUSeconds":2`, `"MemoryUsage":9437184`, `"MemoryWorking":8388608`, `"NetworkReceived":6000`, `"NetworkSent":200`, `"Available":6442450944`, `"Node":"edge-1"`},
	} {
		rows, _, _ := edge.rows(topOptions{of: of, all: true, cluster: true}, cmdtest.Now)
		text, err := json.Marshal(rows)
		for _, w := range want {
			if err != nil || !strings.Contains(string(text), w) {
				t.Errorf("%s: there is no %s in %s: %v", of, w, text, err)
			}
		}
	}
}

func TestASingleTableWaitsForEdgeNodesThatWereNotAskedYet(t *testing.T) {
	edge := atTheEdge()
	if !edge.settled(cmdtest.Now) {
		t.Error("it waits for one that is offline or hangs")
	}
	edge.known[0].At = cmdtest.Ago(4 * time.Minute)
	if edge.settled(cmdtest.Now) {
		t.Error("it does not wait for a younger sample")
	}
	edge.known[0] = types.KubeNodeMetrics{Node: "edge-1", Stale: edgemetrics.Pending}
	if edge.settled(cmdtest.Now) {
		t.Error("it does not wait for the first sample")
	}
	edge.err = errors.New("the agent does not answer")
	if _, _, said := edge.rows(topOptions{of: topNodes}, cmdtest.Now); !slices.Contains(said, "the agent does not answer") {
		t.Errorf("it says %q", said)
	}
}

func TestWhatIsWrongWithMembersIsNotSaidOfEdgeNodes(t *testing.T) {
	for edge, want := range map[bool]int{true: 0, false: 1} {
		var view top
		view.options.edge, view.own.value = edge, &types.KubeNodeMetrics{Stale: "the kubelet does not answer"}
		if said := view.problems(device.AgentLife{Runs: true}, cmdtest.Now); len(said) != want {
			t.Errorf("--edge=%v: it says %q", edge, said)
		}
	}
}
