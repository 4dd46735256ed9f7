package topcmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

func some(v uint64) *uint64 { return &v }

// busyNode is what this node's agent says in these tests: pods of every kind.
func busyNode() types.KubeNodeMetrics {
	m := types.KubeNodeMetrics{Node: "node-2", At: cmdtest.Ago(2 * time.Second), Every: 5 * time.Second}
	m.Metrics = types.NodeMetrics{
		Cores: 4, CPU: some(1_312_000_000), MemoryWorking: some(6 << 30), MemoryAvailable: some(2 << 30),
		NetworkReceived: some(5 << 30), NetworkSent: some(1 << 30), FS: &types.FSMetrics{Used: some(60 << 30), Capacity: some(100 << 30)},
	}
	camera := types.PodMetrics{
		Namespace: "eve-kube-app", Name: "camera-inspection-line-3-9f27b", UID: "a",
		Ephemeral: &types.FSMetrics{Used: some(420 << 20)}, Containers: []types.ContainerMetrics{{Name: "main"}, {Name: "sidecar"}},
	}
	for i := range uint64(8) {
		at := cmdtest.Ago(time.Duration(2+5*(7-i)) * time.Second)
		cpu, memory := some(100_000_000*(i+1)), some((200+10*i)<<20)
		camera.Samples = append(camera.Samples, types.PodSample{
			At: at, CPU: cpu, MemoryWorking: memory, NetworkReceived: some(i * 5 << 20), NetworkSent: some(i * 5 << 10),
		})
		c := camera.Containers
		c[0].Samples = append(c[0].Samples, types.ContainerSample{
			At: at, CPU: cpu, MemoryUsage: some(300 << 20), MemoryWorking: memory, Swap: some(0),
			ReadBytes: some(0), WrittenBytes: some(i * 5 << 20), IOs: some(i * 60), FSUsed: some(7 << 20),
		})
		c[1].Samples = append(c[1].Samples, types.ContainerSample{At: at, CPU: some(0)})
	}
	quiet := types.PodMetrics{Namespace: "eve-kube-app", Name: "plc", UID: "b", Samples: []types.PodSample{{At: cmdtest.Ago(40 * time.Second), CPU: some(0), MemoryWorking: some(3 << 20)}}}
	unknown := types.PodMetrics{Namespace: "eve-kube-app", Name: "new", UID: "c", Samples: []types.PodSample{{At: cmdtest.Ago(2 * time.Second)}}}
	system := types.PodMetrics{Namespace: "kube-system", Name: "coredns-7db6d8ff4d-x2x4l", UID: "d", Samples: []types.PodSample{{At: cmdtest.Ago(2 * time.Second), CPU: some(4_000_000), MemoryWorking: some(19 << 20)}}}
	m.Pods = []types.PodMetrics{camera, unknown, quiet, system}
	return m
}

// busyTop is the command on a device whose agent says so.
func busyTop(of, by string) (topTable, topOptions) {
	o := topOptions{of: of, sort: by}
	m := busyNode()
	t := topTable{At: cmdtest.Now, Of: of, Node: "node-2", Agent: device.AgentLife{Runs: true}}
	switch of {
	case topNodes:
		t.Rows = busyNodes().rows(cmdtest.Now)
	case topPods:
		t.Rows, t.Hidden = podRows(m, o, cmdtest.Now)
	default:
		t.Rows, t.Hidden = podRows(m, o, cmdtest.Now)
	}
	sortRows(t.Rows, by)
	return t, o
}

