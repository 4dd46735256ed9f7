package kubeapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/network"
	"github.com/zedkube/zedkube/kubeapi/storage"
	"github.com/zedkube/zedkube/types"
)

func TestEveryVerbThatWritesIsKnownHere(t *testing.T) {
	known := writings()
	for i := range reflect.TypeFor[*Client]().NumMethod() {
		name := reflect.TypeFor[*Client]().Method(i).Name
		_, writes := known[name]
		if writes == slices.Contains(readings, name) {
			t.Errorf("%s: say in this test what record it leaves, or that it only reads", name)
		}
	}
}

func TestEveryWriteLeavesOneRecord(t *testing.T) {
	for name, w := range writings() {
		if w.do == nil {
			continue
		}
		for kind, server := range map[string]*obedient{
			"ok":      {objects: world()},
			"refused": {objects: world(), refuse: http.StatusForbidden},
		} {
			c, book := serves(t, server)
			ctx := types.Because(types.ActAs(t.Context(), "drain"), "OPERATOR", "a disk is changed")
			err := w.do(ctx, c)
			want := []string{}
			if w.want != "" {
				want = append(want, w.want+" "+kind)
			}
			if got := book.lines(); !slices.Equal(got, want) {
				t.Errorf("%s, %s: it left %q, not %q (%v)", name, kind, got, want, err)
			}
			for _, o := range book.all {
				if o.Component != "drain" || o.By != "OPERATOR" || o.Why != "a disk is changed" || (o.Error == "") != (kind == "ok") {
					t.Errorf("%s, %s: its record is %+v", name, kind, o)
				}
			}
		}
	}
}

func TestAWriteThatIsRepeatedLeavesOneRecord(t *testing.T) {
	server := &obedient{objects: world(), stale: 3}
	c, book := serves(t, server)
	if err := c.Cordon(t.Context(), "n1", types.Cordon{}); err != nil {
		t.Fatal(err)
	}
	if got := book.lines(); server.writes != 4 || !slices.Equal(got, []string{"cordon node/n1 ok"}) {
		t.Errorf("%d writes left %q", server.writes, got)
	}
}

func TestWhatChangesNothingIsNotOnRecord(t *testing.T) {
	c, book := serves(t, &obedient{objects: world()})
	for range 2 {
		if err := c.Stamp(t.Context(), "n1", types.AgentStamp{Version: "1"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := book.lines(); len(got) != 1 {
		t.Errorf("a stamp that says nothing new left a record: %q", got)
	}
}

func TestAWriteWithoutAnAnswerIsSaidToBeOne(t *testing.T) {
	objects := world()
	lost := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			(&obedient{objects: objects}).ServeHTTP(w, r)
			return
		}
		reply(w, http.StatusInternalServerError, failure(http.StatusInternalServerError, metav1.StatusReasonInternalError))
	}
	c, book := serves(t, http.HandlerFunc(lost))
	_ = c.Cordon(t.Context(), "n1", types.Cordon{})
	_ = c.Evict(t.Context(), types.Pod{Namespace: "ns", Name: "p"})
	if got := book.lines(); !slices.Equal(got, []string{"cordon node/n1 unanswered", "evict pod/ns/p unanswered"}) {
		t.Errorf("it left %q", got)
	}
}

func TestAnAnswerThatKnowsUsNotIsARefusal(t *testing.T) {
	stranger := func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusUnauthorized, failure(http.StatusUnauthorized, metav1.StatusReasonUnauthorized))
	}
	c, book := serves(t, http.HandlerFunc(stranger))
	_ = c.Evict(t.Context(), types.Pod{Namespace: "ns", Name: "p"})
	end := &access.AuditTransport{RoundTripper: onlyCode(http.StatusUnauthorized), Log: book}
	req := httptest.NewRequest(http.MethodDelete, "/api/v1/namespaces/ns/pods/q", nil)
	if resp, err := end.RoundTrip(req); err == nil {
		resp.Body.Close()
	}
	if got := book.lines(); !slices.Equal(got, []string{"evict pod/ns/p refused", "delete pod pod/ns/q refused"}) {
		t.Errorf("it left %q", got)
	}
}

func TestAVerbThatCannotEvenAskIsOnRecordAsFailed(t *testing.T) {
	book := &ledger{}
	c := over(nil, book)
	if err := c.Cordon(t.Context(), "n1", types.Cordon{}); !errors.Is(err, types.ErrNoAPI) {
		t.Fatal(err)
	}
	if got := book.lines(); !slices.Equal(got, []string{"cordon node/n1 failed"}) {
		t.Errorf("it left %q", got)
	}
}

