package nodes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// Annotations and conditions of docs/wire.md, "Nodes".
const (
	CordonAnnotation = "zedkube.github.io/cordon"
	KeepAnnotation   = "zedkube.github.io/keep-cordon"
	AgentAnnotation  = "zedkube.github.io/agent"

	FenceAnnotation   = "zedkube.github.io/fence"
	WitnessAnnotation = "zedkube.github.io/witness"

	// What k3s' flannel says of itself.
	flannelAnnotation = "flannel.alpha.coreos.com/backend-type"

	conditionEtcdVoter       corev1.NodeConditionType = "EtcdIsVoter"
	ConditionDrainInProgress corev1.NodeConditionType = "DrainInProgress"
	ConditionDrained         corev1.NodeConditionType = "Drained"
)

// AgentManager is the field manager of the stamp and nothing else, so that the
// server dates it.
const AgentManager = "zedkube-agent"

// NodeOf is the row of a Node. It leaves out the version: kubelets write on
// their Nodes every few minutes, and that is no news.
func NodeOf(n *corev1.Node) types.Node {
	_, master := n.Labels[types.LabelMaster]
	_, etcd := n.Labels[types.LabelEtcd]
	row := types.Node{
		Name:           n.Name,
		UID:            string(n.UID),
		UUID:           strings.ToLower(n.Labels[access.LabelNodeUUID]), // as EVE writes it elsewhere
		Created:        n.CreationTimestamp.Time,
		Unschedulable:  n.Spec.Unschedulable,
		CordonedBy:     ourCordon(n),
		ControlPlane:   n.Labels[types.LabelControlPlane] == "true",
		Master:         master,
		Etcd:           etcd,
		TieBreaker:     n.Labels[access.LabelTieBreaker] == "true",
		CordonKept:     n.Annotations[KeepAnnotation] == "true",
		TaintedAt:      taintedAt(n),
		BootID:         n.Status.NodeInfo.BootID,
		KubeletVersion: n.Status.NodeInfo.KubeletVersion,
		InternalIP:     address(n, corev1.NodeInternalIP),
		ExternalIP:     address(n, corev1.NodeExternalIP),
		KubeletPort:    int(n.Status.DaemonEndpoints.KubeletEndpoint.Port),
		Cores:          int(n.Status.Allocatable.Cpu().Value()),
		Memory:         n.Status.Allocatable.Memory().Value(),
	}
	if n.DeletionTimestamp != nil {
		row.Deleted, row.Finalizers = n.DeletionTimestamp.Time, n.Finalizers
	}
	row.Agent, row.StampedAt = stampOf(n)
	row.OutOfService, row.Fence, row.FenceLeft = fenceOf(n)
	row.Witness = witnessOf(n)
	row.Designated = designatedOf(n)
	if stamp, ok := access.Annotated[types.K3sStamp](n.Annotations, K3sAnnotation); ok {
		row.K3s = &stamp
	}
	row.Writers = writersOf(n)
	row.CNI = cniOf(n)
	for _, c := range n.Status.Conditions {
		status := types.ConditionStatus(c.Status)
		switch c.Type {
		case corev1.NodeReady:
			row.Ready, row.ReadySince = status, c.LastTransitionTime.Time
		case conditionEtcdVoter:
			row.EtcdVoter = status
		case ConditionDrainInProgress:
			row.DrainInProgress, row.DrainReason = status, c.Reason
		case ConditionDrained:
			row.Drained = status
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable:
			row.Conditions = append(row.Conditions, types.NodeCondition{Type: string(c.Type), Status: status, Since: c.LastTransitionTime.Time})
		}
	}
	slices.SortFunc(row.Conditions, func(a, b types.NodeCondition) int { return cmp.Compare(a.Type, b.Type) })
	return row
}

// cniOf is what connects the node's pods, "" where it does not say.
func cniOf(n *corev1.Node) string {
	if backend := n.Annotations[flannelAnnotation]; backend != "" {
		return "flannel " + backend
	}
	return ""
}

// address is the first of its kind; a dual-stack node has two.
func address(n *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return ""
}

