package supportcmd

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/info"
	"google.golang.org/protobuf/proto"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

var exportDevice = uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")

// exportStage is a device with a kubeconfig, whose API server says what ask says.
func exportStage(t *testing.T, ask func() ([]types.Node, error)) *exporter {
	t.Helper()
	p := device.Options{Root: t.TempDir()}.Paths()
	cmdtest.Lay(t, p.TopicFile("zedagent", "EdgeNodeInfo"), `{"DeviceName":"Node_1","DeviceID":"`+exportDevice.String()+`"}`)
	cmdtest.Lay(t, p.PersistentFile(device.Self, "ClusterMembership"), `{"State":"never"}`)
	cmdtest.Lay(t, p.Kubeconfig, "")
	e := newExporter(p, time.Now())
	e.ask = func(context.Context, device.Paths) ([]types.Node, error) { return ask() }
	return e
}

func TestOwnNodeIsExportedAsTheClusterSeesIt(t *testing.T) {
	node := func(id uuid.UUID, ready types.ConditionStatus) []types.Node {
		return []types.Node{{Name: "other", UUID: uuid.NameSpaceOID.String(), Ready: types.ConditionTrue}, {Name: "node-1", UUID: id.String(), Ready: ready}}
	}
	for name, c := range map[string]struct {
		nodes []types.Node
		err   error
		want  info.ZInfoClusterNodeStatus
		says  string
	}{
		"Ready":     {nodes: node(exportDevice, types.ConditionTrue), want: info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_READY},
		"not Ready": {nodes: node(exportDevice, types.ConditionFalse), want: info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_NOTREADY},
		"not a node of the cluster": {
			nodes: node(uuid.NameSpaceURL, types.ConditionTrue), want: info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_NOTREADY, says: "has no node for this device",
		},
		"the API server is silent": {
			err: device.APIError(types.ErrNoAnswer), want: info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_DOWN, says: "cannot be reached",
		},
		"the API server refuses": {err: device.APIError(types.ErrRefused), says: "the cluster cannot be queried"},
		"an error of ours":       {err: errors.New("no memory"), says: "the cluster cannot be queried"},
	} {
		x := exportStage(t, func() ([]types.Node, error) { return c.nodes, c.err }).node(t.Context())
		got := info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_UNSPECIFIED
		if m, ok := x.message.(*info.ZInfoMsg); ok {
			got = m.GetClusterNode().GetNodeStatus()
		}
		said := strings.Join(append(slices.Concat(x.notes, x.doubts), x.missing), "\n")
		if got != c.want || !strings.Contains(said, c.says) || (c.says == "") != (said == "") {
			t.Errorf("%s: got %v, said %q", name, got, said)
		}
	}
}

