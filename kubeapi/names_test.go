package kubeapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/zedkube/zedkube/kubeapi/network"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

const floorMap = "eve-ni-floor-allocations"

// ofEVE is what EVE's zedkube wrote of one workload of node n2.
const ofEVE = `{"version":1,"allocations":{"app-2":{"appUUID":"app-2","appName":"db","namespace":"shop","niUUID":"floor-id","niDisplayName":"floor","nodeName":"n2","macs":["02:16:00:00:00:02"],"ipv4":["10.55.0.8"]}}}`

func allocationsMap(text string, change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "eve-kube-app", Name: floorMap, UID: "uid-7", ResourceVersion: "7",
			Labels: map[string]string{"eve.zededa.com/managed-by": "zedkube-ni-dns", "eve.zededa.com/network-instance": "floor-id"},
		},
		Data: map[string]string{"allocations.json": text},
	}
	for _, c := range change {
		c(m)
	}
	return m
}

// adds has a workload of node n1 in the ConfigMap.
func adds(row types.NetworkAllocations) types.NetworkAllocations {
	next := types.NetworkAllocations{Network: "floor-id", Entries: map[string]types.Allocation{}}
	maps.Copy(next.Entries, row.Entries)
	next.Entries["app-1"] = types.Allocation{AppUUID: "app-1", AppName: "web", Namespace: "shop", NIUUID: "floor-id", NIDisplayName: "floor", NodeName: "n1", IPv4: []string{"10.55.0.7"}}
	return next
}

func empties(row types.NetworkAllocations) types.NetworkAllocations {
	return types.NetworkAllocations{Network: row.Network}
}

const ours = `{"version":1,"allocations":{"app-1":{"appUUID":"app-1","appName":"web","namespace":"shop","niUUID":"floor-id","niDisplayName":"floor","nodeName":"n1","ipv4":["10.55.0.7"]}`

func TestAddressesAreAddedToWhatEVEWroteForTheVersionThatWasSeen(t *testing.T) {
	c, kube := withFake(t, allocationsMap(ofEVE))
	if err := c.EditAllocations(t.Context(), floorMap, adds); err != nil {
		t.Fatal(err)
	}
	both := ours + "," + strings.TrimPrefix(ofEVE, `{"version":1,"allocations":{`)
	want := []map[string]any{{
		"metadata": map[string]any{"resourceVersion": "7", "labels": map[string]any{"eve.zededa.com/managed-by": "zedkube-ni-dns", "eve.zededa.com/network-instance": "floor-id"}},
		"data":     map[string]any{"allocations.json": both},
	}}
	if d := cmp.Diff(want, patches(t, kube)); d != "" {
		t.Error(d)
	}
	kube.ClearActions()
	if err := c.EditAllocations(t.Context(), floorMap, adds); err != nil || len(patches(t, kube)) > 0 {
		t.Errorf("the same again: %v, %v", patches(t, kube), err)
	}
}

func TestWhatANewerReleaseWroteOfItsWorkloadsStays(t *testing.T) {
	newer := strings.Replace(ofEVE, `"nodeName":"n2"`, `"nodeName":"n2","ports":[{"port":53}]`, 1)
	c, kube := withFake(t, allocationsMap(newer))
	if err := c.EditAllocations(t.Context(), floorMap, adds); err != nil {
		t.Fatal(err)
	}
	if sent := fmt.Sprint(patches(t, kube)); !strings.Contains(sent, strings.TrimPrefix(newer, `{"version":1,"allocations":{`)) || !strings.Contains(sent, "app-1") {
		t.Errorf("sent %s", sent)
	}
}

func TestAConfigMapOfAddressesIsMadeAndDeletedWithTheLastOne(t *testing.T) {
	c, kube := withFake(t)
	if err := c.EditAllocations(t.Context(), floorMap, empties); err != nil {
		t.Fatal(err)
	}
	if err := c.EditAllocations(t.Context(), floorMap, adds); err != nil {
		t.Fatal(err)
	}
	m, err := kube.CoreV1().ConfigMaps("eve-kube-app").Get(t.Context(), floorMap, metav1.GetOptions{})
	if err != nil || m.Data["allocations.json"] != ours+"}}" || m.Labels["eve.zededa.com/network-instance"] != "floor-id" || m.Labels["eve.zededa.com/managed-by"] != "zedkube-ni-dns" {
		t.Fatalf("made: %+v, %v", m, err)
	}
	c, kube = withFake(t, allocationsMap(ofEVE))
	if err := c.EditAllocations(t.Context(), floorMap, empties); err != nil {
		t.Fatal(err)
	}
	last := kube.Actions()[len(kube.Actions())-1].(k8stesting.DeleteActionImpl)
	if p := last.DeleteOptions.Preconditions; p == nil || *p.UID != "uid-7" || *p.ResourceVersion != "7" {
		t.Errorf("deleted with %+v", last.DeleteOptions)
	}
}