// taintedAt is when Kubernetes noticed the cordon, zero if it has not or does
// not say.
func taintedAt(n *corev1.Node) time.Time {
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeUnschedulable && t.TimeAdded != nil {
			return t.TimeAdded.Time
		}
	}
	return time.Time{}
}

// stampOf is the stamp of the agent there. One that cannot be read is a stamp
// all the same, without content. It is dated only if the agent wrote it: a
// stamp that a person has changed is as old as can be.
func stampOf(n *corev1.Node) (*types.AgentStamp, time.Time) {
	text, ok := n.Annotations[AgentAnnotation]
	if !ok {
		return nil, time.Time{}
	}
	var stamp types.AgentStamp
	if json.Unmarshal([]byte(text), &stamp) != nil {
		stamp = types.AgentStamp{} // what was read of it before the fault
	}
	for _, m := range n.ManagedFields {
		_, owned := access.FieldsOf(m).Metadata.Annotations["f:"+AgentAnnotation]
		if owned && m.Manager == AgentManager && m.Time != nil {
			return &stamp, m.Time.Time
		}
	}
	return &stamp, time.Time{}
}

// ourCordon is what a Cordon wrote on the Node, nil if it is not cordoned or
// somebody else has a part in it.
func ourCordon(n *corev1.Node) *types.Cordon {
	var c types.Cordon
	text, ok := n.Annotations[CordonAnnotation]
	if !ok || !n.Spec.Unschedulable || !ownsCordon(n.ManagedFields) {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil || c.By != cordonedBy {
		return nil
	}
	return &c
}

// forgottenManager is whom the API server names for those whose updates it has
// forgotten: it remembers ten of them.
const forgottenManager = "ancient-changes"

// ownsCordon reports that the present value of spec.unschedulable is the one a
// Cordon wrote, and wanted by nobody else. kubectl uncordon leaves the
// annotation of ours where it is, and a cordon that somebody makes afterwards
// is theirs in spite of it. To set what is set already makes nobody an owner,
// so an update that is forgotten beside ours was one of ours as well.
func ownsCordon(managers []metav1.ManagedFieldsEntry) bool {
	ours := false
	for _, m := range managers {
		if _, ok := access.FieldsOf(m).Spec["f:unschedulable"]; !ok {
			continue
		}
		switch m.Manager {
		case access.DrainManager:
			ours = true
		case forgottenManager:
		default:
			return false
		}
	}
	return ours
}

// writtenLabels are the labels of docs/wire.md, "Nodes", whose writers are kept.
var writtenLabels = []string{access.LabelNodeUUID, access.LabelTieBreaker, types.LabelControlPlane, types.LabelMaster, types.LabelEtcd}

// marks are what the text of an entry holds that speaks of one of them, or of the
// cordon: entries are long, and most speak of other things.
var marks = [][]byte{[]byte(`"f:unschedulable"`), []byte(`"f:node-uuid"`), []byte(`"f:tie-breaker-node"`), []byte(`"f:node-role.kubernetes.io/`)}

// writersOf are those who wrote the labels, and the cordon where there is one. A
// kubelet's heartbeat is in the status, of which nobody here is asked, so it
// changes nothing.
func writersOf(n *corev1.Node) (list []types.FieldWriter) {
	for _, m := range n.ManagedFields {
		if !speaks(m) {
			continue
		}
		fields, at := access.FieldsOf(m), metav1.Time{}
		if m.Time != nil {
			at = *m.Time
		}
		for _, label := range writtenLabels {
			if _, ok := fields.Metadata.Labels["f:"+label]; ok {
				list = append(list, types.FieldWriter{Field: label, Manager: m.Manager, At: at.UTC()})
			}
		}
		if _, ok := fields.Spec["f:unschedulable"]; ok && n.Spec.Unschedulable {
			list = append(list, types.FieldWriter{Field: types.FieldCordon, Manager: m.Manager, At: at.UTC()})
		}
	}
	slices.SortFunc(list, func(a, b types.FieldWriter) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), a.At.Compare(b.At), cmp.Compare(a.Manager, b.Manager))
	})
	return list
}