func TestBinaryIsTheSerializedMessage(t *testing.T) {
	e := exportStage(t, func() ([]types.Node, error) { return nil, device.APIError(types.ErrNoAnswer) })
	var out, said bytes.Buffer
	if err := export(t.Context(), e, []string{messageNode}, true, &terminal.Outputs{}, &out, &said); err != nil {
		t.Fatal(err)
	}
	var m info.ZInfoMsg
	if err := proto.Unmarshal(out.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	if m.GetDevId() != exportDevice.String() || m.GetClusterNode().GetNodeStatus() != info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_DOWN {
		t.Errorf("got %v", &m)
	}
	if !m.GetAtTimeStamp().AsTime().Equal(e.now) {
		t.Errorf("it is as of %s, not of now", m.GetAtTimeStamp().AsTime())
	}
}

func TestWithoutNamesWhatNeedNotBeThereIsNoFault(t *testing.T) {
	e := exportStage(t, func() ([]types.Node, error) {
		return []types.Node{{Name: "node-1", UUID: exportDevice.String(), Ready: types.ConditionTrue}}, nil
	})
	e.agent = device.AgentLife{Runs: true}
	cmdtest.Lay(t, e.paths.TopicFile(device.Self, "KubeLeaderElectInfo"), `{"LeaderIdentity":"node-2"}`)
	var out, said bytes.Buffer
	if err := export(t.Context(), e, nil, false, &terminal.Outputs{}, &out, &said); err != nil {
		t.Errorf("%v; said\n%s", err, said.String())
	}
	if n := strings.Count(out.String(), `"name":`); n != 1 {
		t.Errorf("printed\n%s", out.String())
	}
	for _, name := range []string{messageCluster, messageMetrics, messageUpdate, messageApp} {
		if !strings.Contains(said.String(), name+": ") {
			t.Errorf("nothing is said of %s:\n%s", name, said.String())
		}
		if err := export(t.Context(), e, []string{name}, false, &terminal.Outputs{}, &out, &said); terminal.ExitCode(err) != terminal.ExitNotPublished {
			t.Errorf("%s asked for by name: %v", name, err)
		}
	}
}

func TestReportIsNeverDatedLaterThanItWasTrue(t *testing.T) {
	e := exportStage(t, nil)
	written, since := e.now.Add(-2*time.Hour), e.now.Add(-time.Hour)
	report := e.paths.TopicFile(device.Self, "KubeClusterInfo")
	cmdtest.Lay(t, report, `{"Nodes":[{"Name":"n1"}]}`)
	if err := os.Chtimes(report, written, written); err != nil {
		t.Fatal(err)
	}
	health := e.paths.TopicFile(device.Self, "KubeReportHealth")
	for name, c := range map[string]struct {
		health   string
		agent    device.AgentLife
		want     time.Time
		doubtful bool
	}{
		"up to date":                    {`{"Reports":true}`, device.AgentLife{Runs: true}, e.now, false},
		"of an agent that is gone":      {`{"Reports":true}`, device.AgentLife{}, written, true},
		"of one that went later":        {`{"Reports":true}`, device.AgentLife{Seen: since}, since, true},
		"no report any more":            {`{"Reports":false}`, device.AgentLife{Runs: true}, written, true},
		"its health cannot be read":     {`{"Reports":`, device.AgentLife{Runs: true}, written, true},
		"a section is stale":            {`{"Reports":true,"Sections":[{"Name":"Nodes","Known":true,"StaleSince":"` + since.Format(time.RFC3339Nano) + `"}]}`, device.AgentLife{Runs: true}, since, true},
		"a section is cut":              {`{"Reports":true,"Sections":[{"Name":"Nodes","Known":true,"Truncated":1}]}`, device.AgentLife{Runs: true}, e.now, true},
		"a field is left out":           {`{"Reports":true,"Sections":[{"Name":"Nodes","Known":true,"Without":"Conditions"}]}`, device.AgentLife{Runs: true}, e.now, true},
		"a section of another is stale": {`{"Reports":true,"Sections":[{"Name":"UserService"}]}`, device.AgentLife{Runs: true}, e.now, false},
	} {
		cmdtest.Lay(t, health, c.health)
		e.agent = c.agent
		x := e.cluster()
		at := x.message.(*info.ZInfoMsg).GetAtTimeStamp().AsTime()
		if !at.Equal(c.want) || (len(x.doubts) > 0) != c.doubtful {
			t.Errorf("%s: as of %s ago, doubts %q", name, e.now.Sub(at), x.doubts)
		}
	}
}

func TestReportOfThreeFullFieldsIsExported(t *testing.T) {
	e := exportStage(t, nil)
	full := `[{"Name":"` + strings.Repeat("n", 1_039_900) + `"}]`
	cmdtest.Lay(t, e.paths.TopicFile(device.Self, "KubeClusterInfo"), `{"Nodes":[{"Name":"`+strings.Repeat("n", 47_900)+`"}],"pubsub-large-AppPods":`+full+
		`,"pubsub-large-AppVMIs":`+full+`,"pubsub-large-Storage":{"Volumes":`+full+`}}`)
	if x := e.cluster(); x.message == nil {
		t.Error(x.missing)
	}
	if files, _ := filepath.Glob(filepath.Join(e.paths.RunDir(), device.Self, "*")); len(files) != 1 {
		t.Errorf("it wrote %s", files)
	}
}
