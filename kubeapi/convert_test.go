package kubeapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/kubeapi/pods"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func wholeNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n1", UID: "u1", ResourceVersion: "42", CreationTimestamp: kubetest.At(1),
			Labels: map[string]string{
				"node-uuid": strings.ToUpper(ownUUID), "tie-breaker-node": "true", "other": "x",
				"node-role.kubernetes.io/control-plane": "true", "node-role.kubernetes.io/etcd": "",
				"node-role.kubernetes.io/master": "",
			},
			Annotations: map[string]string{
				"other":                "x",
				nodes.CordonAnnotation: `{"by":"zedkube","reason":"reboot","since":"2026-01-02T03:00:00Z"}`,
				nodes.KeepAnnotation:   "true",
				nodes.AgentAnnotation:  `{"version":"1.2","given":"2026-01-02T03:06:00Z"}`,
			},
			ManagedFields: append(ourFields(), entry("k3s", "", `{"f:metadata":{"f:labels":{"f:other":{}}}}`, 1), stampFields(nodes.AgentManager)),
		},
		Spec: corev1.NodeSpec{Unschedulable: true, PodCIDR: "10.42.0.0/24", Taints: []corev1.Taint{
			{Key: "other", TimeAdded: new(kubetest.At(2))}, {Key: corev1.TaintNodeUnschedulable, TimeAdded: new(kubetest.At(3))},
		}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, LastTransitionTime: kubetest.At(3)},
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: kubetest.At(2)},
				{Type: "EtcdIsVoter", Status: corev1.ConditionTrue},
				{Type: "DrainInProgress", Status: corev1.ConditionFalse},
				{Type: "Drained", Status: corev1.ConditionTrue},
				{Type: corev1.NodePIDPressure, Status: corev1.ConditionTrue, LastTransitionTime: kubetest.At(4), LastHeartbeatTime: kubetest.At(9)},
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionUnknown, LastTransitionTime: kubetest.At(5)},
			},
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeHostName, Address: "n1"},
				{Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
				{Type: corev1.NodeInternalIP, Address: "fd00::1"},
				{Type: corev1.NodeExternalIP, Address: "192.0.2.1"},
			},
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("3"), corev1.ResourceMemory: resource.MustParse("2Gi"), corev1.ResourcePods: resource.MustParse("110"),
			},
			NodeInfo: corev1.NodeSystemInfo{BootID: "b1", KubeletVersion: "v1.34.2+k3s1", KernelVersion: "6"},
			Images:   []corev1.ContainerImage{{Names: []string{"large"}}},
		},
	}
}

func wholePod() *corev1.Pod {
	yes, deleted := true, kubetest.At(9)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "eve-kube-app", Name: "p1", UID: "u1", CreationTimestamp: kubetest.At(1), DeletionTimestamp: &deleted,
			Labels: map[string]string{"app": "web", "App-Domain-Name": "id.1.2", "vm.kubevirt.io/name": "vmi1", "other": "x"},
			OwnerReferences: []metav1.OwnerReference{
				{Kind: "Other", Name: "o", UID: "o"},
				{Kind: "ReplicaSet", Name: "rs", UID: "r1", Controller: &yes},
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "k3s"}},
		},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.42.0.7", Reason: "Evicted",
			ContainerStatuses: []corev1.ContainerStatus{
				{RestartCount: 0, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: kubetest.At(8)}}},
				{RestartCount: 2, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: kubetest.At(8)}}, LastTerminationState: endedAt(4)},
				{RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, LastTerminationState: endedAt(5), Image: "x"},
				{RestartCount: 1, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}},
			},
		},
	}
}

func endedAt(minute int) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: kubetest.At(minute), Message: "long"}}
}

func TestANodeThatIsBeingDeletedSaysWhatKeepsIt(t *testing.T) {
	n := wholeNode()
	n.Finalizers = []string{"wrangler.cattle.io/managed-etcd-controller"}
	if row := nodes.NodeOf(n); !row.Deleted.IsZero() || row.Finalizers != nil {
		t.Errorf("one that nobody deletes is deleted at %s, kept by %v", row.Deleted, row.Finalizers)
	}
	n.DeletionTimestamp = new(kubetest.At(9))
	if row := nodes.NodeOf(n); !row.Deleted.Equal(kubetest.At(9).Time) || len(row.Finalizers) != 1 {
		t.Errorf("deleted at %s, kept by %v", row.Deleted, row.Finalizers)
	}
}

