//go:build linux

package kubeapi_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/kubeapi/kubevirt"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

func applications(t *testing.T, c *devcluster.Cluster) {
	a := newAgent(t, c, 7)
	eventually(t, "the tables of applications are whole", 10*time.Second, func() bool { return a.status().Apps })
	for _, part := range []struct {
		name string
		play func(*testing.T, *devcluster.Cluster, *agent)
	}{
		{"a replica set of virtual machines is changed for one version", func(t *testing.T, c *devcluster.Cluster, a *agent) {
			changesSet(t, c, a, types.KindVMIReplicaSet)
		}},
		{"so is one of pods", func(t *testing.T, c *devcluster.Cluster, a *agent) { changesSet(t, c, a, types.KindReplicaSet) }},
		{"a VirtualMachine is halted and runs as before", runsMachine},
		{"workloads are disabled by one object", disablesWorkloads},
		{"an instance is forgotten, a namesake is not", forgetsVMI},
		{"a pod is deleted by force, a namesake is not", deletesPod},
		{"a VolumeAttachment goes to its attacher", deletesAttachment},
		{"a witness is read as it was written", witnesses},
	} {
		t.Run(part.name, func(t *testing.T) { part.play(t, c, a) })
	}
}

// setNamed waits for the row of a set to be as it should.
func setNamed(t *testing.T, a *agent, key, what string, ok func(types.AppSet) bool) types.AppSet {
	t.Helper()
	var s types.AppSet
	eventually(t, what, 5*time.Second, func() bool { s, _ = a.sets.Get(key); return ok(s) })
	return s
}

func template() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "fixed", "App-Domain-Name": "id.1.2"}},
		"spec": map[string]any{
			"affinity": map[string]any{
				"nodeAffinity": map[string]any{
					"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{"weight": int64(100), "preference": map[string]any{
						"matchExpressions": []any{map[string]any{"key": "kubernetes.io/hostname", "operator": "In", "values": []any{"old"}}},
					}}},
				},
				"podAntiAffinity": map[string]any{
					"requiredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{"topologyKey": "kubernetes.io/hostname"}},
				},
			},
			"containers": []any{map[string]any{"name": "c", "image": "x"}},
			"volumes":    []any{map[string]any{"name": "v", "persistentVolumeClaim": map[string]any{"claimName": "data"}}},
		},
	}
}

