package kubeapi

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/kubevirt"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// jsonObject is one of KubeVirt's or a replica set, as JSON has it.
type jsonObject = map[string]any

func vmiJSON(name string, more jsonObject) jsonObject {
	o := jsonObject{"metadata": jsonObject{"name": name, "namespace": access.Namespace, "uid": "uid-" + name, "resourceVersion": "5"}}
	for k, v := range more {
		o[k] = v
	}
	return o
}

func withMachines() *fakeAPI {
	api := someCluster()
	api.apps = map[string][]any{
		"virtualmachineinstances":           {vmiJSON("web4q8zt", nil)},
		"virtualmachineinstancereplicasets": {vmiJSON("web", nil)},
		"replicasets":                       {vmiJSON("native", nil)},
	}
	return api
}

func TestVirtualMachinesAndReplicaSetsHaveTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := withMachines()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		time.Sleep(time.Second)
		check(t, "instances", kubetest.Keys(tb.vmis.All()), []string{"web4q8zt"})
		check(t, "sets", kubetest.Keys(tb.sets.All()), []string{"ReplicaSet/native", "VirtualMachineInstanceReplicaSet/web"})
		if s := tb.status(); !s.Apps || !s.Synced {
			t.Errorf("status is %+v", s)
		}
	})
}

func TestAClusterWithoutKubeVirtHasNoVirtualMachinesAndIsAskedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		log, hook := logtest.NewNullLogger()
		c.Log = log
		api := someCluster()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		time.Sleep(time.Second)
		if s := tb.status(); !s.Apps || !s.Synced || !s.Answers() || len(tb.vmis.All()) != 0 {
			t.Errorf("status is %+v", s)
		}
		asked := func() (n int) {
			api.set(func() {
				for name, times := range api.requests {
					if strings.Contains(name, "kubevirt") || strings.HasSuffix(name, " /apis") {
						n += times
					}
				}
			})
			return n
		}
		before, said := asked(), len(hook.AllEntries())
		time.Sleep(10 * time.Minute)
		if n := asked() - before; n > 10 {
			t.Errorf("asked %d times in ten minutes", n)
		}
		for _, e := range hook.AllEntries()[said:] {
			t.Errorf("logged: %s", e.Message)
		}
		api.set(func() { api.apps = withMachines().apps })
		time.Sleep(62 * time.Second)
		check(t, "instances once it is installed", kubetest.Keys(tb.vmis.All()), []string{"web4q8zt"})
		if s := tb.status(); !s.Apps {
			t.Errorf("status is %+v", s)
		}
	})
}

func TestKubeVirtThatIsRemovedLeavesNoRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := withMachines()
		ends := make(chan struct{})
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isWatch(r) && strings.Contains(r.URL.Path, "kubevirt") && r.URL.Query().Get("sendInitialEvents") != "true" {
				var now chan struct{}
				api.set(func() { now = ends })
				if now != nil { // the server ends the watches of what is removed
					w.WriteHeader(http.StatusOK)
					select {
					case <-now:
					case <-r.Context().Done():
					}
					return
				}
			}
			api.ServeHTTP(w, r)
		})})
		defer end()
		time.Sleep(10 * time.Second)
		check(t, "instances", kubetest.Keys(tb.vmis.All()), []string{"web4q8zt"})
		api.set(func() { api.apps = nil; close(ends); ends = nil })
		time.Sleep(3 * time.Minute)
		check(t, "instances", kubetest.Keys(tb.vmis.All()), nil)
		check(t, "sets", kubetest.Keys(tb.sets.All()), []string{"ReplicaSet/native"})
		if s := tb.status(); !s.Apps || !s.Synced {
			t.Errorf("status is %+v", s)
		}
	})
}

