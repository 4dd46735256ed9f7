package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/kubevirt"
	"github.com/zedkube/zedkube/types"
)

var setPaths = map[string]string{types.KindVMIReplicaSet: pathVMISet, types.KindReplicaSet: pathSet}

func setOf(kind string) types.AppSet {
	return types.AppSet{Kind: kind, Name: "web", UID: "u1", Version: "5"}
}

func setVerbs(c *Client, set types.AppSet) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"scale": func(ctx context.Context) error {
			return c.ScaleSet(ctx, set, types.SetScale{Former: &types.FormerScale{UID: "u1", Replicas: 1}})
		},
		"wanted":   func(ctx context.Context) error { return c.SetWanted(ctx, set, 1) },
		"note":     func(ctx context.Context) error { return c.NoteRepair(ctx, set, types.RepairNote{Step: "fenced"}) },
		"affinity": func(ctx context.Context) error { return c.SetAffinity(ctx, set, "n2", false, types.RepairNote{}) },
	}
}

func TestWhatIsWrittenOnAReplicaSet(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, row := range map[string]struct {
		write func(context.Context, *Client, types.AppSet) error
		want  string
	}{
		"replicas": {
			func(ctx context.Context, c *Client, s types.AppSet) error { return c.SetWanted(ctx, s, 1) },
			`{"metadata":{"resourceVersion":"5","uid":"u1"},"spec":{"replicas":1}}`,
		},
		"a note": {
			func(ctx context.Context, c *Client, s types.AppSet) error {
				return c.NoteRepair(ctx, s, types.RepairNote{Act: types.ActFailover, Node: "n1", Since: since})
			},
			`{"metadata":{"resourceVersion":"5","uid":"u1","annotations":{"zedkube.github.io/repair":"{\"act\":\"failover\",\"node\":\"n1\",\"since\":\"2026-01-02T03:04:05Z\"}"}}}`,
		},
		"no note": {
			func(ctx context.Context, c *Client, s types.AppSet) error {
				return c.NoteRepair(ctx, s, types.RepairNote{})
			},
			`{"metadata":{"resourceVersion":"5","uid":"u1","annotations":{"zedkube.github.io/repair":null}}}`,
		},
		"a requirement": {
			func(ctx context.Context, c *Client, s types.AppSet) error {
				return c.SetAffinity(ctx, s, "b", true, types.RepairNote{Moved: since, MovedTo: "b"})
			},
			`{"metadata":{"resourceVersion":"5","uid":"u1","annotations":{"zedkube.github.io/repair":"{\"moved\":\"2026-01-02T03:04:05Z\",\"movedTo\":\"b\"}"}},"spec":{"template":{"spec":{"affinity":{"nodeAffinity":{` +
				required(term(hostB)) + `,"preferredDuringSchedulingIgnoredDuringExecution":null}}}}}}`,
		},
	} {
		for kind, p := range setPaths {
			s := objectsOf(map[string]jsonObject{p: named(p, "u1", nil)})
			if err := row.write(t.Context(), s.client(t), setOf(kind)); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var want jsonObject
			_ = json.Unmarshal([]byte(row.want), &want)
			if diff := cmp.Diff([]asked{{http.MethodPatch, p, want}}, s.asked, cmp.AllowUnexported(asked{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestAReplicaSetThatChangedMeanwhileIsAConflict(t *testing.T) {
	for what, change := range map[string]func(s *objectsAPI, o jsonObject){
		"changed": func(_ *objectsAPI, o jsonObject) { o["metadata"].(jsonObject)["resourceVersion"] = "6" },
		"gone":    func(s *objectsAPI, _ jsonObject) { clear(s.objects) },
		"another": func(_ *objectsAPI, o jsonObject) {
			o["metadata"].(jsonObject)["uid"], o["metadata"].(jsonObject)["resourceVersion"] = "u2", "6"
		},
	} {
		for kind, p := range setPaths {
			for verb := range setVerbs(nil, types.AppSet{}) {
				s := objectsOf(map[string]jsonObject{p: named(p, "u1", nil)})
				change(s, s.objects[p])
				before, _ := json.Marshal(s.objects)
				err := setVerbs(s.client(t), setOf(kind))[verb](t.Context())
				if after, _ := json.Marshal(s.objects); !errors.Is(err, types.ErrConflict) || string(before) != string(after) {
					t.Errorf("%s of one that is %s: %v", verb, what, err)
				}
			}
		}
	}
}

func TestAWriteOnAReplicaSetSaysWhatKindOfNoItGot(t *testing.T) {
	for what, row := range map[string]struct {
		lie  http.HandlerFunc
		want error
	}{
		"500": {status500, types.ErrNoAnswer}, "hang": {hang, types.ErrNoAnswer},
		"another object": {func(w http.ResponseWriter, r *http.Request) {
			o := named(r.URL.Path, "u1", nil)
			o["metadata"].(jsonObject)["name"] = "other"
			reply(w, 200, o)
		}, access.ErrOther},
		"a page": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, nil},
	} {
		for kind, p := range setPaths {
			for verb := range setVerbs(nil, types.AppSet{}) {
				synctest.Test(t, func(t *testing.T) {
					s := objectsOf(map[string]jsonObject{p: named(p, "u1", nil)})
					s.lie = row.lie
					err := setVerbs(s.client(t), setOf(kind))[verb](t.Context())
					if err == nil || row.want != nil && !errors.Is(err, row.want) {
						t.Errorf("%s after %s: %v", verb, what, err)
					}
				})
			}
		}
	}
}

func TestWhatIsNeverWrittenOnAReplicaSet(t *testing.T) {
	s := objectsOf(map[string]jsonObject{pathSet: named(pathSet, "u1", nil)})
	c, set := s.client(t), setOf(types.KindReplicaSet)
	for name, err := range map[string]error{
		"0 replicas":      c.SetWanted(t.Context(), set, 0),
		"-1 replicas":     c.SetWanted(t.Context(), set, -1),
		"no host":         c.SetAffinity(t.Context(), set, "", true, types.RepairNote{}),
		"too much":        c.NoteRepair(t.Context(), set, types.RepairNote{Step: strings.Repeat("x", access.AnnotationText)}),
		"without version": c.SetWanted(t.Context(), types.AppSet{Kind: types.KindReplicaSet, Name: "web", UID: "u1"}, 1),
		"a long note":     c.SetAffinity(t.Context(), set, "n1", true, types.RepairNote{Step: strings.Repeat("x", access.AnnotationText)}),
		"without UID":     c.SetWanted(t.Context(), types.AppSet{Kind: types.KindReplicaSet, Name: "web", Version: "5"}, 1),
		"another kind":    c.SetWanted(t.Context(), types.AppSet{Kind: "Deployment", Name: "web", UID: "u1", Version: "5"}, 1),
	} {
		if err == nil || len(s.asked) > 0 {
			t.Errorf("%s: %v, asked %v", name, err, s.asked)
		}
	}
}

func TestAWorkloadIsDisabledAndEnabledInOnePatchEach(t *testing.T) {
	note := `{\"uid\":\"u1\",\"replicas\":3,\"paused\":true}`
	for name, row := range map[string]struct {
		to        types.SetScale
		vmi, pods string
	}{
		"disabled": {
			types.SetScale{Former: &types.FormerScale{UID: "u1", Replicas: 3, Paused: true}},
			`{"metadata":{"resourceVersion":"5","uid":"u1","annotations":{"zedkube.github.io/disabled":"` + note + `"}},"spec":{"replicas":0,"paused":null}}`,
			`{"metadata":{"resourceVersion":"5","uid":"u1","annotations":{"zedkube.github.io/disabled":"` + note + `"}},"spec":{"replicas":0}}`,
		},
		"enabled": {
			types.SetScale{Replicas: 3, Paused: true},
			`{"metadata":{"resourceVersion":"5","uid":"u1","annotations":{"zedkube.github.io/disabled":null}},"spec":{"replicas":3,"paused":true}}`,
			`{"metadata":{"resourceVersion":"5","uid":"u1","annotations":{"zedkube.github.io/disabled":null}},"spec":{"replicas":3}}`,
		},
	} {
		for kind, p := range setPaths {
			s := objectsOf(map[string]jsonObject{p: named(p, "u1", nil)})
			if err := s.client(t).ScaleSet(t.Context(), setOf(kind), row.to); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var want jsonObject
			_ = json.Unmarshal([]byte(map[string]string{types.KindVMIReplicaSet: row.vmi, types.KindReplicaSet: row.pods}[kind]), &want)
			if diff := cmp.Diff([]asked{{http.MethodPatch, p, want}}, s.asked, cmp.AllowUnexported(asked{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestAFormerScaleCountsOnlyForTheSetThatItWasWrittenFor(t *testing.T) {
	for note, counts := range map[string]bool{
		`{"uid":"u1","replicas":2}`: true, `{"uid":"of-another","replicas":2}`: false, `{"uid":"u1","replicas":0}`: false,
		`{"uid":"u1","replicas":-3}`: false, `{"replicas":2}`: false, `[]`: false, `{"uid":"u1","replicas":"2"}`: false, ``: false,
	} {
		var set appsv1.ReplicaSet
		set.UID, set.Annotations = "u1", map[string]string{kubevirt.DisabledAnnotation: note}
		if row := kubevirt.PodSetOf(&set); (row.Former != nil) != counts || counts && row.Former.Replicas != 2 {
			t.Errorf("%s: %+v", note, row.Former)
		}
	}
	yes := true
	for note, counts := range map[string]bool{
		`{"uid":"u1","running":true}`: true, `{"uid":"u1","runStrategy":"Manual"}`: true, `{"uid":"u2","running":true}`: false,
		`{"uid":"u1","runStrategy":"Halted"}`: false, `{"uid":"u1"}`: false, `{`: false,
	} {
		var m kubevirtv1.VirtualMachine
		m.UID, m.Spec.Running, m.Annotations = "u1", &yes, map[string]string{kubevirt.DisabledAnnotation: note}
		if row := kubevirt.MachineOf(&m); (row.Former != nil) != counts || row.Run.Halted() {
			t.Errorf("%s: %+v", note, row)
		}
	}
}

func TestAMachineIsIdleOnlyWhereNothingStartsIt(t *testing.T) {
	for _, row := range []struct {
		strategy kubevirtv1.VirtualMachineRunStrategy
		status   kubevirtv1.VirtualMachinePrintableStatus
		idle     bool
	}{
		{kubevirtv1.RunStrategyAlways, kubevirtv1.VirtualMachineStatusStopped, false},
		{kubevirtv1.RunStrategyManual, kubevirtv1.VirtualMachineStatusStopped, true},
		{kubevirtv1.RunStrategyManual, kubevirtv1.VirtualMachineStatusRunning, false},
		{kubevirtv1.RunStrategyRerunOnFailure, kubevirtv1.VirtualMachineStatusStopped, true},
		{kubevirtv1.RunStrategyRerunOnFailure, kubevirtv1.VirtualMachineStatusCrashLoopBackOff, false},
		{kubevirtv1.RunStrategyOnce, kubevirtv1.VirtualMachineStatusStopped, true},
		{kubevirtv1.RunStrategyOnce, "", false},
		{kubevirtv1.RunStrategyHalted, kubevirtv1.VirtualMachineStatusStopping, true},
	} {
		var m kubevirtv1.VirtualMachine
		m.Spec.RunStrategy, m.Status.PrintableStatus = &row.strategy, row.status
		if got := kubevirt.MachineOf(&m); got.Idle() != row.idle {
			t.Errorf("%s, %s: %+v", row.strategy, row.status, got)
		}
	}
}

func TestAnAffinityThatIsThereIsNotWritten(t *testing.T) {
	s := objectsOf(map[string]jsonObject{pathSet: named(pathSet, "u1", nil)})
	var spec jsonObject
	_ = json.Unmarshal([]byte(`{"template":{"spec":{"affinity":{"nodeAffinity":{`+preferred(weighs("100", hostB))+`}}}}}`), &spec)
	s.objects[pathSet]["spec"] = spec
	if err := s.client(t).SetAffinity(t.Context(), setOf(types.KindReplicaSet), "b", false, types.RepairNote{}); err != nil || len(s.asked) > 0 {
		t.Errorf("%v, asked %v", err, s.asked)
	}
}

func TestWhatDisablesWorkloadsIsBoundedWhoeverWroteIt(t *testing.T) {
	text, _ := json.Marshal(types.DisabledWorkloads{By: strings.Repeat("n", 10_000), Reason: strings.Repeat("é", 400_000)})
	for data, cut := range map[string]bool{string(text): true, `{"reason":"a switch"}`: false, `{"since":"soon"}`: false, `[`: false, ``: false} {
		m := &corev1.ConfigMap{Data: map[string]string{"disabled.json": data}}
		m.UID = "u1"
		if row := kubevirt.DisabledOf(m); row != (types.DisabledWorkloads{}) {
			t.Errorf("without its label it says %+v", row)
		}
		m.Labels = map[string]string{"zedkube.github.io/workloads": "disabled"}
		if row := kubevirt.DisabledOf(m); row.UID != "u1" || cut != (len(row.Reason) > 100) || len(row.Reason) > 500 || len(row.By) > 300 {
			t.Errorf("%.20s: %d bytes of a reason, %d of a node", data, len(row.Reason), len(row.By))
		}
	}
}
