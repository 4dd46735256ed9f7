package joiner_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/joiner"
	"github.com/zedkube/zedkube/types"
)

func TestJoinerGetsTheRightAnswerInEachState(t *testing.T) {
	silent := func(w *world) { w.api = &types.APIStatus{SilentSince: time.Now().Add(-time.Minute), Reason: "refused"} }
	unlabelled := func(w *world) { w.node.ControlPlane, w.node.Etcd = false, false }
	worker := func(w *world) { w.status.IsWorkerNode = true }
	rows := []struct {
		name    string
		change  []func(*world)
		wants   uuid.UUID // the joiner's cluster; nil for plant
		verdict joiner.Verdict
		reason  string
		phase   string
	}{
		{name: "a working server", verdict: joiner.Join, reason: "Ready", phase: "Provisioned"},
		{name: "a working server of an older k3s", change: []func(*world){func(w *world) { w.node.ControlPlane, w.node.Master = false, true }}, verdict: joiner.Join, reason: "Ready", phase: "Provisioned"},
		{name: "a server whose kubelet is silent", change: []func(*world){func(w *world) { w.node.Ready = types.ConditionUnknown }}, verdict: joiner.Join, reason: "Ready", phase: "Provisioned"},
		{name: "a server whose Node is not ready", change: []func(*world){func(w *world) { w.node.Ready = types.ConditionFalse }}, verdict: joiner.Join, reason: "Ready", phase: "Provisioned"},
		{name: "a server whose etcd member only learns", change: []func(*world){func(w *world) { w.node.EtcdVoter = types.ConditionFalse }}, verdict: joiner.Join, reason: "Ready", phase: "Provisioned"},
		{name: "a worker by its configuration that is a server", change: []func(*world){worker}, verdict: joiner.Join, reason: "Ready", phase: "Provisioned"},
		{name: "another cluster", wants: depot, verdict: joiner.Elsewhere, reason: "OtherCluster", phase: "Provisioned"},
		{name: "another cluster, not ready itself", change: []func(*world){silent}, wants: depot, verdict: joiner.Elsewhere, reason: "OtherCluster", phase: "Unknown"},
		{name: "another cluster's worker", change: []func(*world){worker, unlabelled}, wants: depot, verdict: joiner.Elsewhere, reason: "OtherCluster", phase: "Provisioned"},
		{name: "no cluster", change: []func(*world){func(w *world) { w.status.ClusterID.UUID = uuid.Nil }}, verdict: joiner.Wait, reason: "NoCluster", phase: "Provisioning"},
		{name: "a worker", change: []func(*world){worker, unlabelled}, verdict: joiner.Elsewhere, reason: "Worker", phase: "Provisioned"},
		{name: "a worker that is not ready", change: []func(*world){worker, unlabelled, func(w *world) { w.node.Ready = types.ConditionFalse }}, verdict: joiner.Elsewhere, reason: "Worker", phase: "Provisioning"},
		{name: "a worker whose API server is silent", change: []func(*world){worker, unlabelled, silent}, verdict: joiner.Elsewhere, reason: "Worker", phase: "Unknown"},
		{name: "a worker without a Node", change: []func(*world){worker, func(w *world) { w.node = nil }}, verdict: joiner.Elsewhere, reason: "Worker", phase: "Provisioning"},
		{name: "another cluster asked for where there is none", change: []func(*world){func(w *world) { w.status.ClusterID.UUID = uuid.Nil }}, wants: depot, verdict: joiner.Wait, reason: "NoCluster", phase: "Provisioning"},
		{name: "no cluster and a silent API server", change: []func(*world){silent, func(w *world) { w.status.ClusterID.UUID = uuid.Nil }}, verdict: joiner.Wait, reason: "NoCluster", phase: "Unknown"},
		{name: "no kubeconfig", change: []func(*world){silent, func(w *world) { w.api.NoKubeconfig = true }}, verdict: joiner.Wait, reason: "NoKubeconfig", phase: "Provisioning"},
		{name: "an agent just started", change: []func(*world){func(w *world) { w.api = nil }}, verdict: joiner.Wait, reason: "APIUnknown", phase: "Unknown"},
		{name: "a silent API server", change: []func(*world){silent}, verdict: joiner.Wait, reason: "APISilent", phase: "Unknown"},
		{name: "lists not read yet", change: []func(*world){func(w *world) { w.api.Synced = false }}, verdict: joiner.Wait, reason: "TablesNotWhole", phase: "Unknown"},
		{name: "no EdgeNodeInfo", change: []func(*world){func(w *world) { w.info = nil }}, verdict: joiner.Wait, reason: "DeviceUnknown", phase: "Unknown"},
		{name: "no Node", change: []func(*world){func(w *world) { w.node = nil }}, verdict: joiner.Wait, reason: "NodeUnknown", phase: "Provisioning"},
		{name: "a Node of another device", change: []func(*world){func(w *world) { w.node.UUID = depot.String() }}, verdict: joiner.Wait, reason: "NodeUnknown", phase: "Provisioning"},
		{name: "no label of the control plane", change: []func(*world){func(w *world) { w.node.ControlPlane = false }}, verdict: joiner.Wait, reason: "NoControlPlane", phase: "Provisioning"},
		{name: "no label at all", change: []func(*world){unlabelled}, verdict: joiner.Wait, reason: "NoControlPlane", phase: "Provisioning"},
		{name: "no label of etcd", change: []func(*world){func(w *world) { w.node.Etcd = false }}, verdict: joiner.Wait, reason: "NoEtcd", phase: "Provisioning"},
	}
	n := boot(t, seed)
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			w := working(seed)
			for _, change := range r.change {
				change(&w)
			}
			n.turns(w)
			j := n.joiner(plant)
			if r.wants != uuid.Nil {
				j.Cluster = r.wants
			}
			if got := j.Ask(t.Context()); got.Verdict != r.verdict || got.Why == "" || (r.verdict != joiner.Join) != (got.Told != nil) {
				t.Errorf("got %+v, want %s", got, r.verdict)
			}
			told, err := j.Explain(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if told.Reason != r.reason || told.Status.Phase != r.phase {
				t.Errorf("got %s %s, want %s %s", told.Reason, told.Status.Phase, r.reason, r.phase)
			}
			if r.reason == "APISilent" && !strings.Contains(told.Why, w.api.SilentSince.UTC().Format(time.RFC3339)) {
				t.Errorf("got %q, want it to say since when", told.Why)
			}
			if want := map[bool]string{true: "press-line-2"}[w.info != nil]; told.Node != want {
				t.Errorf("got Node %q, want %q", told.Node, want)
			}
			plausible(t, n, told)
			readyAgrees(t, n, told)
		})
	}
}

