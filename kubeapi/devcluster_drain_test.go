//go:build linux

package kubeapi_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// drainNode is the node of the stories in this file.
const drainNode = 6

// kubectlPatches changes a node as a person with kubectl does.
func kubectlPatches(t *testing.T, c *devcluster.Cluster, node, patch string) *corev1.Node {
	t.Helper()
	n, err := c.Client().CoreV1().Nodes().Patch(t.Context(), node, ktypes.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-cordon"})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// row waits until the table of nodes shows what it should.
func row(t *testing.T, a *agent, node, what string, ok func(types.Node) bool) types.Node {
	t.Helper()
	var n types.Node
	eventually(t, what, 5*time.Second, func() bool { n, _ = a.nodes.Get(node); return ok(n) })
	return n
}

func drainsNode(t *testing.T, c *devcluster.Cluster) {
	a := newAgent(t, c, drainNode)
	for _, part := range []struct {
		name string
		play func(*testing.T, *devcluster.Cluster, *agent, string)
	}{
		{"a legacy cordon is undone once", legacyCordons},
		{"a cordon is dated anew, kept, and taken back", keptCordons},
		{"the cordon of disabled workloads outlasts a drain", cordonOfWorkloads},
		{"a cordon is whose it was last", whoseCordons},
		{"a cordon is ours after ten others have written", forgottenWriters},
		{"a cordon of a former release is taken over", earlierCordons},
		{"a cordon of a Node that is gone makes none", noNodeIsMade},
		{"a stamp is dated by the server", stamps},
		{"conditions are shown and spare others", conditions},
		{"events are counted", events},
		{"a fresh list is joined with leases", freshLists},
	} {
		t.Run(part.name, func(t *testing.T) { part.play(t, c, a, c.Nodes[drainNode].Name) })
	}
}

func stamps(t *testing.T, c *devcluster.Cluster, a *agent, node string) {
	stamp := types.AgentStamp{Version: "1", Masters: []uuid.UUID{uuid.New()}, Given: time.Now().UTC().Add(-time.Hour)}
	begin := time.Now().Add(-time.Second)
	if err := a.Stamp(t.Context(), node, stamp); err != nil {
		t.Fatal(err)
	}
	n := row(t, a, node, "it is dated", func(n types.Node) bool { return n.Agent != nil && n.Agent.Version == "1" })
	if n.StampedAt.Before(begin) || n.StampedAt.After(time.Now()) || !slices.Equal(n.Agent.Masters, stamp.Masters) {
		t.Errorf("stamped %v: %+v", n.StampedAt, n.Agent)
	}
	time.Sleep(1100 * time.Millisecond)
	if err := errors.Join(a.Stamp(t.Context(), node, stamp), a.Cordon(t.Context(), node, types.Cordon{}), a.Uncordon(t.Context(), node)); err != nil {
		t.Fatal(err)
	}
	if now := row(t, a, node, "it is seen", func(n types.Node) bool { return !n.Unschedulable }); !now.StampedAt.Equal(n.StampedAt) {
		t.Errorf("the same stamp, and a cordon, dated it %v, before %v", now.StampedAt, n.StampedAt)
	}
	stamp.Masters = nil
	if err := a.Stamp(t.Context(), node, stamp); err != nil {
		t.Fatal(err)
	}
	row(t, a, node, "the list is withdrawn", func(now types.Node) bool {
		return now.Agent.Masters == nil && now.StampedAt.After(n.StampedAt)
	})
	kubectlPatches(t, c, node, `{"metadata":{"annotations":{"zedkube.github.io/agent":"{\"version\":\"forged\"}"}}}`)
	row(t, a, node, "a person's stamp has no date", func(n types.Node) bool { return n.Agent.Version == "forged" && n.StampedAt.IsZero() })
}

func conditions(t *testing.T, c *devcluster.Cluster, a *agent, node string) {
	kind := func() map[corev1.NodeConditionType]corev1.NodeCondition {
		n := kubectlPatches(t, c, node, `{}`)
		found := map[corev1.NodeConditionType]corev1.NodeCondition{}
		for _, cond := range n.Status.Conditions {
			found[cond.Type] = cond
		}
		return found
	}
	before := kind()
	for _, d := range []types.DrainConditions{
		{InProgress: true, Reason: "Evicting", Message: "3 pods"}, {InProgress: true, Reason: "Evicting", Message: "2 pods"}, {Drained: true, Reason: "Empty"},
	} {
		if err := a.SetDrainConditions(t.Context(), node, d); err != nil {
			t.Fatal(err)
		}
		after := kind()
		if after["DrainInProgress"].Message != d.Message || after["Drained"].Reason != d.Reason || len(after) != len(before)+2 {
			t.Errorf("conditions are %+v", after)
		}
		if after[corev1.NodeReady].Status != corev1.ConditionTrue {
			t.Errorf("the node is %+v", after[corev1.NodeReady])
		}
	}
	row(t, a, node, "they are in the row", func(n types.Node) bool {
		return n.DrainInProgress == types.ConditionFalse && n.Drained == types.ConditionTrue
	})
}

func events(t *testing.T, c *devcluster.Cluster, a *agent, node string) {
	of := func(namespace, selector, reason string) (found []corev1.Event) {
		list, err := c.Client().CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			if e.Reason == reason {
				found = append(found, e)
			}
		}
		return found
	}
	long := strings.Repeat("ä", 2000)
	pod := types.Pod{Namespace: kubeapi.Namespace, Name: strings.Repeat("long-name.", 25) + "abc", UID: "u1"}
	for _, e := range []types.Event{
		{Node: node, Reason: "DrainWaits", Message: "for a friend", Warning: true},
		{Node: node, Reason: "DrainWaits", Message: "for a friend", Warning: true},
		{Node: node, Reason: "DrainWaits", Message: "for another"},
		{Node: node, Pod: pod, Reason: "DrainWaits", Message: long},
	} {
		if err := a.Event(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	// As kubectl describe node asks.
	found := of("", "involvedObject.kind=Node,involvedObject.name="+node+",involvedObject.uid="+node, "DrainWaits")
	slices.SortFunc(found, func(a, b corev1.Event) int { return strings.Compare(a.Message, b.Message) })
	if len(found) != 2 || found[0].Count != 2 || found[0].Type != "Warning" || found[1].Count != 1 || found[1].Type != "Normal" {
		t.Errorf("of the node: %+v", found)
	}
	if found := of(pod.Namespace, "involvedObject.uid=u1", "DrainWaits"); len(found) != 1 || !strings.HasPrefix(found[0].Message, "ää") {
		t.Errorf("of the pod: %+v", found)
	}
}

func freshLists(t *testing.T, c *devcluster.Cluster, a *agent, node string) {
	nodes, err := a.FreshNodes(t.Context())
	if err != nil || len(nodes) < len(c.Nodes) {
		t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	for _, n := range nodes {
		if n.Name == node && (time.Since(n.RenewedAt) > 20*time.Second || n.ResourceVersion == "" || n.Ready != types.ConditionTrue) {
			t.Errorf("node is %+v", n)
		}
	}
	defer func() { _ = c.SetNodeFault(drainNode, devcluster.None) }()
	for _, f := range []devcluster.Fault{devcluster.Status(503), devcluster.Reset(2000)} {
		if err := c.SetNodeFault(drainNode, f); err != nil {
			t.Fatal(err)
		}
		if nodes, err := a.FreshNodes(t.Context()); err == nil || nodes != nil {
			t.Errorf("under %v: %d nodes, %v", f, len(nodes), err)
		}
	}
}

// deletesNode comes after all others: a node more is seen by them.
func deletesNode(t *testing.T, c *devcluster.Cluster) {
	a := newAgent(t, c, drainNode)
	api := c.Client().CoreV1().Nodes()
	made, err := api.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "leaver"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	leaver := types.Node{Name: "leaver", UID: uuid.NewString()}
	if err := a.DeleteNode(t.Context(), leaver); !errors.Is(err, types.ErrConflict) {
		t.Errorf("a namesake: %v", err)
	}
	leaver.UID, leaver.ResourceVersion = string(made.UID), "1"
	if err := a.DeleteNode(t.Context(), leaver); !errors.Is(err, types.ErrConflict) {
		t.Errorf("one that has changed since: %v", err)
	}
	eventually(t, "it is deleted as it was seen last", 20*time.Second, func() bool { // others write on it
		now, err := api.Get(t.Context(), "leaver", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		leaver.ResourceVersion = now.ResourceVersion
		err = a.DeleteNode(t.Context(), leaver)
		if err != nil && !errors.Is(err, types.ErrConflict) {
			t.Fatal(err)
		}
		return err == nil
	})
	if err := a.DeleteNode(t.Context(), leaver); err != nil {
		t.Errorf("deleting what is gone: %v", err)
	}
	row(t, a, "leaver", "it is gone", func(n types.Node) bool { return n.Name == "" })
}