// makeSet makes a set that has what it wants, which is nothing.
func makeSet(t *testing.T, c *devcluster.Cluster, kind string) (key string, get func() map[string]any) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"app": "fixed"}}, "template": template(),
	}}}
	o.SetName("fixed")
	o.SetNamespace(kubeapi.Namespace)
	o.SetKind(kind)
	key = kind + "/fixed"
	if kind == types.KindVMIReplicaSet {
		o.SetAPIVersion("kubevirt.io/v1")
		api := c.Custom("vmirs").Namespace(kubeapi.Namespace)
		if _, err := api.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return key, func() map[string]any {
			now, err := api.Get(t.Context(), "fixed", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return now.Object
		}
	}
	var set appsv1.ReplicaSet
	api := c.Client().AppsV1().ReplicaSets(kubeapi.Namespace)
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &set)
	if err == nil {
		_, err = api.Create(t.Context(), &set, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return key, func() map[string]any {
		now, err := api.Get(t.Context(), "fixed", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(now)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

func changesSet(t *testing.T, c *devcluster.Cluster, a *agent, kind string) {
	ctx := t.Context()
	key, get := makeSet(t, c, kind)
	set := setNamed(t, a, key, "the set is seen", func(s types.AppSet) bool { return s.UID != "" })
	if set.Wanted != 0 || set.AppDomain != "id.1.2" || !slices.Equal(set.Claims, []string{"data"}) || set.Affinity != (types.SetAffinity{Node: "old", Other: true}) {
		t.Errorf("its row is %+v", set)
	}
	settled := func() types.AppSet {
		return setNamed(t, a, key, "the row is of the last version", func(s types.AppSet) bool {
			return s.Version == get()["metadata"].(map[string]any)["resourceVersion"]
		})
	}
	writes := func(what string, write func(types.AppSet) error) { // its controller writes its status meanwhile
		t.Helper()
		eventually(t, what, 5*time.Second, func() bool {
			set = settled()
			err := write(set)
			if err != nil && !errors.Is(err, types.ErrConflict) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	writes("an affinity is written", func(s types.AppSet) error { return a.SetAffinity(ctx, s, "n9", true, types.RepairNote{}) })
	for name, err := range map[string]error{
		"a note": a.NoteRepair(ctx, set, types.RepairNote{Step: "late"}), "replicas": a.SetWanted(ctx, set, 3), "an affinity": a.SetAffinity(ctx, set, "n8", true, types.RepairNote{}),
	} {
		if !errors.Is(err, types.ErrConflict) {
			t.Errorf("%s for an old version: %v", name, err)
		}
	}
	set = settled()
	if set.Affinity != (types.SetAffinity{Node: "n9", Required: true, Other: true}) || set.Wanted != 0 || set.Note.Step != "" {
		t.Errorf("then its row is %+v", set)
	}
	anti, found, _ := unstructured.NestedSlice(get(), "spec", "template", "spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
	if !found || len(anti) != 1 {
		t.Errorf("the affinity between pods became %v", anti)
	}
	another := set
	another.UID = "11111111-1111-4111-8111-111111111111"
	if err := a.NoteRepair(ctx, another, types.RepairNote{Step: "another"}); !errors.Is(err, types.ErrConflict) {
		t.Errorf("for another set: %v", err)
	}
	note := types.RepairNote{Act: types.ActFailover, Node: "n1", Step: "fenced", Since: time.Now().UTC().Truncate(time.Second)}
	writes("a note is written", func(s types.AppSet) error { return a.NoteRepair(ctx, s, note) })
	set = setNamed(t, a, key, "the note is read", func(s types.AppSet) bool { return s.Note == note })
	if err := a.Event(ctx, types.Event{Node: c.Nodes[7].Name, Set: set, Reason: "FailedOver", Message: "it is elsewhere"}); err != nil {
		t.Error(err)
	}
	writes("it is removed", func(s types.AppSet) error { return a.NoteRepair(ctx, s, types.RepairNote{}) })
	setNamed(t, a, key, "the note is gone", func(s types.AppSet) bool { return s.Note == types.RepairNote{} })
	former := types.FormerScale{UID: set.UID, Replicas: 2}
	writes("it is disabled", func(s types.AppSet) error { return a.ScaleSet(ctx, s, types.SetScale{Former: &former}) })
	set = setNamed(t, a, key, "its former scale is read", func(s types.AppSet) bool { return s.Former != nil && *s.Former == former })
	if err := a.ScaleSet(ctx, another, types.SetScale{Replicas: 2}); !errors.Is(err, types.ErrConflict) {
		t.Errorf("for another set: %v", err)
	}
	writes("it is enabled", func(s types.AppSet) error { return a.ScaleSet(ctx, s, types.SetScale{}) })
	setNamed(t, a, key, "its former scale is gone", func(s types.AppSet) bool { return s.Former == nil && s.Wanted == 0 })
	writes("replicas are written", func(s types.AppSet) error { return a.SetWanted(ctx, s, 1) })
	setNamed(t, a, key, "it wants one", func(s types.AppSet) bool { return s.Wanted == 1 })
}

func runsMachine(t *testing.T, c *devcluster.Cluster, a *agent) {
	ctx := t.Context()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": map[string]any{"name": "till", "namespace": kubeapi.Namespace},
		"spec": map[string]any{"running": true, "template": map[string]any{"spec": map[string]any{
			"domain": map[string]any{}, "volumes": []any{map[string]any{"name": "v", "dataVolume": map[string]any{"name": "till-data"}}},
		}}},
	}}
	api := c.Custom("vm").Namespace(kubeapi.Namespace)
	if _, err := api.Create(ctx, o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	seen := func(what string, ok func(types.VirtualMachine) bool) (m types.VirtualMachine) {
		t.Helper()
		eventually(t, what, 10*time.Second, func() bool { m, _ = a.machines.Get(kubeapi.Namespace + "/till"); return ok(m) })
		return m
	}
	m := seen("it is seen", func(m types.VirtualMachine) bool {
		return m.Run.Running != nil && *m.Run.Running && slices.Equal(m.Claims, []string{"till-data"})
	})
	former := types.FormerRun{UID: m.UID, RunState: m.Run}
	if err := a.RunMachine(ctx, m, types.RunState{Strategy: types.StrategyHalted}, &former); err != nil {
		t.Fatal(err)
	}
	halted := seen("it is halted", func(m types.VirtualMachine) bool { return m.Former != nil && m.Run.Halted() && m.Run.Running == nil })
	if err := a.RunMachine(ctx, m, m.Run, nil); !errors.Is(err, types.ErrConflict) {
		t.Errorf("for an old version: %v", err)
	}
	if err := a.RunMachine(ctx, halted, halted.Former.RunState, nil); err != nil {
		t.Fatal(err)
	}
	seen("it runs as before", func(m types.VirtualMachine) bool {
		return m.Former == nil && m.Run.Strategy == "" && m.Run.Running != nil && *m.Run.Running
	})
}

func disablesWorkloads(t *testing.T, c *devcluster.Cluster, a *agent) {
	ctx := t.Context()
	first := types.DisabledWorkloads{By: "n1", Reason: "first", Since: time.Now().UTC().Truncate(time.Second)}
	second := types.DisabledWorkloads{By: "n2", Reason: "second"}
	if err := errors.Join(a.DisableWorkloads(ctx, first), a.DisableWorkloads(ctx, second)); err != nil {
		t.Fatal(err)
	}
	d, err := a.DisabledWorkloads(ctx)
	first.UID = d.UID
	if err != nil || d != first || d.UID == "" {
		t.Errorf("it is %+v, %v; want the first", d, err)
	}
	eventually(t, "it is seen", 10*time.Second, func() bool {
		all := a.disabled.All()
		return len(all) == 1 && slices.Collect(maps.Values(all))[0] == first
	})
	if err := a.EnableWorkloads(ctx, types.DisabledWorkloads{UID: "11111111-1111-4111-8111-111111111111"}); err != nil {
		t.Errorf("another one: %v", err)
	}
	if d, err := a.DisabledWorkloads(ctx); err != nil || d != first {
		t.Errorf("what is for another object leaves %+v, %v", d, err)
	}
	if err := errors.Join(a.EnableWorkloads(ctx, d), a.EnableWorkloads(ctx, d)); err != nil {
		t.Error(err)
	}
	eventually(t, "it is gone", 10*time.Second, func() bool { return len(a.disabled.All()) == 0 })
	if d, err := a.DisabledWorkloads(ctx); err != nil || d.UID != "" {
		t.Errorf("then it is %+v, %v", d, err)
	}

	// One that somebody else made under that name says nothing, and stays.
	objects := c.Client().CoreV1().ConfigMaps(kubeapi.Namespace)
	if _, err := objects.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kubevirt.DisabledName}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := a.DisableWorkloads(ctx, second); err == nil {
		t.Error("somebody else's object was taken for ours")
	}
	if d, err := a.DisabledWorkloads(ctx); err != nil || d.UID != "" {
		t.Errorf("somebody else's is read as %+v, %v", d, err)
	}
	if err := objects.Delete(ctx, kubevirt.DisabledName, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
