package kubeapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/kubevirt"
	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/kubeapi/pods"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// appPod is a pod of an application as only the table of those tells of it.
func appPod() *corev1.Pod {
	p := wholePod()
	seconds, always := int64(90), corev1.ContainerRestartPolicyAlways
	p.Spec = corev1.PodSpec{
		NodeName: "n1", TerminationGracePeriodSeconds: &seconds,
		InitContainers: []corev1.Container{{Name: "prepare", Image: "x"}, {Name: "beside", RestartPolicy: &always}},
		Containers:     []corev1.Container{{Name: "main", Image: "x"}, {Name: "looping"}, {Name: "ended"}, {Name: "fresh"}, {Name: "unknown"}},
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "z"}}},
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "own", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}},
			{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "a"}}},
			{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "a"}}},
		},
	}
	ended := func(id string, minute int, code int32) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ContainerID: id, StartedAt: kubetest.At(minute), FinishedAt: kubetest.At(minute + 1), ExitCode: code, Reason: "Error", Message: "long"}
	}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{
		{Name: "prepare", State: corev1.ContainerState{Terminated: ended("i0", 1, 0)}},
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{ // kubelets sort them otherwise
		{Name: "fresh", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
		{
			Name: "main", ContainerID: "m1", RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: kubetest.At(5)}},
			LastTerminationState: corev1.ContainerState{Terminated: ended("m0", 3, 137)},
		},
		{
			Name: "looping", ContainerID: "l4", RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: ended("l4", 7, 1)},
		},
		{
			Name: "ended", ContainerID: "e1", State: corev1.ContainerState{Terminated: ended("e1", 6, 2)},
			LastTerminationState: corev1.ContainerState{Terminated: ended("e0", 4, 3)},
		},
	}
	return p
}

func TestAPodOfAnApplicationSaysMore(t *testing.T) {
	run := func(id string, minute int, code int32) types.ContainerRun {
		return types.ContainerRun{ID: id, Started: kubetest.At(minute).Time, Finished: kubetest.At(minute + 1).Time, ExitCode: code, Reason: "Error"}
	}
	want := pods.PodOf(appPod())
	want.Claims = []string{"a", "p1-own", "z"}
	want.Containers = []types.Container{
		{Name: "prepare", Now: run("i0", 1, 0)},
		{Name: "beside"}, // it runs as long as the others
		{Name: "main", Now: types.ContainerRun{ID: "m1", Started: kubetest.At(5).Time}, Last: run("m0", 3, 137), Restarts: 1},
		{Name: "looping", Waiting: "CrashLoopBackOff", Now: run("l4", 7, 1), Restarts: 4},
		{Name: "ended", Now: run("e1", 6, 2), Last: run("e0", 4, 3)},
		{Name: "fresh", Waiting: "ContainerCreating"},
		{Name: "unknown"},
	}
	if diff := cmp.Diff(want, pods.AppPodOf(appPod())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if row := pods.PodOf(appPod()); row.Containers != nil || row.Claims != nil {
		t.Errorf("the row of any other table holds %+v", row)
	}
}

func TestASchedulersReasonCountsWhileThereIsNoNode(t *testing.T) {
	for name, row := range map[string]struct {
		node, reason string
		status       corev1.ConditionStatus
		want         string
	}{
		"none fits":            {"", "Unschedulable", corev1.ConditionFalse, "0/3 nodes are available"},
		"bound meanwhile":      {"n1", "Unschedulable", corev1.ConditionFalse, ""},
		"gated":                {"", "SchedulingGated", corev1.ConditionFalse, ""},
		"scheduled, not bound": {"", "", corev1.ConditionTrue, ""},
	} {
		p := appPod()
		p.Spec.NodeName = row.node
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no"},
			{Type: corev1.PodScheduled, Status: row.status, Reason: row.reason, Message: "0/3 nodes are available"},
		}
		if got := pods.AppPodOf(p).Unschedulable; got != row.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	p := appPod()
	p.Spec.NodeName, p.Status.Conditions = "", []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: strings.Repeat("x", 5000)},
	}
	if n := len(pods.AppPodOf(p).Unschedulable); n > pods.UnschedulableText {
		t.Errorf("a long reason has %d bytes", n)
	}
}