func TestAFailingKubeVirtSpoilsNothingElse(t *testing.T) {
	for name, fault := range map[string]http.HandlerFunc{
		"forbidden": func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 403, failure(403, metav1.StatusReasonForbidden))
		},
		"500":   status500,
		"hangs": hang,
		"gone, says somebody who is no API server": notFound,
		"another answer": func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, jsonObject{"kind": "Namespace"}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, tb := newTestClient(t)
				api := withMachines()
				impostor := strings.HasPrefix(name, "gone")
				end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if strings.Contains(r.URL.Path, "kubevirt") || impostor && r.URL.Path == pathGroups {
						fault(w, r)
						return
					}
					api.ServeHTTP(w, r)
				})})
				defer end()
				time.Sleep(10 * time.Second)
				for range 20 {
					time.Sleep(30*time.Second + time.Millisecond)
					s := tb.status()
					if s.Apps || !s.Synced || !s.Answers() {
						t.Fatalf("status is %+v", s)
					}
				}
				if len(tb.nodes.All()) != 2 || len(tb.own.All()) != 2 || len(tb.appPods.All()) != 2 {
					t.Errorf("the tables are %v, %v, %v", kubetest.Keys(tb.nodes.All()), kubetest.Keys(tb.own.All()), kubetest.Keys(tb.appPods.All()))
				}
				check(t, "sets", kubetest.Keys(tb.sets.All()), []string{"ReplicaSet/native"})
			})
		})
	}
}

func TestAnIdleClientWithVirtualMachinesIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newTestClient(t)
		api := withMachines()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: endsWatches(api)})
		defer end()
		time.Sleep(time.Minute)
		before := api.count()
		time.Sleep(10 * time.Minute)
		if n := api.count() - before; n > 150 {
			t.Errorf("%d requests in ten idle minutes", n)
		} else {
			t.Logf("%d requests in ten idle minutes", n)
		}
	})
}

func TestASilentServerMakesTheTablesOfApplicationsUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := withMachines()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		time.Sleep(time.Minute)
		api.set(func() { api.fault = hang })
		time.Sleep(time.Minute)
		if s := tb.status(); s.Apps || s.Answers() {
			t.Errorf("status is %+v", s)
		}
		api.set(func() { api.fault = nil; api.apps["virtualmachineinstances"] = nil })
		time.Sleep(15 * time.Second)
		if s := tb.status(); !s.Apps || len(tb.vmis.All()) != 0 {
			t.Errorf("status is %+v, instances %v", s, kubetest.Keys(tb.vmis.All()))
		}
	})
}

func TestOneKindOfReplicaSetLeavesTheOtherInTheTable(t *testing.T) {
	var table pubsub.Table[types.AppSet]
	ours, theirs := setRows(&table, types.KindReplicaSet, kubevirt.PodSetOf), setRows(&table, types.KindVMIReplicaSet, kubevirt.VMISetOf)
	meta := metav1.ObjectMeta{Name: "a"}
	err := errors.Join(
		ours.Replace([]any{&appsv1.ReplicaSet{ObjectMeta: meta}}, "7"),
		theirs.Replace([]any{&kubevirtv1.VirtualMachineInstanceReplicaSet{ObjectMeta: meta}}, "7"))
	if err != nil {
		t.Fatal(err)
	}
	if err := ours.Replace(nil, "8"); err != nil {
		t.Fatal(err)
	}
	check(t, "sets", kubetest.Keys(table.All()), []string{types.KindVMIReplicaSet + "/a"})
}

func TestAListOfSomethingElseIsNoListOfVirtualMachines(t *testing.T) {
	for name, body := range map[string]any{
		"a namespace":        jsonObject{"kind": "Namespace", "apiVersion": "v1"},
		"pods":               jsonObject{"kind": "PodList", "apiVersion": "v1", "metadata": jsonObject{"resourceVersion": "7"}, "items": []any{}},
		"without a version":  jsonObject{"kind": "VirtualMachineInstanceList", "apiVersion": "kubevirt.io/v1", "items": []any{}},
		"one without a name": jsonObject{"kind": "VirtualMachineInstanceList", "apiVersion": "kubevirt.io/v1", "metadata": jsonObject{"resourceVersion": "7"}, "items": []any{jsonObject{}}},
		"a page":             "<html>",
	} {
		synctest.Test(t, func(t *testing.T) {
			c, tb := newTestClient(t)
			_ = tb.vmis.Publish("old", types.VMI{Name: "old"})
			api := withMachines()
			end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/virtualmachineinstances") && !isWatch(r) {
					reply(w, 200, body)
					return
				}
				api.ServeHTTP(w, r)
			})})
			defer end()
			time.Sleep(time.Minute)
			if s := tb.status(); s.Apps {
				t.Errorf("%s: status is %+v", name, s)
			}
			if diff := cmp.Diff([]string{"old"}, kubetest.Keys(tb.vmis.All())); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		})
	}
}
