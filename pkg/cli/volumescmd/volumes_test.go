package volumescmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/clusterview"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

// troubled are volumes in every state, in the order in which they were listed.
func troubled() volumesView {
	v := volumesView{ReadAt: cmdtest.Now, From: fromReport, At: cmdtest.Ago(3 * time.Second), Items: []overview.Volume{
		{
			Name: "0c1f0b1e-58f6-4d2a-8c0e-6a1f0f7f9b21-pvc-0", Namespace: "eve-kube-app", State: "Attached", Robustness: "Healthy", Bytes: 10 << 30, Used: 4 << 30, Replicas: 3, Online: 3, Healthy: 3,
			Created: cmdtest.Ago(20 * 24 * time.Hour), Users: []overview.VolumeUser{{App: "Label_Printer", Pod: "label-printer-9f27b-0-abcde", Node: "node-1"}},
			Copies: []overview.VolumeReplica{{Name: "r-1", Node: "node-1", Status: "Online"}, {Name: "r-2", Node: "node-2", Status: "Online"}, {Name: "r-3", Node: "node-3", Status: "Online"}},
		},
		{
			Name: "5b1c7c4e-58f6-4d2a-8c0e-6a1f0f7f9b21-pvc-0", Namespace: "eve-kube-app", State: "Attached", Robustness: "Degraded", Bytes: 20 << 30, Replicas: 3, Online: 1, Healthy: 1, Rebuilding: 42,
			Users:  []overview.VolumeUser{{App: "Historian", Pod: "virt-launcher-historian", Node: "node-2"}},
			Copies: []overview.VolumeReplica{{Name: "r-1", Node: "node-2", Status: "Online"}, {Name: "r-2", Node: "node-1", Status: "Rebuilding", Percent: 42}, {Name: "r-3", Node: "node-3", Status: "Failed"}},
		},
		{Name: "archive", Namespace: "shop", State: "Detached", Robustness: "Unknown", Bytes: 1 << 30, Replicas: 2, Healthy: 2, Copies: []overview.VolumeReplica{{Name: "r", Node: "node-3", Status: "Offline"}}},
		{Name: "cache", Namespace: "eve-kube-app", State: "Attached", Robustness: "Degraded", Bytes: 1 << 30, Replicas: 3, Healthy: 2, Online: 2, Users: []overview.VolumeUser{{Pod: "evil\x1b[2J\u202e"}}},
		{Name: "gone\x1b]0;x", Namespace: "eve-kube-app", State: "Detached", Robustness: "Faulted", Bytes: 1 << 30, Replicas: 2},
	}}
	overview.ByUrgency(v.Items)
	return v
}

func text(v volumesView, alone bool, width int) string {
	return strings.Join(terminal.Draw(width, false, func(s *terminal.Screen) { putVolumes(s, v, alone) }), "\n") + "\n"
}

// TestViewsOfVolumes holds what people see: go test ./pkg/cli/volumescmd -run Views -update
// writes it.
func TestViewsOfVolumes(t *testing.T) {
	v := troubled()
	cmdtest.SameView(t, "volumes", text(v, false, 80))
	cmdtest.SameView(t, "volumes-pipe", text(v, false, cmdtest.Pipe))
	cmdtest.SameView(t, "volumes-40", text(v, false, 40))
	v.Problems = []string{"the agent is not running: process 4711 is gone"}
	v.At = cmdtest.Ago(2 * time.Hour)
	v.Items = v.Items[:1]
	cmdtest.SameView(t, "volume", text(v, true, 80))
}

func TestOnlyTheVolumesThatAreAskedForAreShown(t *testing.T) {
	for name, want := range map[string]int{
		"": 5, "shop/archive": 1, "archive": 1, "5b1c7c4e-58f6-4d2a-8c0e-6a1f0f7f9b21-pvc-0": 1, "historian": 1, "virt-launcher-historian": 1, "other": 0,
	} {
		var only []string
		if name != "" {
			only = []string{name}
		}
		s := viewVolumes(troubled(), only)
		if got := len(s.Data.(volumesView).Items); got != want || (s.Err == nil) != (want > 0) || len(s.Rows) != want {
			t.Errorf("%q: %d volumes, %v", name, got, s.Err)
		}
	}
	if s := viewVolumes(volumesView{From: fromAPI}, nil); s.Err != nil || !strings.Contains(strings.Join(terminal.Draw(80, false, s.Draw), "\n"), "there are no replicated volumes") {
		t.Errorf("a cluster without any: %v", s.Err)
	}
	s := viewVolumes(volumesView{Problems: []string{"it is silent"}}, nil)
	if s.Draw != nil || terminal.ExitCode(s.Err) != terminal.ExitNotPublished || !strings.Contains(s.Err.Error(), "it is silent") {
		t.Errorf("nobody says anything: %v", s.Err)
	}
}