func TestOfTwoNodesThatWriteAtOnceTheLaterOneLooksAgain(t *testing.T) {
	c, kube := withFake(t, allocationsMap(`{"version":1,"allocations":{}}`))
	raced := false
	kube.PrependReactor("patch", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		if raced {
			return false, nil, nil
		}
		raced = true
		_ = kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), allocationsMap(ofEVE, func(m *corev1.ConfigMap) { m.ResourceVersion = "8" }), "eve-kube-app")
		return true, nil, apierrors.NewConflict(corev1.Resource("configmaps"), floorMap, errors.New("it changed"))
	})
	if err := c.EditAllocations(t.Context(), floorMap, adds); err != nil {
		t.Fatal(err)
	}
	sent := patches(t, kube)
	if text := fmt.Sprint(sent[len(sent)-1]); len(sent) != 2 || !strings.Contains(text, "app-1") || !strings.Contains(text, "app-2") || !strings.Contains(text, "resourceVersion:8") {
		t.Errorf("sent %v", sent)
	}
}

func TestAConfigMapThatIsNotOursOrCannotBeReadIsLeftAlone(t *testing.T) {
	for name, m := range map[string]*corev1.ConfigMap{
		"without the label":      allocationsMap(ofEVE, func(m *corev1.ConfigMap) { m.Labels = nil }),
		"of somebody else":       allocationsMap(ofEVE, func(m *corev1.ConfigMap) { m.Labels["eve.zededa.com/managed-by"] = "me" }),
		"no JSON":                allocationsMap(`{"version":1,`),
		"JSON of other kind":     allocationsMap(`{"version":1,"allocations":[1]}`),
		"an entry of other kind": allocationsMap(`{"version":1,"allocations":{"x":{"ipv4":"10.0.0.1"}}}`),
		"a later version":        allocationsMap(`{"version":2,"allocations":{}}`),
		"another object":         {ObjectMeta: metav1.ObjectMeta{Namespace: "eve-kube-app", Name: floorMap}},
	} {
		for what, edit := range map[string]func(types.NetworkAllocations) types.NetworkAllocations{"add": adds, "empty": empties} {
			c, kube := withFake(t, m)
			if name == "another object" {
				kube.PrependReactor("get", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) { return true, &corev1.ConfigMap{}, nil })
			}
			err := c.EditAllocations(t.Context(), floorMap, edit)
			if err == nil || len(kube.Actions()) != 1 {
				t.Errorf("%s, %s: %v, %v", name, what, err, kube.Actions())
			}
		}
	}
}

func TestMoreAddressesThanAConfigMapHoldsAreAnError(t *testing.T) {
	c, kube := withFake(t, allocationsMap(ofEVE))
	err := c.EditAllocations(t.Context(), floorMap, func(row types.NetworkAllocations) types.NetworkAllocations {
		next := adds(row)
		for i := range 9000 {
			next.Entries[fmt.Sprint(i)] = next.Entries["app-1"]
		}
		return next
	})
	if err == nil || !strings.Contains(err.Error(), "do not fit") || len(patches(t, kube)) > 0 {
		t.Error(err)
	}
}

func TestNamesArePublishedBesideWhatOthersHaveInCoreDNS(t *testing.T) {
	custom := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns-custom"}, Data: map[string]string{"site.server": "example.org {\n}\n"},
	}
	coredns := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}}
	coredns.Spec.Template.Annotations = map[string]string{"site": "x"}
	c, kube := withFake(t, custom, coredns)
	state := func() string {
		t.Helper()
		m, err := kube.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "coredns-custom", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		d, err := kube.AppsV1().Deployments("kube-system").Get(t.Context(), "coredns", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		data, _ := json.Marshal([]any{m.Data, d.Spec.Template.Annotations, network.DNSServerOf(m), network.DNSRolloutOf(d)})
		return string(data)
	}
	if err := c.PublishNames(t.Context(), "internal:53 {\n}\n", "hash-1"); err != nil {
		t.Fatal(err)
	}
	want := `[{"eve-ni.server":"internal:53 {\n}\n","site.server":"example.org {\n}\n"},{"eve.zededa.com/ni-dns-hash":"hash-1","site":"x"},` +
		`{"Text":"internal:53 {\n}\n","Clash":""},{"Hash":"hash-1"}]`
	if d := cmp.Diff(want, state()); d != "" {
		t.Error(d)
	}
	if err := c.PublishNames(t.Context(), "", "hash-2"); err != nil {
		t.Fatal(err)
	}
	want = `[{"site.server":"example.org {\n}\n"},{"eve.zededa.com/ni-dns-hash":"hash-2","site":"x"},{"Text":"","Clash":""},{"Hash":"hash-2"}]`
	if d := cmp.Diff(want, state()); d != "" {
		t.Error(d)
	}
}