func TestANodeBecomesARow(t *testing.T) {
	want := types.Node{
		Name: "n1", UID: "u1", UUID: ownUUID, Created: kubetest.At(1).Time,
		Ready: types.ConditionUnknown, ReadySince: kubetest.At(2).Time, Unschedulable: true,
		CordonedBy:   &types.Cordon{By: "zedkube", Reason: "reboot", Since: kubetest.At(0).Time},
		ControlPlane: true, Master: true, Etcd: true, TieBreaker: true,
		CordonKept: true, TaintedAt: kubetest.At(3).Time, EtcdVoter: types.ConditionTrue,
		Agent: &types.AgentStamp{Version: "1.2", Given: kubetest.At(6).Time}, StampedAt: kubetest.At(7).Time,
		DrainInProgress: types.ConditionFalse, Drained: types.ConditionTrue,
		Conditions: []types.NodeCondition{
			{Type: "DiskPressure", Status: types.ConditionUnknown, Since: kubetest.At(5).Time},
			{Type: "MemoryPressure", Status: types.ConditionFalse, Since: kubetest.At(3).Time},
			{Type: "PIDPressure", Status: types.ConditionTrue, Since: kubetest.At(4).Time},
		},
		Cores: 3, Memory: 2 << 30, Writers: []types.FieldWriter{{Field: types.FieldCordon, Manager: access.DrainManager}},
		BootID: "b1", KubeletVersion: "v1.34.2+k3s1", InternalIP: "10.0.0.1", ExternalIP: "192.0.2.1",
	}
	if diff := cmp.Diff(want, nodes.NodeOf(wholeNode())); diff != "" {
		t.Error(diff)
	}
}

func TestAPodBecomesARow(t *testing.T) {
	want := types.Pod{
		Namespace: "eve-kube-app", Name: "p1", UID: "u1", NodeName: "n1", Phase: types.PodRunning, IP: "10.42.0.7",
		Created: kubetest.At(1).Time, Deleted: kubetest.At(9).Time, Owner: types.Owner{Kind: "ReplicaSet", Name: "rs", UID: "r1"},
		App: "web", AppDomain: "id.1.2", VMI: "vmi1", RestartCount: 6, RestartedAt: kubetest.At(5).Time,
		Reason: "Evicted",
	}
	if diff := cmp.Diff(want, pods.PodOf(wholePod())); diff != "" {
		t.Error(diff)
	}
}

// A list that is streamed arrives object by object, and has no bound but the cluster.
func TestOfAStreamedListOnlyRowsAreHeld(t *testing.T) {
	var table pubsub.Table[types.Pod]
	rows := access.RowsOf(&table, pods.PodOf, access.NamespacedName)
	before := kubetest.Heap()
	var list []any
	for i := range 2000 {
		p := wholePod()
		p.Name = fmt.Sprint("p", i)
		p.Annotations = map[string]string{"large": strings.Repeat("x", 10_000)}
		held, err := rows.Transformer()(p)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, held)
	}
	if held := (kubetest.Heap() - before) / 2000; held > 1500 {
		t.Errorf("of each pod %d bytes are held", held)
	}
	if err := rows.Replace(list, "7"); err != nil {
		t.Fatal(err)
	}
	want := pods.PodOf(wholePod())
	want.Name = "p7"
	if diff := cmp.Diff(want, table.All()["eve-kube-app/p7"]); diff != "" || len(table.All()) != 2000 {
		t.Errorf("%d rows; of one (-want +got):\n%s", len(table.All()), diff)
	}
	for name, o := range map[string]any{"a pod without a name": &corev1.Pod{}, "no pod": wholeNode()} {
		held, err := rows.Transformer()(o)
		if err != nil || rows.Replace([]any{held}, "8") == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestACordonIsOursOnlyWithOurNote(t *testing.T) {
	for name, test := range map[string]struct {
		note          string
		unschedulable bool
		ours          bool
	}{
		"our note":                    {note: `{"by":"zedkube"}`, unschedulable: true, ours: true},
		"no note":                     {unschedulable: true},
		"somebody else's note":        {note: `{"by":"me"}`, unschedulable: true},
		"a note that is not ours":     {note: `yes`, unschedulable: true},
		"our note on an open node":    {note: `{"by":"zedkube"}`},
		"an empty note":               {note: `{}`, unschedulable: true},
		"half of our note":            {note: `{"by":"zedkube"`, unschedulable: true},
		"our note of another version": {note: `{"by":"zedkube","new":1}`, unschedulable: true, ours: true},
	} {
		n := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: test.unschedulable}}
		n.ManagedFields = ourFields()
		if test.note != "" {
			n.Annotations = map[string]string{nodes.CordonAnnotation: test.note}
		}
		if got := nodes.NodeOf(n).CordonedBy != nil; got != test.ours {
			t.Errorf("%s: ours is %v", name, got)
		}
	}
}

