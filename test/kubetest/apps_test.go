package kubetest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// withApps is a cluster with one virtual machine, on n2, which is not Ready.
func withApps() *Cluster {
	c := &Cluster{
		Nodes: &pubsub.Table[types.Node]{}, Pods: &pubsub.Table[types.Pod]{}, API: &pubsub.Table[types.APIStatus]{},
		VMIs: &pubsub.Table[types.VMI]{}, Sets: &pubsub.Table[types.AppSet]{}, Grace: time.Second,
	}
	_ = c.Nodes.Publish("n1", types.Node{Name: "n1", UID: "u1", Ready: types.ConditionTrue})
	_ = c.Nodes.Publish("n2", types.Node{Name: "n2", UID: "u2", Ready: types.ConditionUnknown})
	set := types.AppSet{Kind: types.KindVMIReplicaSet, Name: "web", UID: "s1", Version: "1", Wanted: 1, AppDomain: "id.1.2", Claims: []string{"data"}}
	_ = c.Sets.Publish(set.Key(), set)
	vmi := types.VMI{Name: "web00000", UID: "v1", NodeName: "n2", Owner: types.Owner{Kind: set.Kind, Name: set.Name, UID: set.UID}}
	_ = c.VMIs.Publish(vmi.Name, vmi)
	pod := types.Pod{
		Namespace: "eve-kube-app", Name: "virt-launcher-web00000-00000", UID: "p1", NodeName: "n2", VMI: vmi.Name,
		Owner: types.Owner{Kind: "VirtualMachineInstance", Name: vmi.Name, UID: vmi.UID},
	}
	_ = c.Pods.Publish(pod.Key(), pod)
	return c
}

func only[T any](t *testing.T, rows map[string]T) (row T) {
	t.Helper()
	if len(rows) != 1 {
		t.Fatalf("there are %v", rows)
	}
	for _, row = range rows {
	}
	return row
}

func TestAVirtualMachineThatIsGoneIsMadeAnew(t *testing.T) {
	ctx, c := t.Context(), withApps()
	old := only(t, c.VMIs.All())
	if err := c.DeleteVMI(ctx, old); err != nil {
		t.Fatal(err)
	}
	if v := only(t, c.VMIs.All()); v.Deleted.IsZero() || v.UID != old.UID {
		t.Errorf("its pod is on a lost node, and it is %+v", v)
	}
	if err := c.ForceDeletePod(ctx, only(t, c.Pods.All())); err != nil {
		t.Fatal(err)
	}
	v, p := only(t, c.VMIs.All()), only(t, c.Pods.All())
	if v.UID == old.UID || v.Owner != old.Owner || p.Phase != types.PodPending || p.VMI != v.Name || p.Owner.UID != v.UID || p.Claims[0] != "data" || p.NodeName != "" {
		t.Errorf("then there are %+v and %+v", v, p)
	}
	c.OnRevival(func(s types.AppSet, v *types.VMI, p *types.Pod) {
		v.NodeName, p.NodeName, p.Phase = "n1", "n1", types.PodRunning
	})
	if err := c.ForgetVMI(ctx, v); err != nil {
		t.Fatal(err)
	}
	if v := only(t, c.VMIs.All()); v.NodeName != "n1" || len(c.Pods.All()) != 2 {
		t.Errorf("then there are %+v and %v", v, c.Pods.All())
	}
}

func TestAVirtualMachineOnALivingNodeEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := withApps()
		c.StopControllers(true)
		c.ChangeNode("n2", func(n *types.Node) { n.Ready = types.ConditionTrue })
		if err := c.DeleteVMI(t.Context(), only(t, c.VMIs.All())); err != nil {
			t.Fatal(err)
		}
		if !only(t, c.Pods.All()).Terminating() {
			t.Error("its pod does not end")
		}
		time.Sleep(2 * time.Second)
		if len(c.VMIs.All())+len(c.Pods.All()) != 0 {
			t.Errorf("left are %v and %v", c.VMIs.All(), c.Pods.All())
		}
	})
}

func TestAnEvictedVirtualMachineIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := withApps()
		old := only(t, c.VMIs.All())
		if err := c.Evict(t.Context(), only(t, c.Pods.All())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if v, p := only(t, c.VMIs.All()), only(t, c.Pods.All()); v.UID == old.UID || p.Owner.UID != v.UID {
			t.Errorf("there are %+v and %+v", v, p)
		}
	})
}

func TestASetOfPodsMakesPods(t *testing.T) {
	c := withApps()
	_ = c.VMIs.Unpublish("web00000")
	c.Change(func() {
		for key := range c.Sets.All() {
			_ = c.Sets.Unpublish(key)
		}
		for key := range c.Pods.All() {
			_ = c.Pods.Unpublish(key)
		}
		_ = c.Sets.Publish("ReplicaSet/app", types.AppSet{Kind: types.KindReplicaSet, Name: "app", UID: "s2", Wanted: 1})
	})
	if p := only(t, c.Pods.All()); p.Owner.UID != "s2" || p.App != "app" || p.VMI != "" || len(c.VMIs.All()) != 0 {
		t.Errorf("it made %+v and %v", p, c.VMIs.All())
	}
}

func TestASetIsWrittenForOneVersion(t *testing.T) {
	ctx, c := t.Context(), withApps()
	s := only(t, c.Sets.All())
	if err := c.NoteRepair(ctx, s, types.RepairNote{Step: "one"}); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"note": c.NoteRepair(ctx, s, types.RepairNote{}), "replicas": c.SetWanted(ctx, s, 2), "affinity": c.SetAffinity(ctx, s, "n1", true, types.RepairNote{}),
	} {
		if !errors.Is(err, types.ErrConflict) {
			t.Errorf("%s of an old version: %v", name, err)
		}
	}
	s = only(t, c.Sets.All())
	if err := c.SetWanted(ctx, s, 0); err == nil || s.Note.Step != "one" {
		t.Errorf("0 replicas: %v, and the note is %+v", err, s.Note)
	}
	if err := c.SetAffinity(ctx, s, "n1", true, types.RepairNote{}); err != nil || only(t, c.Sets.All()).Affinity != (types.SetAffinity{Node: "n1", Required: true}) {
		t.Errorf("%v: %+v", err, only(t, c.Sets.All()))
	}
}