// speaks reports that the entry may tell of a label or of the cordon.
func speaks(m metav1.ManagedFieldsEntry) bool {
	if m.Subresource != "" || m.FieldsV1 == nil {
		return false
	}
	raw := m.FieldsV1.GetRawBytes()
	return slices.ContainsFunc(marks, func(mark []byte) bool { return bytes.Contains(raw, mark) })
}

// FreshNodes returns all Nodes but those of KubeEdge as the cluster has them now, each with the time
// at which its kubelet last renewed its Lease, by the clock of that kubelet's
// node; zero where there is no Lease. It is everything or an error: a list that
// may lack a Node, or the Leases, is never returned.
func (c *Client) FreshNodes(ctx context.Context) ([]types.Node, error) {
	return access.Read(ctx, c.Session, "list nodes", func(ctx context.Context, conn *access.Connection) ([]types.Node, error) {
		nodes, err := access.Whole(conn.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{}))
		if err != nil {
			return nil, err
		}
		renewed, err := renewals(ctx, conn)
		if err != nil {
			return nil, fmt.Errorf("list their leases: %w", err)
		}
		rows, err := Joined(nodes.Items, renewed)
		for i := range rows {
			rows[i] = c.Stamps.Listed(rows[i])
		}
		return rows, err
	})
}

// EdgeNode returns a node of KubeEdge as it is now; false for a node that is none, or none at all.
func (c *Client) EdgeNode(ctx context.Context, name string) (node types.Node, edge bool, err error) {
	node, err = access.Read(ctx, c.Session, "get node "+name, func(ctx context.Context, conn *access.Connection) (types.Node, error) {
		n, err := conn.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case err != nil:
			return types.Node{}, access.UnlessGone(err)
		case n.Name != name:
			return types.Node{}, access.ErrOther
		case !access.IsEdge(n):
			return types.Node{}, nil
		}
		return NodeOf(n), nil
	})
	return node, node.Name != "", err
}

// NodeLeases returns when the kubelets of all nodes last renewed their Leases, by
// name, each by the clock of its node. It is everything or an error.
func (c *Client) NodeLeases(ctx context.Context) (map[string]time.Time, error) {
	return access.Read(ctx, c.Session, "list the leases of nodes", renewals)
}

// renewals lists when each Lease was last renewed.
func renewals(ctx context.Context, c *access.Connection) (map[string]time.Time, error) {
	list, err := access.Whole(c.Kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{}))
	if err != nil {
		return nil, err
	}
	renewed := map[string]time.Time{}
	for _, l := range list.Items {
		if l.Namespace == corev1.NamespaceNodeLease && l.Spec.RenewTime != nil {
			renewed[l.Name] = l.Spec.RenewTime.Time
		}
	}
	return renewed, nil
}

// NodeLease returns when the kubelet of a node last renewed its Lease, by the clock
// of its node; zero where there is no Lease. It goes with its Node, and a kubelet
// makes none while that is missing.
func (c *Client) NodeLease(ctx context.Context, node string) (time.Time, error) {
	act := "get the lease of node " + node
	return access.Read(ctx, c.Session, act, func(ctx context.Context, conn *access.Connection) (renewed time.Time, err error) {
		l, err := conn.Kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
		switch {
		case err != nil:
			return renewed, access.UnlessGone(err)
		case l.Name != node:
			return renewed, access.ErrOther
		case l.Spec.RenewTime != nil:
			renewed = l.Spec.RenewTime.Time
		}
		return renewed, nil
	})
}

// Joined returns the rows of Nodes with the times at which their Leases were renewed.
func Joined(nodes []corev1.Node, renewed map[string]time.Time) ([]types.Node, error) {
	var rows []types.Node
	for _, n := range nodes {
		if n.Name == "" {
			return nil, access.ErrNoName
		}
		if access.IsEdge(&n) {
			continue
		}
		row := NodeOf(&n)
		row.ResourceVersion, row.RenewedAt = n.ResourceVersion, renewed[n.Name]
		rows = append(rows, row)
	}
	return rows, nil
}

// Client has the verbs on Nodes.
type Client struct {
	*access.Session

	Stamps Stamps // of the nodes' agents, as long as the process lives
}