// stage is a device, and an API server that counts how often it is asked.
type stage struct {
	asked
	err   error
	times int
}

func (s *stage) Storage(context.Context, string) (types.Storage, error) {
	s.times++
	return types.Storage{Longhorn: true, Volumes: []types.Volume{{Name: "v", Claim: "eve-kube-app/data", State: "attached", Robustness: "healthy", Wanted: 1}}}, s.err
}

func (s *stage) AppPodsNow(context.Context) ([]types.Pod, error) { return nil, nil }

func newStage(t *testing.T, files map[string]string) *stage {
	t.Helper()
	root := t.TempDir()
	cmdtest.LayFiles(t, root, files)
	s := &stage{}
	s.paths = device.Options{Root: root}.Paths()
	s.dial = func(context.Context) (kube, func(), error) { return s, func() {}, nil }
	return s
}

// reports are the files of a node that reports a volume.
func reports(t *testing.T, section types.ReportSection) map[string]string {
	t.Helper()
	encode := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	section.Name = types.SectionStorage
	info := types.KubeClusterInfo{Storage: types.KubeStorageInfo{Volumes: []types.KubeVolumeInfo{{
		Name: "5b1c7c4e-58f6-4d2a-8c0e-6a1f0f7f9b21-pvc-0", State: types.StorageVolumeStateAttached, Robustness: types.StorageVolumeRobustnessHealthy,
		Replicas: []types.KubeVolumeReplicaInfo{{OwnerNode: "n1", Status: types.StorageVolumeReplicaStatusOnline}},
	}}}}
	info.AppPods = []types.KubePodInfo{{Name: "panel-f3de8-0-abcde", Status: types.KubePodRunning, NodeName: "n1"}}
	const app = `{"UUIDandVersion":{"UUID":"f3de8560-c29d-55cb-ab04-0fa6d2a3c419","Version":"1"},"DisplayName":"Panel","VolumeRefConfigList":[{"VolumeID":"5b1c7c4e-58f6-4d2a-8c0e-6a1f0f7f9b21"}]}`
	return map[string]string{
		"run/zedkube.pid": fmt.Sprint(os.Getpid()), "run/zedkube.touch": "",
		"run/zedkube/KubeClusterInfo/global.json":                                  encode(info),
		"run/zedkube/KubeReportHealth/global.json":                                 encode(types.KubeReportHealth{Reports: true, Sections: []types.ReportSection{section}}),
		"run/zedagent/AppInstanceConfig/f3de8560-c29d-55cb-ab04-0fa6d2a3c419.json": app,
	}
}

func TestTheNodeThatReportsAsksNobody(t *testing.T) {
	s := newStage(t, reports(t, types.ReportSection{Known: true}))
	v := s.look(t.Context())
	if s.times != 0 || v.From != fromReport || !v.At.Equal(v.ReadAt) || len(v.Items) != 1 || len(v.Problems) != 0 {
		t.Fatalf("asked %d times: %+v", s.times, v)
	}
	if u := v.Items[0].Users; len(u) != 1 || u[0] != (overview.VolumeUser{App: "Panel", Pod: "panel-f3de8-0-abcde", Node: "n1"}) {
		t.Errorf("used by %+v", u)
	}
}

func TestAReportThatIsNotOfNowSaysSinceWhen(t *testing.T) {
	stale := time.Now().Add(-10 * time.Minute).UTC()
	v := newStage(t, reports(t, types.ReportSection{Known: true, StaleSince: stale, Why: "the API server is silent"})).look(t.Context())
	if !v.At.Equal(stale) || len(v.Problems) != 1 || !strings.Contains(v.Problems[0], "the API server is silent") {
		t.Errorf("%+v", v)
	}
	files := reports(t, types.ReportSection{Known: true})
	s := newStage(t, files)
	if err := os.Chtimes(s.paths.Touch, stale, stale); err != nil {
		t.Fatal(err)
	}
	if v := s.look(t.Context()); !v.At.Equal(stale) || len(v.Problems) != 1 || len(v.Items) != 1 {
		t.Errorf("of an agent that does not run: %+v", v)
	}
}