// plausible compares what a node says of itself with its plain answer and with
// the rules of docs/wire.md, "Status for people".
func plausible(t *testing.T, n *node, told joiner.Explanation) {
	t.Helper()
	plain := fetch(t, http.MethodGet, "http://"+n.at()+"/status", "")
	named, ok := strings.CutPrefix(plain.body, "cluster:")
	if plain.code != http.StatusOK || ok != (named != "") || !ok && plain.body != "" {
		t.Errorf("the plain answer is %d %q", plain.code, plain.body)
	}
	if told.Cluster != named || (told.State == "ready") != (named != "" && told.Reason == "Ready") || told.State != "ready" && told.State != "waiting" {
		t.Errorf("the plain answer is %q, but the explanation %s of cluster %q", plain.body, told.State, told.Cluster)
	}
	if told.Since.IsZero() || told.Since.Location() != time.UTC || !strings.HasSuffix(told.Why, ".") {
		t.Errorf("got since %s, why %q", told.Since, told.Why)
	}
	var kinds []string
	for _, c := range told.Status.Conditions {
		kinds = append(kinds, c.Type)
		if !slices.Contains([]string{"True", "False", "Unknown"}, c.Status) || c.Reason == "" || c.Message == "" || c.LastTransitionTime.IsZero() {
			t.Errorf("got condition %+v", c)
		}
	}
	slices.Sort(kinds)
	if !slices.Equal(kinds, []string{"ClusterReady", "ControlPlaneReady", "NodeReady"}) {
		t.Errorf("got conditions %q", kinds)
	}
	blind := told.Status.Phase == "Unknown" && told.Reason != "Worker" // a worker is no server, seen or not
	if is := told.Condition("ClusterReady").Status; (is == "True") != (named != "") || (is == "Unknown") != blind {
		t.Errorf("ClusterReady is %s in phase %s, and the plain answer %q", is, told.Status.Phase, plain.body)
	}
	unseen := told.Status.KubernetesVersion == "" // the version is the own Node's
	for _, kind := range []string{"NodeReady", "ControlPlaneReady"} {
		if c := told.Condition(kind); unseen && c.Status != "Unknown" {
			t.Errorf("the own Node is not seen, but got %+v", c)
		}
	}
}