func TestCoreDNSIsNotRestartedForNamesThatWereNotWritten(t *testing.T) {
	c, kube := withFake(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}})
	if err := c.PublishNames(t.Context(), "", "hash-0"); err != nil {
		t.Errorf("nothing, where there is nothing: %v", err)
	}
	kube.ClearActions()
	if err := c.PublishNames(t.Context(), "internal:53 {\n}\n", "hash-1"); err != nil {
		t.Errorf("without a ConfigMap: %v", err)
	}
	m, err := kube.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "coredns-custom", metav1.GetOptions{})
	if err != nil || len(m.Data) != 1 {
		t.Errorf("made: %+v, %v", m, err)
	}
	kube.PrependReactor("patch", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind(), "coredns-custom", nil)
	})
	kube.ClearActions()
	if err := c.PublishNames(t.Context(), "internal:53 {\n x\n}\n", "hash-2"); !errors.Is(err, types.ErrRefused) || len(kube.Actions()) != 1 {
		t.Errorf("an immutable one: %v, %v", err, kube.Actions())
	}
}

func TestAnotherServerOfTheZoneInternalIsFound(t *testing.T) {
	for text, clashes := range map[string]bool{
		"internal {\n}":                            true,
		"internal:53 {\n}":                         true,
		"dns://Internal.:53{\n}":                   true,
		"example.org,\ninternal {\n}":              true,
		"internal.:53, x {\n}":                     true,
		"internal:5353 {\n}":                       false,
		"corp.internal {\n}":                       false,
		"example.org {\n forward . ns.internal\n}": false,
		"": false,
	} {
		m := &corev1.ConfigMap{Data: map[string]string{"site.server": text, "eve-ni.server": "internal:53 {\n}", "x.override": "internal"}}
		if row := network.DNSServerOf(m); (row.Clash == "site.server") != clashes {
			t.Errorf("%q: %q", text, row.Clash)
		}
	}
}

func TestAddressesAreWatchedWhereOrchestrationIsNativeAndCoreDNSByTheLeaderThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := someCluster()
		named := func(name string, data map[string]string) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "x"}, Data: data}
		}
		api.services = map[string][]any{
			"configmaps":  {allocationsMap(ofEVE), named("other", nil), named("coredns-custom", map[string]string{"eve-ni.server": "internal:53 {\n}"})},
			"deployments": {&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "coredns", Namespace: "kube-system"}}},
		}
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		see := func(what string, want ...int) {
			t.Helper()
			time.Sleep(time.Second)
			if got := []int{len(tb.configMaps.All()), len(tb.dns.All()), len(tb.rollout.All())}; !slices.Equal(got, want) {
				t.Errorf("%s: the tables have %v rows, want %v", what, got, want)
			}
			for i, table := range []string{types.TableAllocations, types.TableDNSServer, types.TableDNSRollout} {
				if s, ok := tb.tables.Get(table); ok != (want[i] > 0) || ok && !s.Complete {
					t.Errorf("%s: table %s is %+v", what, table, s)
				}
			}
		}
		belongs := func(native bool) {
			_ = tb.member.Publish(types.Global, types.ClusterMembership{
				State:  types.MembershipMember,
				Config: &types.EdgeNodeClusterConfig{ClusterType: types.ClusterTypeReplicatedStorage, EnableNativeK8SOrchestration: native},
			})
		}
		see("at the start", 0, 0, 0)
		tb.lead(true)
		belongs(false)
		see("a leader where it is not native", 0, 0, 0)
		api.set(func() {
			for name, n := range api.requests {
				// Of eve-kube-app one ConfigMap is watched everywhere, by its name: that of disabled workloads.
				if strings.Contains(name, "configmaps") && !strings.Contains(name, "kube-system") && !strings.Contains(name, "eve-kube-app") || strings.Contains(name, "kube-system/deployments") {
					t.Errorf("%d requests %s", n, name)
				}
			}
		})
		belongs(true)
		see("a leader where it is", 1, 1, 1)
		tb.lead(false)
		see("one that leads no longer", 1, 0, 0)
		tb.lead(true)
		belongs(false)
		see("not native any more", 0, 0, 0)
		api.set(func() {
			if n := api.requests["GET /api/v1/configmaps"] + api.requests["GET /apis/apps/v1/deployments"]; n > 0 {
				t.Errorf("%d lists of the whole cluster", n)
			}
		})
		row := network.AllocationsOf(allocationsMap(ofEVE))
		if is := row.Entries["app-2"]; row.Network != "floor-id" || is.NodeName != "n2" || is.IPv4[0] != "10.55.0.8" || row.Why != "" {
			t.Errorf("what EVE wrote is %+v", row)
		}
	})
}