// stampFields is the record of the API server of a stamp.
func stampFields(manager string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", Time: new(kubetest.At(7)),
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:zedkube.github.io/agent":{}}}}`),
	}
}

func TestACordonIsOursOnlyWhereNobodyElseWantsIt(t *testing.T) {
	foreign, shared := wholeNode(), wholeNode()
	foreign.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: ourFields()[0].FieldsV1}}
	shared.ManagedFields = append(shared.ManagedFields, foreign.ManagedFields...)
	for name, n := range map[string]*corev1.Node{
		"our cordon": wholeNode(), "a foreign cordon over our old note": foreign, "a cordon that others want, too": shared,
	} {
		row := nodes.NodeOf(n)
		if ours := name == "our cordon"; (row.CordonedBy != nil) != ours {
			t.Errorf("%s is by %+v", name, row.CordonedBy)
		}
	}
}

func TestAStampIsDatedOnlyAsTheAgentWroteIt(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		stamp  *types.AgentStamp
		dated  bool
	}{
		"by the agent": {func(*corev1.Node) {}, &types.AgentStamp{Version: "1.2", Given: kubetest.At(6).Time}, true},
		"by a person": {
			func(n *corev1.Node) { n.ManagedFields = []metav1.ManagedFieldsEntry{stampFields("kubectl")} },
			&types.AgentStamp{Version: "1.2", Given: kubetest.At(6).Time}, false,
		},
		"garbage":   {func(n *corev1.Node) { n.Annotations[nodes.AgentAnnotation] = `{"version":"1","masters":["x"]}` }, &types.AgentStamp{}, true},
		"not there": {func(n *corev1.Node) { delete(n.Annotations, nodes.AgentAnnotation) }, nil, false},
	} {
		n := wholeNode()
		test.change(n)
		row := nodes.NodeOf(n)
		if diff := cmp.Diff(test.stamp, row.Agent); diff != "" || row.StampedAt.IsZero() == test.dated {
			t.Errorf("%s: dated %v, stamp (-want +got):\n%s", name, row.StampedAt, diff)
		}
	}
}

func TestAHeartbeatIsNoNews(t *testing.T) {
	var table pubsub.Table[types.Node]
	var seen pubsub.Table[types.NodeClock]
	rows := nodeRows(&table, nil, nodes.NewClocks(kubetest.Quiet(), &seen), &nodes.Stamps{})
	beat := func(version string, minute int) {
		n := wholeNode()
		n.ResourceVersion = version
		for i := range n.Status.Conditions {
			n.Status.Conditions[i].LastHeartbeatTime = kubetest.At(minute)
		}
		n.ManagedFields = append(n.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubelet", Time: new(kubetest.At(minute))})
		if err := rows.Update(n); err != nil {
			t.Fatal(err)
		}
	}
	beat("1", 1)
	bell := make(chan struct{}, 1)
	table.Notify(bell)
	select { // a bell may ring as it is hung up
	case <-bell:
	default:
	}
	beat("2", 2)
	select {
	case <-bell:
		t.Error("the table rang")
	default:
	}
}