func TestKeepCordonIsOnRecord(t *testing.T) {
	c, book := serves(t, &obedient{objects: world()})
	_ = c.KeepCordon(t.Context(), "n1") // there is no cordon
	if got := book.lines(); !slices.Equal(got, []string{"keep cordon node/n1 failed"}) {
		t.Errorf("it left %q", got)
	}
}

func TestUncordonOfAnOperatorIsOnRecord(t *testing.T) {
	for cordoned, want := range map[bool][]string{true: {"uncordon node/n1 ok"}, false: nil} {
		objects := world()
		objects["/api/v1/nodes/n1"]["spec"] = jsonObject{"unschedulable": cordoned}
		c, book := serves(t, &obedient{objects: objects})
		if err := c.OperatorUncordon(t.Context(), "n1"); err != nil {
			t.Error(err)
		}
		if got := book.lines(); !slices.Equal(got, want) {
			t.Errorf("cordoned %v, it left %q", cordoned, got)
		}
	}
}

// TestNoClientGoesRoundTheRecord writes with every client of a connection, under
// no verb.
func TestNoClientGoesRoundTheRecord(t *testing.T) {
	c, book := serves(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusForbidden, failure(http.StatusForbidden, metav1.StatusReasonForbidden))
	}))
	conn, ctx := c.session.Present(), t.Context()
	none, patch := metav1.DeleteOptions{}, []byte("{}")
	for name, row := range map[string]struct {
		do   func()
		want string
	}{
		"kube":   {func() { _ = conn.Kube.CoreV1().Pods("ns").Delete(ctx, "p", none) }, "delete pod pod/ns/p refused"},
		"status": {func() { _, _ = conn.Kube.CoreV1().Nodes().PatchStatus(ctx, "n1", patch) }, "patch node status node/n1 refused"},
		"made": {func() {
			_, _ = conn.Kube.CoreV1().ConfigMaps("ns").Create(ctx, &corev1.ConfigMap{}, metav1.CreateOptions{})
		}, "create configmap configmap/ns refused"},
		"prober":   {func() { _ = conn.Prober.CoreV1().Nodes().Delete(ctx, "n1", none) }, "delete node node/n1 refused"},
		"longhorn": {func() { _ = conn.Longhorn.Volumes("l").Delete(ctx, "v", none) }, "delete volume volume/l/v refused"},
		"apps":     {func() { _ = conn.Virt.VirtualMachineInstances(access.Namespace).Delete(ctx, "vm", none) }, "delete virtualmachineinstance virtualmachineinstance/" + access.Namespace + "/vm refused"},
		"parts":    {func() { _ = access.Kept[storage.Clients](conn).Volumes.Delete(ctx, "v", none) }, "delete volume volume/" + types.NamespaceLonghorn + "/v refused"},
		"custom": {func() {
			_, _ = network.NadsOn(conn).Create(ctx, &unstructured.Unstructured{Object: map[string]any{"kind": network.NadKind}}, metav1.CreateOptions{})
		}, "create network-attachment-definition network-attachment-definition/" + access.Namespace + " refused"},
		"logs": {func() { _ = conn.Logs.Pods("ns").Delete(ctx, "p", none) }, "delete pod pod/ns/p refused"},
		"dry run": {func() {
			_ = conn.Kube.CoreV1().Pods("ns").Delete(ctx, "p", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		}, "delete pod pod/ns/p refused"}, // the body of a deletion is not read
		"dry patch": {func() {
			_, _ = conn.Kube.CoreV1().Nodes().Patch(ctx, "n1", ktypes.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		}, ""},
		"lease": {func() { _ = conn.Kube.CoordinationV1().Leases("ns").Delete(ctx, "l", none) }, ""},
		"event": {func() { _ = conn.Kube.CoreV1().Events("ns").Delete(ctx, "e", none) }, ""},
		"read":  {func() { _, _ = conn.Kube.CoreV1().Pods("ns").List(ctx, metav1.ListOptions{}) }, ""},
	} {
		book.all = nil
		row.do()
		if got := strings.Join(book.lines(), "; "); got != row.want {
			t.Errorf("%s left %q, not %q", name, got, row.want)
		}
	}
}

// TestRecordsOfManyAtOnce is for the race detector.
func TestRecordsOfManyAtOnce(t *testing.T) {
	c, book := serves(t, &obedient{objects: world()})
	var all sync.WaitGroup
	for name, w := range writings() {
		if w.do == nil || name == "ForgetVMI" {
			continue
		}
		all.Go(func() { _ = w.do(t.Context(), c) })
	}
	all.Wait()
	for _, o := range book.all {
		if o.Outcome == types.OperationBegun || strings.Contains(o.Op, "twice") {
			t.Errorf("%+v has no end, or two", o)
		}
	}
}
