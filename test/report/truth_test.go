//go:build linux

package report

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// truth writes the history of the cluster from what the API server says, past
// all faults.
type truth struct {
	*history
	stop func()

	objects sync.Mutex
	pods    map[string]*corev1.Pod
	longest time.Duration                                    // that one change took to be noted
	custom  map[string]map[string]*unstructured.Unstructured // by resource, by name
}

// followed are the resources that make up a report.
var followed = []schema.GroupVersionResource{
	{Version: "v1", Resource: "nodes"},
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "persistentvolumeclaims"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"},
	{Group: "longhorn.io", Version: "v1beta2", Resource: "volumes"},
	{Group: "longhorn.io", Version: "v1beta2", Resource: "engines"},
	{Group: "longhorn.io", Version: "v1beta2", Resource: "replicas"},
	{Group: "longhorn.io", Version: "v1beta2", Resource: "snapshots"},
}

// follow begins to write; it returns when everything that is there is noted.
func follow(config *rest.Config) (*truth, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	t := &truth{
		history: newHistory(time.Now().Add(-time.Hour)), pods: map[string]*corev1.Pod{},
		custom: map[string]map[string]*unstructured.Unstructured{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	t.stop = func() { cancel(); factory.Shutdown() }
	for _, of := range followed {
		t.custom[of.Resource] = map[string]*unstructured.Unstructured{}
		see := func(o any, there bool) {
			if lost, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = lost.Obj
			}
			t.see(of.Resource, o.(*unstructured.Unstructured), there)
		}
		_, err := factory.ForResource(of).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { see(o, true) }, UpdateFunc: func(_, o any) { see(o, true) }, DeleteFunc: func(o any) { see(o, false) },
		})
		if err != nil {
			t.stop()
			return nil, err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return t, nil
}

// see notes what an object makes of the report.
func (t *truth) see(resource string, o *unstructured.Unstructured, there bool) {
	now := time.Now()
	t.objects.Lock()
	defer t.objects.Unlock()
	ours := o.GetNamespace() == devcluster.AppNamespace
	switch resource {
	case "nodes":
		t.set(thing{types.SectionNodes, o.GetName()}, nodeFact(nodeInfo(typed[corev1.Node](o))), there, now)
	case "pods":
		t.seePod(typed[corev1.Pod](o), there, now)
	case "virtualmachineinstances":
		t.set(thing{types.SectionAppVMIs, o.GetName()}, vmiFact(vmiInfo(o)), there && ours, now)
	case "services":
		for _, s := range serviceInfos(typed[corev1.Service](o)) {
			t.set(serviceThing(s), fact(s), there, now)
		}
	case "ingresses":
		for _, i := range ingressInfos(typed[networkingv1.Ingress](o)) {
			t.set(ingressThing(i), fact(i), there, now)
		}
	default:
		t.custom[resource][o.GetName()] = o
		if !there {
			delete(t.custom[resource], o.GetName())
		}
		t.seeVolume(volumeOf(resource, o), now)
	}
	t.longest = max(t.longest, time.Since(now))
}

func (t *truth) set(what thing, value string, there bool, at time.Time) {
	if !there {
		value = gone
	}
	t.note(what, value, at)
}

func (t *truth) seePod(p *corev1.Pod, there bool, now time.Time) {
	t.pods[p.Namespace+"/"+p.Name] = p
	if !there {
		delete(t.pods, p.Namespace+"/"+p.Name)
	}
	var all types.KubePodNameSpaceInfo
	for _, other := range t.pods {
		if other.Namespace == p.Namespace {
			count(&all, other)
		}
	}
	t.set(thing{types.SectionNamespaces, p.Namespace}, fact(all), all.PodCount > 0, now)
	if p.Namespace == devcluster.AppNamespace && !strings.HasPrefix(p.Name, "virt-launcher-") {
		t.set(thing{types.SectionAppPods, p.Name}, podFact(podInfo(p)), there, now)
	}
}

// volumeOf is the volume that an object of Longhorn, or a claim, belongs to.
func volumeOf(resource string, o *unstructured.Unstructured) string {
	switch resource {
	case "volumes":
		return o.GetName()
	case "persistentvolumeclaims":
		return strings.TrimSuffix(o.GetName(), "-pvc-0")
	case "snapshots":
		return text(o, "spec", "volume")
	}
	return text(o, "spec", "volumeName")
}

// seeVolume notes what is told of a volume, by all that belongs to it.
func (t *truth) seeVolume(name string, now time.Time) {
	entry := name + "-pvc-0"
	volume, claim := t.custom["volumes"][name], t.custom["persistentvolumeclaims"][entry]
	if volume == nil || claim == nil {
		for part := range t.present() {
			if slices.Contains([]string{types.SectionStorage, types.SectionAllocated}, part.section) && strings.Fields(part.name)[0] == entry {
				t.note(part, gone, now)
			}
		}
		return
	}
	size, _ := strconv.ParseUint(text(volume, "spec", "size"), 10, 64)
	info := types.KubeVolumeInfo{
		Name: entry, ProvisionedBytes: size, State: volumeStates[text(volume, "status", "state")],
		Robustness:     robustnesses[text(volume, "status", "robustness")],
		PvcStatus:      claimStates[text(claim, "status", "phase")],
		AllocatedBytes: uint64(number(volume, "status", "actualSize")),
	}
	for _, s := range t.custom["snapshots"] {
		if text(s, "spec", "volume") == name {
			info.AllocatedBytes += uint64(number(s, "status", "size"))
		}
	}
	engine := t.custom["engines"][name+"-e-0"]
	for _, r := range t.custom["replicas"] {
		if text(r, "spec", "volumeName") == name && engine != nil && text(r, "status", "ownerID") != "" {
			info.Replicas = append(info.Replicas, replicaInfo(r, engine))
		}
	}
	facts := map[thing]string{}
	volumeFacts(facts, info)
	facts[thing{types.SectionStorage, entry + " substate"}] = fitting
	for part, value := range facts {
		t.note(part, value, now)
	}
}

var (
	volumeStates = map[string]types.StorageVolumeState{
		"attached": types.StorageVolumeStateAttached, "detached": types.StorageVolumeStateDetached,
	}
	robustnesses = map[string]types.StorageVolumeRobustness{
		"healthy": types.StorageVolumeRobustnessHealthy, "degraded": types.StorageVolumeRobustnessDegraded, "faulted": types.StorageVolumeRobustnessFaulted,
	}
	claimStates = map[string]types.StorageVolumePvcStatus{
		"Bound": types.StorageVolumePvcStatusBound, "Pending": types.StorageVolumePvcStatusPending, "Lost": types.StorageVolumePvcStatusFaulted,
	}
)

func replicaInfo(r, engine *unstructured.Unstructured) types.KubeVolumeReplicaInfo {
	info := types.KubeVolumeReplicaInfo{Name: r.GetName(), OwnerNode: text(r, "spec", "nodeID")}
	if text(r, "status", "currentState") != "running" {
		info.Status = types.StorageVolumeReplicaStatusOffline
		return info
	}
	address := "tcp://" + text(r, "status", "ip") + ":" + strconv.FormatInt(number(r, "status", "port"), 10)
	switch text(engine, "status", "replicaModeMap", r.GetName()) {
	case "RW":
		info.Status, info.RebuildProgressPercentage = types.StorageVolumeReplicaStatusOnline, 100
	case "WO":
		info.Status = types.StorageVolumeReplicaStatusRebuilding
		info.RebuildProgressPercentage = uint8(number(engine, "status", "rebuildStatus", address, "progress"))
	case "ERR":
		info.Status = types.StorageVolumeReplicaStatusFailed
	}
	return info
}

// typed is an object as its kind has it.
func typed[T any](o *unstructured.Unstructured) *T {
	var v T
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &v) // the API server made it
	return &v
}