func busyNodes() *nodeAsking {
	a := &nodeAsking{names: []string{"node-1", "node-2", "node-3", "node-4"}, samples: map[string][]nodeSample{}, pods: map[string][]types.PodMetrics{}}
	m := busyNode()
	for i := range 3 {
		sample := types.NodeSample{At: m.At.Add(time.Duration(i-3) * 5 * time.Second), NodeMetrics: m.Metrics}
		sample.NetworkReceived = some(5<<30 + uint64(i)*10<<20)
		m.Samples = append(m.Samples, sample)
	}
	a.learn(&m, nil)
	a.learn(nil, &types.KubeClusterMetrics{Nodes: []types.ClusterNodeMetrics{
		{Name: "node-1", At: cmdtest.Ago(44 * time.Second), Cores: 4, CPU: some(400_000_000), Memory: some(4 << 30), Total: some(8 << 30), Stale: "the kubelet does not answer within 20s"},
		{Name: "node-3", Stale: "it has never answered"},
	}})
	return a
}

func crowded() (topTable, topOptions) {
	t, o := busyTop(topPods, sortCPU)
	t.Rows = nil
	for i := range 300 {
		cpu := some(uint64(300-i) * 1e6)
		t.Rows = append(t.Rows, topRow{Name: fmt.Sprintf("app-%03d", i), At: cmdtest.Ago(time.Second), CPU: cpu, CPUs: []*uint64{cpu}})
	}
	return t, o
}

func drawnTop(t topTable, o topOptions, width, height, from int) []string {
	s := terminal.Screen{Width: width, Height: height, From: from}
	t.draw(&s, o)
	return s.Lines
}

func topScreens() map[string][]string {
	drawn := func(t topTable, o topOptions, width, height int) []string {
		return drawnTop(t, o, width, height, 0)
	}
	all := map[string][]string{}
	for _, of := range []string{topNodes, topPods, topContainers} {
		t, o := busyTop(of, sortCPU)
		if of == topNodes {
			t.Problems = busyNodes().problems(t.Rows)
		}
		all["top-"+of] = drawn(t, o, 120, 0)
		o.ascii = true
		all["top-"+of+"-50"] = drawn(t, o, 50, 24)
	}
	t, o := crowded()
	all["top-many"] = drawn(t, o, 80, 24)
	t, o = busyTop(topPods, sortMemory)
	t.Problems = []string{"the agent is NOT running: process 4711 is gone; its values are the last ones that it published"}
	all["top-dead"] = drawn(t, o, 80, 24)
	all["top-nothing"] = drawn(topTable{At: cmdtest.Now, Of: topPods, Problems: []string{"the agent has published no KubeNodeMetrics yet"}}, o, 80, 24)
	return all
}

func TestTopScreens(t *testing.T) {
	for name, lines := range topScreens() {
		cmdtest.Same(t, filepath.Join("testdata/screens", name+".txt"), strings.Join(lines, "\n")+"\n")
	}
}

func TestTopFitsEveryTerminal(t *testing.T) {
	for _, of := range []string{topNodes, topPods, topContainers, "many"} {
		table, o := crowded()
		if of != "many" {
			table, o = busyTop(of, sortCPU)
			table.Rows[0].Name = strings.Repeat("long-", 60) + "end"
			table.Problems = []string{"a problem " + strings.Repeat("of many words ", 40), "b", "c", "d", "e", "f", "g", "h"}
		}
		for width := 22; width <= 160; width += 3 {
			for _, height := range []int{4, 7, 24} {
				for _, o.ascii = range []bool{false, true} {
					lines := drawnTop(table, o, width, height, 1000)
					if len(lines) > height-1 && height > 5 {
						t.Fatalf("%s: %d lines on %d x %d", of, len(lines), width, height)
					}
					for _, line := range lines {
						if n := utf8.RuneCountInString(line); n >= width {
							t.Fatalf("%s: %d columns on %d: %q", of, n, width, line)
						}
						if strings.ContainsFunc(line, func(r rune) bool { return o.ascii && r > '~' }) {
							t.Fatalf("%q is not ASCII", line)
						}
					}
				}
			}
		}
	}
}

