package overview_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pkg/operate/health"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// device is a directory that files are put into.
type device struct {
	t    *testing.T
	root string
}

func newDevice(t *testing.T) device { return device{t, t.TempDir()} }

func (d device) put(file, content string) {
	d.t.Helper()
	path := filepath.Join(d.root, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// sample puts a topic's sample of the contract where its agent would.
func (d device) sample(dir, topic, key string) {
	d.t.Helper()
	raw, err := os.ReadFile("../../../types/testdata/" + topic + ".json")
	if err != nil {
		d.t.Fatal(err)
	}
	d.put(filepath.Join(dir, topic, key+".json"), string(raw))
}

func (d device) read() overview.Overview { return health.Read(d.root, time.Now()) }

func (d device) alive() {
	d.put("/run/zedkube.pid", strconv.Itoa(os.Getpid())+"\n")
	d.put("/run/zedkube.touch", "")
}

func find(o overview.Overview, name string) (types.Finding, bool) {
	for _, p := range o.Problems {
		if p.Rule == name {
			return p, true
		}
	}
	return types.Finding{}, false
}

func TestEveryTopicIsRead(t *testing.T) {
	d := newDevice(t)
	d.alive()
	for _, topic := range []string{
		"EdgeNodeClusterStatus", "ClusterMembers", "NodeDrainProgress", "NodeDrainStatus", "KubeLeaderElectInfo", "KubeReportHealth", "KubeClusterInfo", "KubeStorageStatus",
	} {
		d.sample("/run/zedkube", topic, "global")
	}
	d.sample("/run/zedagent", "EdgeNodeInfo", "global")
	d.sample("/run/zedagent", "EdgeNodeClusterConfig", "global")
	d.sample("/run/zedagent", "AppInstanceConfig", "a")
	d.sample("/run/zedkube", "ENClusterAppStatus", "a")
	d.sample("/persist/status/zedkube", "ClusterMembership", "global")
	d.sample("/persist/status/zedkube", "KubeNodeConditions", "global")
	d.sample("/persist/status/zedkube", "ClusterObject", "global")
	d.sample("/run/zedkube", "KubeLifecycle", "global")
	d.sample("/run/zedkube-cli", "NodeDrainRequest", "global")
	d.put("/run/.kube/k3s/k3s.yaml", "")
	o := d.read()
	for name, told := range map[string]overview.Source{
		"node": o.Node.Source, "cluster": o.Cluster.Source, "membership": o.Cluster.Membership.Source, "members": o.Cluster.Members.Source, "drain": o.Drain.Source,
		"lease": o.Lease.Source, "report": o.Report.Source, "nodes": o.Nodes.Source, "storage": o.Storage.Source, "conditions": o.Conditions.Source, "object": o.Cluster.Object.Source, "kubeconfig": o.API.Kubeconfig,
	} {
		if !told.Known() || strings.HasPrefix(told.File, d.root) || !strings.HasPrefix(told.File, "/") {
			t.Errorf("%s was not read: %+v", name, told)
		}
	}
	if !o.Agent.Runs || len(o.Apps.List) != 1 || len(o.Nodes.List) != 1 || len(o.Conditions.List) == 0 || o.Drain.Request == nil || len(o.Storage.Volumes) == 0 || o.Cluster.Object.Phase == "" || o.Change == nil || o.Conditions.CDI == "" {
		t.Errorf("a part is missing: %+v", o)
	}
	if len(o.Unreadable) > 0 {
		t.Errorf("unreadable: %v", o.Unreadable)
	}
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	status, _, err := overview.ReadFile[types.EdgeNodeClusterStatus](filepath.Join(d.root, "run/zedkube/EdgeNodeClusterStatus/global.json"))
	if err != nil || status.EncryptedClusterToken == "" || strings.Contains(string(raw), status.EncryptedClusterToken) {
		t.Errorf("the cluster's token is told, or the sample has none (%v)", err)
	}
}

func TestADeviceWithoutAnythingIsSaidToHaveADeadAgent(t *testing.T) {
	o := newDevice(t).read()
	if _, dead := find(o, "AgentDead"); !dead || o.API.Answers != types.ConditionFalse || len(o.Unreadable) > 0 {
		t.Errorf("problems %v, API %v, unreadable %v", o.Problems, o.API, o.Unreadable)
	}
}

// TestWhetherTheAPIServerAnswersIsKnownFromHowTheOwnNodeIsSeen is about sections that are stale, which is so
// where the API server is silent, and where it refuses the list of services.
func TestWhetherTheAPIServerAnswersIsKnownFromHowTheOwnNodeIsSeen(t *testing.T) {
	since := time.Now().Add(-time.Hour).UTC()
	earlier := since.Add(-time.Hour)
	for name, row := range map[string]struct {
		own      types.KubeNodeStatus // 0 for not published
		reason   string               // of a condition of the node
		services time.Time            // since when its section is stale
		want     types.ConditionStatus
		since    time.Time
	}{
		"the node is Ready":                       {own: types.KubeNodeReady, services: earlier, want: types.ConditionTrue},
		"the node is not Ready":                   {own: types.KubeNodeNotReady, services: earlier, want: types.ConditionTrue},
		"the API server is silent":                {own: types.KubeNodeNotReachable, services: earlier, want: types.ConditionFalse, since: since},
		"the nodes alone are not listed any more": {own: types.KubeNodeNotReachable, want: types.ConditionTrue},
		"an earlier agent does not say":           {services: earlier, want: types.ConditionFalse, since: earlier},
		"the kubeconfig cannot be used any more":  {own: types.KubeNodeReady, reason: "NoKubeconfig", services: earlier, want: types.ConditionFalse, since: earlier},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDevice(t)
			d.alive()
			d.put(types.PathKubeconfig, "x")
			put := func(file string, v any) {
				raw, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				d.put(file, string(raw))
			}
			const why = `the API server answers 403: services is forbidden`
			put("/run/zedkube/KubeReportHealth/global.json", types.KubeReportHealth{Reports: true, Sections: []types.ReportSection{
				{Name: types.SectionServices, Known: true, StaleSince: row.services, Why: why},
				{Name: types.SectionIngresses, StaleSince: since, Why: why},
				{Name: types.SectionLBPool, StaleSince: since, Why: why},
				{Name: types.SectionNodes, Known: true},
			}})
			put("/persist/status/zedkube/KubeNodeConditions/global.json", types.KubeNodeConditions{Conditions: []types.NodeStateCondition{{Type: types.StateVersion, Reason: row.reason}}})
			if row.own != 0 {
				put("/run/zedkube/ClusterNodeStatus/global.json", types.ClusterNodeStatus{Status: row.own, Since: since})
			}
			o := d.read()
			if o.API.Answers != row.want || !o.API.Since.Equal(row.since) {
				t.Errorf("%+v", o.API)
			}
			if _, is := find(o, "APISilent"); is != (row.want == types.ConditionFalse) {
				t.Errorf("problems are %+v", o.Problems)
			}
			if _, is := find(o, "ReportStale"); is != (row.want == types.ConditionTrue) {
				t.Errorf("problems are %+v", o.Problems)
			}
		})
	}
}