func decoded[T any](t *testing.T, text string) *T {
	t.Helper()
	v := new(T)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
	return v
}

const someVMI = `{"kind":"VirtualMachineInstance","apiVersion":"kubevirt.io/v1","metadata":{"name":"web4q8zt","namespace":"eve-kube-app","uid":"u1",
"resourceVersion":"7","creationTimestamp":"2026-01-02T03:01:00Z","deletionTimestamp":"2026-01-02T03:09:00Z","labels":{"App-Domain-Name":"id.1.2","other":"x"},
"ownerReferences":[{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstanceReplicaSet","name":"web","uid":"r1","controller":true}],
"managedFields":[{"manager":"virt-controller"}]},"spec":{"domain":{"devices":{}},"volumes":[{"name":"c","containerDisk":{"image":"x"}},{"name":"b","persistentVolumeClaim":{"claimName":"pvc-b"}}],"affinity":{"nodeAffinity":{
"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["n1"]}]}]}}}},
"status":{"phase":"Running","nodeName":"n1","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-02T03:05:00Z"},{"type":"LiveMigratable","status":"False"}],
"phaseTransitionTimestamps":[{"phase":"Pending","phaseTransitionTimestamp":"2026-01-02T03:02:00Z"},{"phase":"Running","phaseTransitionTimestamp":"2026-01-02T03:04:00Z"}]}}`