func TestWhatIsUnknownIsNotZero(t *testing.T) {
	l := topLook{now: cmdtest.Now}
	table, _ := busyTop(topContainers, sortCPU)
	side := strings.Fields(terminal.Draw(121, false, l.table(table).Draw)[2])
	if want := []string{"camera-inspect…9f27b/sidecar", "0m", "▁▁▁▁▁▁▁▁", "-", "--------", "-", "-", "-", "-", "-", "-", "2s"}; !cmp.Equal(side, want) {
		t.Errorf("got %q, want %q", side, want)
	}
	if got := l.spark([]*uint64{some(0), nil, some(50), some(100)}, 0); got != "    ▁-▅█" {
		t.Errorf("got %q", got)
	}
	if got := l.spark([]*uint64{some(5), some(1 << 63)}, 10); got != "      ▅█" {
		t.Errorf("of a known whole: got %q", got)
	}
	if got := (topLook{ascii: true}).spark([]*uint64{some(0), nil, some(100)}, 0); got != "     0-7" {
		t.Errorf("got %q", got)
	}
}

func TestNumbersFitTheirColumns(t *testing.T) {
	for v := uint64(1); ; v *= 3 {
		for _, d := range []uint64{0, 1, 2} {
			if got := terminal.BytesText(some(v - d)); len(got) > 6 {
				t.Errorf("%d bytes are %q", v-d, got)
			}
			if got := terminal.CoresText(some(v - d)); len(got) > 5 {
				t.Errorf("%d nanocores are %q", v-d, got)
			}
			if got := terminal.Percent(some(v-d), 7); len(got) > 4 {
				t.Errorf("%d of 7 is %q", v-d, got)
			}
		}
		if v > 1<<62 {
			break
		}
	}
	for want, v := range map[string]uint64{"0B": 0, "1023B": 1023, "1.0Ki": 1024, "512Mi": 512 << 20, "16Ei": 1<<64 - 1} {
		if got := terminal.BytesText(&v); got != want {
			t.Errorf("%d: got %s, want %s", v, got, want)
		}
	}
	for want, v := range map[string]uint64{"0m": 0, "250m": 250_000_000, "12.3": 12_300_000_000, ">99k": 1<<64 - 1} {
		if got := terminal.CoresText(&v); got != want {
			t.Errorf("%d: got %s, want %s", v, got, want)
		}
	}
}

func TestAgesAreMarkedWhereTheyAreOld(t *testing.T) {
	for want, at := range map[string]time.Time{
		"15s": cmdtest.Ago(15 * time.Second), "16s!": cmdtest.Ago(16 * time.Second), "59m!": cmdtest.Ago(59*time.Minute + 59*time.Second), "30h!": cmdtest.Ago(30 * time.Hour),
		"9d!": cmdtest.Ago(9 * 24 * time.Hour), ">999d!": time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC), "+5s": cmdtest.Ago(-5 * time.Second), "+2m!": cmdtest.Ago(-2 * time.Minute), "-": {},
	} {
		r := topRow{At: at}
		r.age(cmdtest.Now, topOld)
		if got := ageText(r, cmdtest.Now); got != want {
			t.Errorf("%s: got %q, want %q", at, got, want)
		}
	}
}

func TestNamesAreClean(t *testing.T) {
	m := types.KubeNodeMetrics{Node: "n\x1b[2J", Pods: []types.PodMetrics{{Namespace: "eve-kube-app", Name: "evil\x1b[31m\r\n\u202e", Samples: make([]types.PodSample, 9)}}}
	table := topTable{Of: topPods, Node: m.Node, Problems: []string{"why\x07\x1b]0;x\x07"}}
	table.Rows, _ = podRows(m, topOptions{of: topPods, all: true}, cmdtest.Now)
	text := strings.Join(drawnTop(table, topOptions{sort: sortCPU}, 80, 24, 0), "\n")
	if strings.ContainsAny(text, "\x1b\x07\r\u202e") {
		t.Errorf("the terminal would obey %q", text)
	}
}