func TestAFenceSparesNodesThatAreReadyOrOfOthers(t *testing.T) {
	ctx, c := t.Context(), withApps()
	n1, n2 := types.Node{Name: "n1", UID: "u1"}, types.Node{Name: "n2", UID: "u2"}
	for name, err := range map[string]error{
		"ready": c.Fence(ctx, n1, types.Fence{}), "another": c.Fence(ctx, types.Node{Name: "n2", UID: "x"}, types.Fence{}),
	} {
		if !errors.Is(err, types.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Fence(ctx, n2, types.Fence{By: "n1"}); err != nil {
		t.Fatal(err)
	}
	if n, _ := c.Nodes.Get("n2"); !n.OutOfService || n.Fence.By != "n1" {
		t.Errorf("it is %+v", n)
	}
	if err := c.Unfence(ctx, n2); err != nil {
		t.Fatal(err)
	}
	c.ChangeNode("n2", func(n *types.Node) { n.OutOfService = true })
	if err := c.Fence(ctx, n2, types.Fence{}); !errors.Is(err, types.ErrConflict) {
		t.Errorf("out of service by a person: %v", err)
	}
	if err := errors.Join(c.Unfence(ctx, n2), c.Witness(ctx, "n1", types.Witness{Round: 1})); err != nil {
		t.Fatal(err)
	}
	n, _ := c.Nodes.Get("n2")
	if w, _ := c.Nodes.Get("n1"); !n.OutOfService || w.Witness.Round != 1 {
		t.Errorf("they are %+v and %+v", n, w)
	}
}

func TestAttachmentsAndRunningPodsAreOfOneNode(t *testing.T) {
	ctx, c := t.Context(), withApps()
	a, b := types.Attachment{Name: "a", UID: "1", Node: "n1"}, types.Attachment{Name: "b", UID: "2", Node: "n2"}
	c.SetAttachments(a, b)
	namesake := b
	namesake.UID = "3"
	if err := errors.Join(c.DeleteAttachment(ctx, a), c.DeleteAttachment(ctx, namesake)); err != nil {
		t.Fatal(err)
	}
	here, _ := c.NodeAttachments(ctx, "n1")
	there, err := c.NodeAttachments(ctx, "n2")
	if diff := cmp.Diff([]types.Attachment{b}, there); len(here) > 0 || err != nil || diff != "" {
		t.Errorf("%v, %v, %v", here, err, diff)
	}
	c.SetRunningPods("n2", types.PodRef{Name: "p"})
	here2, _ := c.RunningPods(ctx, types.Node{Name: "n1"})
	there2, err := c.RunningPods(ctx, types.Node{Name: "n2"})
	if len(here2) != 0 || len(there2) != 1 || err != nil {
		t.Errorf("%v, %v, %v", here2, there2, err)
	}
}

func TestEveryVerbOfApplicationsFailsAsItIsTold(t *testing.T) {
	no := errors.New("no")
	reads := map[string]bool{"attachments": true, "runningpods": true}
	for verb := range appVerbs(nil) {
		c := withApps()
		c.FailVerb(verb, no)
		if err := appVerbs(c)[verb](t.Context()); !errors.Is(err, no) || len(c.Calls(verb)) != 1 {
			t.Errorf("%s: %v after %v", verb, err, c.Calls(""))
		}
		c = withApps()
		c.SetFault(Refused)
		if err := appVerbs(c)[verb](t.Context()); err == nil || !reads[verb] && !errors.Is(err, types.ErrNoAnswer) {
			t.Errorf("%s of a dead server: %v", verb, err)
		}
		if reads[verb] {
			continue
		}
		c = withApps()
		c.LoseAnswer(verb)
		if err := appVerbs(c)[verb](t.Context()); !errors.Is(err, types.ErrNoAnswer) {
			t.Errorf("%s whose answer is lost: %v", verb, err)
		}
		if s, _ := c.Sets.Get("VirtualMachineInstanceReplicaSet/web"); verb == "wanted" && s.Wanted != 3 {
			t.Errorf("%s did not happen: %+v", verb, s)
		}
	}
}

func appVerbs(c *Cluster) map[string]func(context.Context) error {
	set := types.AppSet{Kind: types.KindVMIReplicaSet, Name: "web", UID: "s1", Version: "1"}
	vmi, lost := types.VMI{Name: "web00000", UID: "v1"}, types.Node{Name: "n2", UID: "u2"}
	return map[string]func(context.Context) error{
		"forcedelete": func(ctx context.Context) error { return c.ForceDeletePod(ctx, types.Pod{Name: "p", UID: "1"}) },
		"deletevmi":   func(ctx context.Context) error { return c.DeleteVMI(ctx, vmi) },
		"forgetvmi":   func(ctx context.Context) error { return c.ForgetVMI(ctx, vmi) },
		"wanted":      func(ctx context.Context) error { return c.SetWanted(ctx, set, 3) },
		"affinity":    func(ctx context.Context) error { return c.SetAffinity(ctx, set, "n1", true, types.RepairNote{}) },
		"noterepair":  func(ctx context.Context) error { return c.NoteRepair(ctx, set, types.RepairNote{}) },
		"attachments": func(ctx context.Context) error { _, err := c.NodeAttachments(ctx, "n2"); return err },
		"deleteattachment": func(ctx context.Context) error {
			return c.DeleteAttachment(ctx, types.Attachment{Name: "a", UID: "1"})
		},
		"fence":       func(ctx context.Context) error { return c.Fence(ctx, lost, types.Fence{By: "n1"}) },
		"unfence":     func(ctx context.Context) error { return c.Unfence(ctx, lost) },
		"witness":     func(ctx context.Context) error { return c.Witness(ctx, "n1", types.Witness{Round: 1}) },
		"runningpods": func(ctx context.Context) error { _, err := c.RunningPods(ctx, lost); return err },
	}
}
