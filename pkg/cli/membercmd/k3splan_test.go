package membercmd

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestAPlanOfK3sSaysWhatTheRulesAndThisNodeSay(t *testing.T) {
	server := func(name, version string) types.Node {
		return types.Node{Name: name, KubeletVersion: version, ControlPlane: true, K3s: &types.K3sStamp{Joined: name == "n1"}}
	}
	list := func(context.Context) ([]types.Node, error) {
		return []types.Node{server("n1", "v1.33.3+k3s1"), server("n2", "v1.33.3+k3s1"), {Name: "w1", KubeletVersion: "v1.33.3+k3s1"}}, nil
	}
	for name, row := range map[string]struct {
		version string
		list    func(context.Context) ([]types.Node, error)
		change  func(*testing.T, k3sLook)
		refused types.K3sRefusal
		words   []string
		not     string
	}{
		"the setting": {words: []string{
			"to          v1.34.2+k3s1", "verdict     allowed, minor: one node after the other is drained", "commit      node n1, the last server",
			"1 n2 v1.33.3+k3s1 next", "2 n1 v1.33.3+k3s1 later", "3 w1 v1.33.3+k3s1 later",
			"now         Waits: Node n2 is not Ready.", "lacks NodesReady: Node n2 is not Ready. (zedkube k3s release does without)", "holds Quorum", "lacks NotHeld: Hold.",
		}},
		"another version":            {version: "v1.33.9+k3s1", words: []string{"allowed, patch: k3s restarts"}, not: "NodesReady"},
		"the version that runs":      {version: "v1.33.3+k3s1", words: []string{"allowed, nothing is to change"}, not: "commit "},
		"a version far away":         {version: "v1.36.0+k3s1", refused: types.K3sSkipsMinors, words: []string{"refused, SkipsMinors", "update to v1.34, then v1.35 first"}, not: "commit "},
		"an older version":           {version: "v1.33.2+k3s1", refused: types.K3sDowngrade, words: []string{"cannot be downgraded"}},
		"no version":                 {version: "latest\x1b[31m", refused: types.K3sNoVersion, words: []string{"it is not a version"}, not: "\x1b"},
		"nodes of several versions":  {version: "v1.33.9+k3s1", list: func(context.Context) ([]types.Node, error) { return []types.Node{server("n2", "v1.33.4+k3s1")}, nil }, refused: types.K3sMixed, words: []string{"n2 runs v1.33.4+k3s1"}},
		"the API server is silent":   {version: "v1.33.9+k3s1", list: func(context.Context) ([]types.Node, error) { return nil, types.ErrNoAPI }, words: []string{"allowed", "unknown: the nodes of the cluster"}},
		"something here is in order": {version: "v1.33.9+k3s1", words: []string{"allowed"}, not: "against"},
		"something here is against it": {version: "v1.34.2+k3s1", change: func(t *testing.T, l k3sLook) {
			write(t, l.PersistentFile(device.Self, "KubeNodeConditions"), types.KubeNodeConditions{KubeVirt: "v1.6.0", Longhorn: "v1.9.1"})
		}, words: []string{"against v1.34.2+k3s1: kubevirt v1.6.0 supports"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := k3sDevice(t)
			write(t, l.TopicFile(device.Self, "KubeLifecycle"), types.KubeLifecycle{
				Phase: types.LifecycleWaits, Reason: "Node n2 is not Ready.", To: "v1.34.2+k3s1", Preconditions: []types.KubeLifecyclePrecondition{
					{Name: "NodesReady", Release: true, Reason: "Node n2 is not Ready."}, {Name: "Quorum", Holds: true}, {Name: "NotHeld", Reason: "Hold."},
				},
			})
			if row.change != nil {
				row.change(t, l)
			}
			if row.list == nil {
				row.list = list
			}
			l.version = row.version
			p, err := l.plan(t.Context(), row.list, time.Now())
			if want := row.version != "" && strings.HasSuffix(name, "silent"); (err != nil) != want {
				t.Errorf("%v", err)
			}
			got := strings.Join(terminal.Draw(200, false, p.put), "\n")
			for _, want := range row.words {
				if !strings.Contains(got, want) {
					t.Errorf("there is no %q in\n%s", want, got)
				}
			}
			if p.Refused != row.refused || row.not != "" && strings.Contains(got, row.not) {
				t.Errorf("refused %q, and there is %q in\n%s", p.Refused, row.not, got)
			}
		})
	}
}

func TestWithoutASettingThereIsNoPlanOfK3s(t *testing.T) {
	l := k3sDevice(t)
	write(t, l.TopicFile(device.Self, "K3sVersionStatus"), types.K3sVersionStatus{Running: "v1.33.3+k3s1"})
	if p, err := l.plan(t.Context(), func(context.Context) ([]types.Node, error) { return nil, nil }, time.Now()); p.To != "" || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestAPlanOfK3sWarnsOfNodesOfKubeEdge(t *testing.T) {
	p := k3sPlan{Edge: []string{"edge-1 with kubelet v1.30.7-kubeedge-v1.20.0"}}
	got := strings.Join(terminal.Draw(200, false, p.put), "\n")
	if !strings.Contains(got, "edge-1 with kubelet v1.30.7-kubeedge-v1.20.0: this does not change them") {
		t.Error(got)
	}
	l := k3sDevice(t)
	if err := os.MkdirAll(filepath.Dir(l.Socket), 0o755); err != nil {
		t.Fatal(err)
	}
	agent, err := net.Listen("unix", l.Socket)
	if err != nil {
		t.Fatal(err)
	}
	var members, edges pubsub.Table[types.Node]
	if err := edges.Publish("edge-1", types.Node{Name: "edge-1", KubeletVersion: "v1.30.7-kubeedge-v1.20.0"}); err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: agent, Config: &http.Server{ReadHeaderTimeout: time.Minute, Handler: overview.Live{
		Root: l.Root, Node: &members, Edge: &edges, EdgeMetrics: &pubsub.Table[types.KubeNodeMetrics]{}, Info: &pubsub.Table[types.EdgeNodeInfo]{}, API: &pubsub.Table[types.APIStatus]{},
	}}}
	s.Start()
	t.Cleanup(s.Close)
	l.version = "v1.33.9+k3s1"
	got2, err := l.plan(t.Context(), func(context.Context) ([]types.Node, error) {
		return []types.Node{{Name: "n1", KubeletVersion: "v1.33.3+k3s1", ControlPlane: true}}, nil
	}, time.Now())
	if err != nil || got2.Refused != "" || len(got2.Nodes) != 1 || !slices.Equal(got2.Edge, p.Edge) {
		t.Errorf("%+v, %v", got2, err)
	}
}