// readyAgrees compares /readyz with what the node told.
func readyAgrees(t *testing.T, n *node, told joiner.Explanation) {
	t.Helper()
	got := fetch(t, http.MethodGet, "http://"+n.at()+"/readyz", "")
	if told.Cluster != "" {
		if got.code != http.StatusOK || strings.TrimSpace(got.body) != "ok" {
			t.Errorf("/readyz is %d %q on a server that is ready", got.code, got.body)
		}
		return
	}
	reason, why, ok := strings.Cut(strings.TrimSpace(got.body), ": ")
	if got.code != http.StatusServiceUnavailable || !ok || strings.Contains(why, "\n") {
		t.Errorf("/readyz is %d %q on a server that is not ready", got.code, got.body)
	}
	if told.Reason != "OtherCluster" && (reason != told.Reason || why != told.Why) {
		t.Errorf("/readyz says %q, the explanation %q: %q", got.body, told.Reason, told.Why)
	}
}

func TestConditionsSayMoreThanTheReason(t *testing.T) {
	n := boot(t, seed)
	n.turns(working(seed))
	for _, r := range []struct {
		name, kind, status, reason string
		change                     func(*types.Node)
	}{
		{"all is well", "NodeReady", "True", "Ready", func(*types.Node) {}},
		{"the Node is not ready", "NodeReady", "False", "NodeNotReady", func(n *types.Node) { n.Ready = types.ConditionFalse }},
		{"the kubelet does not report", "NodeReady", "Unknown", "NodeUnknown", func(n *types.Node) { n.Ready = types.ConditionUnknown }},
		{"etcd only learns", "ControlPlaneReady", "False", "EtcdLearner", func(n *types.Node) { n.EtcdVoter = types.ConditionFalse }},
		{"the plain reason of a server", "ClusterReady", "True", "Ready", func(*types.Node) {}},
		{"etcd is not there", "ControlPlaneReady", "False", "NoEtcd", func(n *types.Node) { n.Etcd = false }},
	} {
		t.Run(r.name, func(t *testing.T) {
			w := working(seed)
			w.node.ReadySince = time.Now().Add(-time.Hour) // long before the agent started
			r.change(w.node)
			n.turns(w)
			told, err := n.joiner(plant).Explain(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c := told.Condition(r.kind)
			if c.Status != r.status || c.Reason != r.reason {
				t.Errorf("got %+v, want %s for %s", c, r.status, r.reason)
			}
			if r.kind == "NodeReady" && !c.LastTransitionTime.Equal(w.node.ReadySince) {
				t.Errorf("NodeReady changed at %s, want what the Node tells: %s", c.LastTransitionTime, w.node.ReadySince)
			}
			if told.Node != w.node.Name || told.Status.KubernetesVersion != w.node.KubeletVersion {
				t.Errorf("got Node %q of version %q", told.Node, told.Status.KubernetesVersion)
			}
		})
	}
}

func TestSinceFollowsTheStateAndNotTheReason(t *testing.T) {
	before := time.Now()
	n := boot(t, seed)
	since := func(change func(*world)) time.Time {
		w := working(seed)
		change(&w)
		n.turns(w)
		told, err := n.joiner(plant).Explain(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return told.Since
	}
	first := since(func(w *world) { w.node = nil })
	second := since(func(w *world) { w.node.Etcd = false })
	ready := since(func(*world) {})
	if !first.Equal(second) || first.Before(before) || !ready.After(second) {
		t.Errorf("waiting since %s, with another reason since %s, ready since %s", first, second, ready)
	}
}

// answer is what one request got.
type answer struct {
	code int
	head http.Header
	body string
}

// fetch asks once, with one Accept header unless accept is "".
func fetch(t *testing.T, method, url, accept string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	asker := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := asker.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(body)}
}