func TestAVirtualMachineBecomesARow(t *testing.T) {
	want := types.VMI{
		Name: "web4q8zt", UID: "u1", Phase: types.VMIRunning, NodeName: "n1",
		Owner: types.Owner{Kind: types.KindVMIReplicaSet, Name: "web", UID: "r1"}, AppDomain: "id.1.2",
		Created: kubetest.At(1).Time, Deleted: kubetest.At(9).Time, Ready: true, ReadySince: kubetest.At(5).Time,
		Affinity: types.SetAffinity{Node: "n1", Required: true}, Claims: []string{"pvc-b"},
	}
	v := decoded[kubevirtv1.VirtualMachineInstance](t, someVMI)
	if diff := cmp.Diff(want, kubevirt.VMIOf(v)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const someSet = `{"metadata":{"name":"web","uid":"u1","resourceVersion":"7","creationTimestamp":"2026-01-02T03:01:00Z",
"annotations":{"other":"x","zedkube.github.io/repair":"{\"act\":\"failover\",\"node\":\"n1\",\"stuck\":2}"}},
"spec":{"replicas":0,"template":{"metadata":{"labels":{"App-Domain-Name":"id.1.2"}},"spec":{"affinity":{"nodeAffinity":{
"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["n1"]}]}]}}},
"volumes":[{"name":"c","containerDisk":{"image":"x"}},{"name":"b","persistentVolumeClaim":{"claimName":"pvc-b"}},{"name":"a","dataVolume":{"name":"dv-a"}},
{"name":"e","ephemeral":{"persistentVolumeClaim":{"claimName":"pvc-e"}}},{"name":"v","ephemeral":{"volumeClaimTemplate":{}}}]}}},"status":{"readyReplicas":1}}`

func TestAReplicaSetBecomesARow(t *testing.T) {
	want := types.AppSet{
		Kind: types.KindVMIReplicaSet, Name: "web", UID: "u1", Version: "7", AppDomain: "id.1.2", Wanted: 0,
		Affinity: types.SetAffinity{Node: "n1", Required: true}, Claims: []string{"dv-a", "pvc-b", "pvc-e"},
		Note: types.RepairNote{Act: types.ActFailover, Node: "n1", Stuck: 2},
	}
	s := decoded[kubevirtv1.VirtualMachineInstanceReplicaSet](t, someSet)
	if diff := cmp.Diff(want, kubevirt.VMISetOf(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	pods := decoded[appsv1.ReplicaSet](t, someSet)
	want.Kind, want.Claims = types.KindReplicaSet, []string{"pvc-b"} // it knows no volumes of KubeVirt's
	if diff := cmp.Diff(want, kubevirt.PodSetOf(pods)); diff != "" {
		t.Errorf("of pods (-want +got):\n%s", diff)
	}
	s.Spec.Template = nil
	if row := kubevirt.VMISetOf(s); row.AppDomain != "" || row.Claims != nil {
		t.Errorf("without a template: %+v", row)
	}
	pods.Spec.Replicas, pods.Labels = nil, map[string]string{access.LabelAppDomain: "own"}
	for name, note := range map[string]string{
		"garbage": `yes`, "of another shape": `{"act":"failover","stuck":"two"}`, "too long": `{"act":"` + strings.Repeat("x", access.AnnotationText) + `"}`,
	} {
		pods.Annotations[kubevirt.RepairAnnotation] = note
		row := kubevirt.PodSetOf(pods)
		if row.Note != (types.RepairNote{}) || row.Wanted != 1 || row.AppDomain != "own" {
			t.Errorf("with a note that is %s: %+v", name, row)
		}
	}
}

func fenced(note string, taints ...corev1.Taint) *corev1.Node {
	n := wholeNode()
	n.Spec.Taints = append(n.Spec.Taints, taints...)
	if note != "" {
		n.Annotations[nodes.FenceAnnotation] = note
	}
	return n
}

func TestAFenceIsOursOnlyWithOurNote(t *testing.T) {
	other := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "maintenance", Effect: corev1.TaintEffectNoExecute}
	for name, row := range map[string]struct {
		node            *corev1.Node
		out, ours, left bool
	}{
		"none":                         {fenced(""), false, false, false},
		"ours":                         {fenced(`{"by":"n2","reason":"gone"}`, nodes.FenceTaint()), true, true, false},
		"without a note":               {fenced("", nodes.FenceTaint()), true, false, false},
		"with garbage":                 {fenced("yes", nodes.FenceTaint()), true, false, false},
		"with a note of nobody":        {fenced("{}", nodes.FenceTaint()), true, false, false},
		"a note without a taint":       {fenced(`{"by":"n2"}`), false, false, true},
		"our note, another's taint":    {fenced(`{"by":"n2"}`, other), true, false, true},
		"our note, of another version": {fenced(`{"by":"n2","new":1}`, nodes.FenceTaint()), true, true, false},
		"a note beyond all bounds":     {fenced(`{"by":"`+strings.Repeat("x", access.AnnotationText)+`"}`, nodes.FenceTaint()), true, false, false},
	} {
		if got := nodes.NodeOf(row.node); got.OutOfService != row.out || (got.Fence != nil) != row.ours || (got.FenceLeft != nil) != row.left {
			t.Errorf("%s: out of service %v, by %+v, left %+v", name, got.OutOfService, got.Fence, got.FenceLeft)
		}
	}
}

func TestAWitnessThatSaysNothingIsNone(t *testing.T) {
	sees := &types.Witness{Round: 7, Sightings: []types.Sighting{{Node: "n2", UID: "u2", Alive: "10.0.0.2:10250", Silent: 3}}}
	for text, want := range map[string]*types.Witness{
		`{"round":7,"sightings":[{"node":"n2","uid":"u2","alive":"10.0.0.2:10250","silent":3}]}`: sees,
		`{}`: nil, `null`: nil, `[]`: nil, `{"round":"7"}`: nil, ``: nil, `{"round":7`: nil,
	} {
		n := wholeNode()
		n.Annotations[nodes.WitnessAnnotation] = text
		if diff := cmp.Diff(want, nodes.NodeOf(n).Witness); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