func TestBadFilesAreToldAndHoldNothingUp(t *testing.T) {
	d := newDevice(t)
	d.alive()
	d.put("/run/zedkube/NodeDrainProgress/global.json", `{"Phase":"Idle","Rea`)
	d.put("/run/zedkube/KubeLeaderElectInfo/global.json", `{"LeaderIdentity":7}`)
	d.put("/run/zedkube/KubeClusterInfo/global.json", strings.Repeat(" ", overview.MaxFile+1))
	d.put("/run/zedkube/KubeReportHealth/global.json", `{"Sections":[`+strings.Repeat("{},", overview.MaxObjects+1)+`{}]}`)
	d.put("/run/zedkube/ClusterMembers/global.json", "null")
	d.put("/run/zedkube/EdgeNodeClusterStatus/global.json", strings.Repeat(`{"Error":`, 20000))
	d.put("/run/zedagent/AppInstanceConfig/a.json/x", "a directory of that name")
	d.put("/run/zedkube/KubeStorageStatus", "a file where a directory should be")
	if err := os.MkdirAll(filepath.Join(d.root, "run/zedagent/EdgeNodeInfo"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(d.root, "run/zedagent/EdgeNodeInfo/global.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := d.read()
	told := map[string]string{}
	for _, u := range o.Unreadable {
		told[filepath.Base(filepath.Dir(u.File))] = u.Why
		if strings.Contains(u.Why, d.root) {
			t.Errorf("the reason names a path that is none of the device: %s", u.Why)
		}
	}
	for topic, part := range map[string]string{
		"NodeDrainProgress": "unexpected end of JSON input", "KubeLeaderElectInfo": "cannot unmarshal number", "KubeClusterInfo": "longer than",
		"KubeReportHealth": "larger than any agent writes", "ClusterMembers": "is empty", "EdgeNodeClusterStatus": "max depth", "AppInstanceConfig": "", "EdgeNodeInfo": "not a regular file",
	} {
		if why, ok := told[topic]; !ok || !strings.Contains(why, part) {
			t.Errorf("%s: told %q, want %q", topic, why, part)
		}
	}
	if _, ok := find(o, "Unreadable"); !ok || o.Drain.Progress != nil || o.Lease.Leader != "" {
		t.Errorf("a part of a bad file was taken: %+v", o.Drain)
	}
}

func TestADamagedPersistentFileIsReplacedByTheOneBefore(t *testing.T) {
	d := newDevice(t)
	d.put("/persist/status/zedkube/ClusterMembership/global.json", `{"Sta`)
	d.put("/persist/status/zedkube/ClusterMembership/global.json.bak", `{"State":"member"}`)
	o := d.read()
	if m := o.Cluster.Membership; m.State != types.MembershipMember || !strings.HasSuffix(m.File, ".bak") || len(o.Unreadable) != 1 {
		t.Errorf("membership %+v, unreadable %v", m, o.Unreadable)
	}
}

func TestTooManyFilesAreCounted(t *testing.T) {
	d := newDevice(t)
	for i := range overview.MaxKeys + 5 {
		d.put(fmt.Sprintf("/run/zedagent/AppInstanceConfig/%d.json", i), "{}")
	}
	o := d.read()
	if len(o.Apps.List) != overview.MaxKeys || len(o.Unreadable) != 1 {
		t.Errorf("%d applications, unreadable %v", len(o.Apps.List), o.Unreadable)
	}
}

func TestABundleIsReadAsOfItsMoment(t *testing.T) {
	d := newDevice(t)
	made := time.Now().Add(-30 * 24 * time.Hour).UTC().Truncate(time.Second)
	d.put("/zedkube-bundle.json", `{"made":"`+made.Format(time.RFC3339)+`"}`)
	d.put("/run/zedkube.pid", "1")
	d.put("/run/zedkube.touch", "")
	if err := os.Chtimes(filepath.Join(d.root, "run/zedkube.touch"), made, made.Add(-5*time.Second)); err != nil {
		t.Fatal(err)
	}
	o := d.read()
	if !o.Copied || !o.ReadAt.Equal(made) || !o.Agent.Runs || len(o.Disks) > 0 || len(o.Problems) > 0 {
		t.Errorf("copied %v at %v, agent %+v, disks %v, problems %v", o.Copied, o.ReadAt, o.Agent, o.Disks, o.Problems)
	}
}

func TestADeviceWithoutKubernetesSaysSo(t *testing.T) {
	d := newDevice(t)
	d.alive()
	d.put("/run/eve-hv-type", "kvm\n")
	o := d.read()
	o.Disks = nil // that of the machine that runs the test may be full
	if problems := health.Problems(o); o.Node.NoCluster == "" || len(problems) > 0 {
		t.Errorf("node %+v, problems %v", o.Node, problems)
	}
}

func TestAFifoInThePlaceOfADirectoryIsNotWaitedFor(t *testing.T) {
	d := newDevice(t)
	dir := filepath.Join(d.root, "run/zedagent/AppInstanceConfig")
	if err := errors.Join(os.MkdirAll(filepath.Dir(dir), 0o755), os.RemoveAll(dir), syscall.Mkfifo(dir, 0o600)); err != nil {
		t.Fatal(err)
	}
	if o := d.read(); len(o.Apps.List) > 0 {
		t.Errorf("applications %v", o.Apps.List)
	}
}

func TestPortsLeadToAnApplication(t *testing.T) {
	d := newDevice(t)
	d.put("/run/zedagent/AppInstanceConfig/a.json", `{"DisplayName":"cam","AppNetAdapterList":[{"ACLs":[
		{"Matches":[{"Type":"protocol","Value":"tcp"},{"Type":"lport","Value":"8022"}],"Actions":[{"PortMap":true,"TargetPort":22}]},
		{"Matches":[{"Type":"host","Value":"x"}],"Actions":[{"Drop":true}]}]}]}`)
	if got := d.read().Apps.List[0].Ports; len(got) != 1 || got[0] != "8022->22/tcp" {
		t.Errorf("ports %v", got)
	}
}

func TestSteadyKeepsWhatChangesByItselfOut(t *testing.T) {
	d := newDevice(t)
	d.alive()
	d.put("/run/zedkube/KubeLeaderElectInfo/global.json", `{"LeaderIdentity":"node-1"}`)
	first := d.read()
	later := health.Read(d.root, time.Now().Add(10*time.Second))
	d.put("/run/zedkube/KubeLeaderElectInfo/global.json", `{"LeaderIdentity":"node-2"}`)
	text := func(o overview.Overview) string {
		raw, err := json.Marshal(overview.Steady(o))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if text(first) != text(later) {
		t.Errorf("time alone is a change:\n%s\n%s", text(first), text(later))
	}
	if text(first) == text(d.read()) {
		t.Error("another leader is none")
	}
}

// FuzzRead: whatever lies in a file, Read comes back with something that can be
// told, and takes nothing of what it could not read whole.
func FuzzRead(f *testing.F) {
	single := []string{"EdgeNodeClusterStatus", "ClusterMembers", "NodeDrainProgress", "NodeDrainStatus", "KubeLeaderElectInfo", "KubeReportHealth", "KubeClusterInfo", "KubeStorageStatus", "KubeNodeConditions", "ClusterMembership", "AppInstanceConfig"}
	for i, topic := range single {
		raw, err := os.ReadFile("../../../types/testdata/" + topic + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), raw)
		f.Add(uint8(i), raw[:len(raw)/2])
	}
	f.Add(uint8(0), []byte(`{"Error":{"ErrorTime":"9999-12-31T23:59:59-12:00","Error":"\u001b[2J"}}`))
	f.Add(uint8(10), []byte(`{"AppNetAdapterList":[null,{"ACLs":[null,{"Actions":[null]}]}]}`))
	f.Fuzz(func(t *testing.T, which uint8, content []byte) {
		d := newDevice(t)
		topic := single[int(which)%len(single)]
		dir := "/run/zedkube"
		switch topic {
		case "ClusterMembership", "KubeNodeConditions":
			dir = "/persist/status/zedkube"
		case "AppInstanceConfig":
			dir = "/run/zedagent"
		}
		d.alive()
		d.put(filepath.Join(dir, topic, "global.json"), string(content))
		o := d.read()
		if _, err := json.Marshal(o); err != nil {
			t.Errorf("what was read cannot be told: %v", err)
		}
		for _, p := range o.Problems {
			if p.Evidence == "" || p.Anchor == "" {
				t.Errorf("a problem without words: %+v", p)
			}
		}
		overview.Steady(o)
	})
}

func TestWhetherWorkloadsAreDisabledIsKnownFromBefore(t *testing.T) {
	d := newDevice(t)
	d.sample("/persist/status/zedkube", "WorkloadsStatus", "global")
	if w := d.read().Workloads; !w.Off() || w.Reason != "new switch in hall 4" {
		t.Errorf("it is %+v", w)
	}
}

func TestAForceFileIsShownAsWhatTheAgentMakesOfIt(t *testing.T) {
	const file = "/tmp/force-NodeDrainStatus-global.json"
	for content, want := range map[string]overview.ForceFile{
		`garbage`:               {Ignored: "parse: invalid character 'g' looking for beginning of value"},
		`{"Status":"nonsense"}`: {Ignored: `status has to be 0 to 9 or a name such as COMPLETE, not "\"nonsense\""`},
		``:                      {Ignored: "it is empty"},
		`{"Status":"complete"}`: {Says: "COMPLETE"},
		`{"Status":1}`:          {Says: "NOTSUPPORTED"},
	} {
		d := newDevice(t)
		d.put(file, content)
		list := d.read().Drain.Forced
		if len(list) != 1 || list[0].File != file || list[0].Says != want.Says || list[0].Ignored != want.Ignored {
			t.Errorf("%q: %+v, want %+v", content, list, want)
		}
		found, _ := find(d.read(), "ForceFile")
		if ignored := strings.Contains(found.Evidence, "it is ignored"); ignored != (want.Ignored != "") || !ignored && !strings.Contains(found.Evidence, want.Says) {
			t.Errorf("%q: %s", content, found.Evidence)
		}
	}
	d := newDevice(t)
	d.put(file, `{"Status":9}`)
	info, err := os.Stat(filepath.Join(d.root, file))
	if err != nil {
		t.Fatal(err)
	}
	spent := fmt.Sprintf(`{"Journal":{"Spent":{%q:%q}}}`, filepath.Join(d.root, file), safefile.Mark(info))
	d.put("/run/zedkube/NodeDrainProgress/global.json", spent)
	if list := d.read().Drain.Forced; len(list) != 1 || !strings.Contains(list[0].Ignored, "has had its effect") {
		t.Errorf("%+v", list)
	}
}

func TestAnApplicationIsAsOldAsItsPodsSayAndNotAsItsFile(t *testing.T) {
	const id = "f3de8560-c29d-55cb-ab04-0fa6d2a3c419"
	d := newDevice(t)
	d.put("/run/zedagent/AppInstanceConfig/"+id+".json", `{"UUIDandVersion":{"UUID":"`+id+`","Version":"1"},"DisplayName":"cam","Activate":true}`)
	status := func(state int) {
		d.put("/run/zedkube/ENClusterAppStatus/"+id+".json", fmt.Sprintf(`{"AppUUID":%q,"AppKubeStatus":%d}`, id, state))
	}
	status(int(types.AppKubeRunning))
	d.put("/run/zedkube/AppRepairStatus/"+id+".json", `{"AppUUID":"`+id+`","Phase":"Well","Since":"2026-05-03T06:00:00Z","Node":"n2",
		"Run":{"Pod":"cam-0","Since":"2026-05-02T11:20:05Z","Restarts":3}}`)
	app := d.read().Apps.List[0]
	if want := time.Date(2026, 5, 2, 11, 20, 5, 0, time.UTC); !app.Since.Equal(want) || app.Restarts == nil || *app.Restarts != 3 {
		t.Errorf("since %s, restarts %v", app.Since, app.Restarts)
	}
	status(int(types.AppKubeAPIUnreachable)) // the agent saw that once, and cannot see it now
	if app := d.read().Apps.List[0]; time.Since(app.Since) > time.Minute || app.Restarts != nil {
		t.Errorf("since %s, restarts %v", app.Since, app.Restarts)
	}
}

func TestTheLeaderIsOneSinceItTookTheLease(t *testing.T) {
	d := newDevice(t)
	d.put("/run/zedkube/KubeLeaderElectInfo/global.json", `{"LeaderIdentity":"n2","LatestChange":"2026-05-03T06:00:00Z","LeaderSince":"2026-05-02T06:00:00Z"}`)
	if at := d.read().Lease.Since; at.Format(time.DateOnly) != "2026-05-02" {
		t.Errorf("since %s", at)
	}
}