func TestOtherNodesAskTheAPIServerAndKeepItsLastWord(t *testing.T) {
	s := newStage(t, map[string]string{"run/zedkube.touch": ""})
	for range 3 {
		if v := s.look(t.Context()); v.From != fromAPI || len(v.Items) != 1 || v.Items[0].Name != "data" || len(v.Problems) != 0 {
			t.Errorf("%+v", v)
		}
	}
	if s.times != 1 {
		t.Errorf("it was asked %d times at once", s.times)
	}
	s.err = errors.New("it is silent")
	s.last.ReadAt = s.last.ReadAt.Add(-apiEvery)
	at := s.last.At
	if v := s.look(t.Context()); len(v.Items) != 1 || !v.At.Equal(at) || len(v.Problems) != 1 || v.Problems[0] != "it is silent" {
		t.Errorf("after an answer: %+v", v)
	}
	s = newStage(t, map[string]string{"run/zedkube.touch": ""})
	s.err = errors.New("it is silent")
	if v := s.look(t.Context()); v.From != "" || len(v.Items) != 0 || len(v.Problems) != 1 {
		t.Errorf("without one: %+v", v)
	}
}

func TestACopyAsksNobody(t *testing.T) {
	made := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	bundle := fmt.Sprintf(`{"made":%q}`, made.Format(time.RFC3339))
	s := newStage(t, map[string]string{"run/zedkube.touch": "", "zedkube-bundle.json": bundle})
	if v := s.look(t.Context()); s.times != 0 || len(v.Problems) != 1 || !strings.Contains(v.Problems[0], "this copy") {
		t.Errorf("%+v", v)
	}
	files := reports(t, types.ReportSection{Known: true})
	files["zedkube-bundle.json"] = bundle
	s = newStage(t, files)
	if err := os.Chtimes(s.paths.Touch, made, made); err != nil {
		t.Fatal(err)
	}
	if v := s.look(t.Context()); s.times != 0 || !v.At.Equal(made) || len(v.Items) != 1 {
		t.Errorf("of the node that reports: %+v", v)
	}
}

func TestVolumesOfTheClusterAreThoseOfTheNodeThatReports(t *testing.T) {
	told := func(name string) *clusterview.View {
		return &clusterview.View{At: cmdtest.Now, Volumes: []overview.Volume{{Name: name, Robustness: "Healthy", Replicas: 3, Healthy: 3}, {Name: name + "-last", Robustness: "Degraded", Replicas: 3, Healthy: 1}}}
	}
	rows := []clusterview.Row{
		{Name: "node-1", State: clusterview.Answered, HeardAt: cmdtest.Ago(time.Second), View: &clusterview.View{At: cmdtest.Now}},
		{Name: "node-2", State: clusterview.Silent, Why: "no answer in 3 s", HeardAt: cmdtest.Ago(time.Minute), View: told("before")},
		{Name: "node-3", State: clusterview.Answered, HeardAt: cmdtest.Ago(2 * time.Second), View: told("now")},
	}
	v := ofCluster(device.ClusterView{ReadAt: cmdtest.Now, Nodes: rows})
	if len(v.Items) != 2 || v.Items[0].Name != "now-last" || !strings.Contains(v.From, "node-3") || !v.At.Equal(rows[2].HeardAt) || len(v.Problems) != 1 {
		t.Errorf("%+v", v)
	}
	rows[2].View = nil
	v = ofCluster(device.ClusterView{ReadAt: cmdtest.Now, Nodes: rows})
	if len(v.Items) != 2 || !v.At.Equal(rows[1].HeardAt) || !strings.Contains(v.Problems[0], "node-2: no answer in 3 s, last known 60s ago") {
		t.Errorf("as last known: %+v", v)
	}
	if v = ofCluster(device.ClusterView{ReadAt: cmdtest.Now, Nodes: rows[:1]}); viewVolumes(v, nil).Err != nil || v.From == "" {
		t.Errorf("where there are none: %+v", v)
	}
	if v = ofCluster(device.ClusterView{Nodes: []clusterview.Row{{State: clusterview.Failed, Why: "refused"}}}); terminal.ExitCode(viewVolumes(v, nil).Err) != terminal.ExitNotPublished {
		t.Errorf("where nobody says it: %+v", v)
	}
}