func TestRowsAreSortedAndTheUnknownComesLast(t *testing.T) {
	rows := []topRow{{Name: "c"}, {Name: "b", CPU: some(0), Memory: some(9)}, {Name: "a", CPU: some(5)}, {Name: "d", CPU: some(5), Memory: some(10)}}
	for by, want := range map[string]string{sortCPU: "adbc", sortMemory: "dbac", sortName: "abcd"} {
		sortRows(rows, by)
		got := ""
		for _, r := range rows {
			got += r.Name
		}
		if got != want {
			t.Errorf("by %s: got %s, want %s", by, got, want)
		}
	}
}

func TestACounterThatBeganAnewHasNoRate(t *testing.T) {
	if perSecond(some(10), some(9), time.Second) != nil || perSecond(nil, some(9), time.Second) != nil || perSecond(some(1), some(9), 0) != nil {
		t.Error("there is a rate of what is not known")
	}
	if got := perSecond(some(10), some(60), 5*time.Second); got == nil || *got != 10 {
		t.Errorf("got %v", got)
	}
}

func TestANodeThatFailsKeepsItsLastWordAndWhy(t *testing.T) {
	a := &nodeAsking{samples: map[string][]nodeSample{}, pods: map[string][]types.PodMetrics{}}
	at := cmdtest.Ago(5 * time.Second)
	a.know("n", nodeSample{err: errors.New("first")})
	a.know("n", nodeSample{at: at, metrics: types.NodeMetrics{CPU: some(7)}})
	if r := a.rows(cmdtest.Now)[0]; r.CPU == nil || *r.CPU != 7 || r.Stale != "" || len(r.CPUs) != 1 {
		t.Errorf("after an answer: %+v", r)
	}
	a.know("n", nodeSample{err: errors.New("then"), at: cmdtest.Now})
	if r := a.rows(cmdtest.Now)[0]; r.CPU == nil || r.Stale != "then" || !r.At.Equal(at) {
		t.Errorf("after a failure: %+v", r)
	}
	for i := range 20 {
		a.know("n", nodeSample{at: cmdtest.Now.Add(time.Duration(i) * time.Second), metrics: types.NodeMetrics{CPU: some(uint64(i))}})
	}
	if r := a.rows(cmdtest.Now)[0]; len(r.CPUs) != topSamples || *r.CPU != 19 || r.Stale != "" {
		t.Errorf("after many answers: %+v", r)
	}
}

func TestTheColumnOfNodesIsOnlyInATableOfAllNodes(t *testing.T) {
	table, o := busyTop(topPods, sortCPU)
	for i := range table.Rows {
		table.Rows[i].Node = "node-2"
	}
	for _, table.Cluster = range []bool{false, true} {
		text := strings.Join(drawnTop(table, o, 80, 0, 0), "\n")
		if strings.Contains(text, " NODE ") != table.Cluster || strings.Contains(text, "of all nodes") != table.Cluster {
			t.Errorf("of all nodes: %v\n%s", table.Cluster, text)
		}
	}
}

func TestRowsAreSortedByAnyColumnTheLargestFirst(t *testing.T) {
	now := cmdtest.Now
	table := topTable{At: now, Of: topPods, Cluster: true, Rows: []topRow{
		{Name: "a", Node: "n2", At: now.Add(-5 * time.Second), Received: some(900)},
		{Name: "b", Node: "n1", At: now.Add(-2 * time.Minute), Old: true, Received: some(2 << 20)},
		{Name: "c", Node: "n3", At: now.Add(-12 * time.Second)},
	}}
	for by, want := range map[string]string{"rx/s": "bac", "AGE": "bca", "node": "bac", "name": "abc"} {
		sortRows(table.Rows, by)
		table.sortByColumn(by)
		got := ""
		for _, r := range table.Rows {
			got += r.Name
		}
		if got != want {
			t.Errorf("by %s: %s, want %s", by, got, want)
		}
	}
}
