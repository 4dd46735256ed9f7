package kubeapi

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// forbidden is the answer of an API server whose RBAC does not permit it.
func forbidden(w http.ResponseWriter, what string) {
	reply(w, 403, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
		"message": what + ` is forbidden: User "system:zedkube:n1" cannot list resource "` + what + `" in API group "" at the cluster scope`,
	})
}

// Each table alone is missing where its permission is, and comes when that is granted.
func TestAMissingPermissionIsNamedAndNothingElseStops(t *testing.T) {
	for kind, row := range map[string]struct{ table, named string }{
		"/api/v1/nodes":            {types.TableNodes, "list nodes"},
		"/eve-kube-app/pods":       {types.TableAppPods, "list pods in eve-kube-app"},
		"/leases":                  {viewLeases, "list leases.coordination.k8s.io in eve-kube-app"},
		"/services":                {types.TableServices, "list services"},
		"/ingresses":               {types.TableIngresses, "list ingresses.networking.k8s.io"},
		"/replicasets":             {viewSets, "list replicasets.apps in eve-kube-app"},
		"/virtualmachines":         {types.TableMachines, "list virtualmachines.kubevirt.io"},
		"/virtualmachineinstances": {types.TableVMIs, "list virtualmachineinstances.kubevirt.io in eve-kube-app"},
		"/clusterrolebindings":     {types.TableKubeconfigs, "list clusterrolebindings.rbac.authorization.k8s.io"},
		"/persistentvolumeclaims":  {types.TableClaims, "list persistentvolumeclaims in eve-kube-app"},
		"/daemonsets":              {types.TableLonghornDaemons, "list daemonsets.apps in longhorn-system"},
		"/engines":                 {types.TableLonghornEngines, "list engines.longhorn.io in longhorn-system"},
		"/recurringjobs":           {types.TableSnapshotJob, "list recurringjobs.longhorn.io in longhorn-system"},
	} {
		t.Run(row.table, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, tb := newTestClient(t)
				tb.lead(true)
				api, granted := withLonghorn(), make(chan struct{})
				api.apps = map[string][]any{} // there is KubeVirt
				end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					select {
					case <-granted:
					default:
						if strings.HasSuffix(r.URL.Path, kind) {
							forbidden(w, kind[strings.LastIndex(kind, "/")+1:])
							return
						}
					}
					api.ServeHTTP(w, r)
				})})
				defer end()
				time.Sleep(time.Minute)
				synctest.Wait()
				if refused := tb.credentials().Refused; !slices.Contains(strings.Split(refused, ", "), row.named) {
					t.Errorf("refused is %q, without %q", refused, row.named)
				}
				missing := func() (names []string) {
					for name, s := range tb.tables.All() {
						if !s.Complete {
							names = append(names, name+": "+s.Why)
						}
					}
					slices.Sort(names)
					return names
				}
				got := missing()
				if len(got) == 0 || !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, row.table+": the API server answers 403: ") }) ||
					slices.ContainsFunc(got, func(s string) bool { return !strings.Contains(s, "is forbidden: User") }) {
					t.Errorf("tables that are missing: %q", got)
				}
				if len(got) > 2 || !tb.status().Answers() {
					t.Errorf("missing are %q, and the API server is %+v", got, tb.status())
				}
				close(granted)
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				if got, refused := missing(), tb.credentials().Refused; len(got) > 0 || refused != "" {
					t.Errorf("after it was granted %q are missing, and refused is %q", got, refused)
				}
			})
		})
	}
}

// answers is a transport that answers as said.
type answers func(*http.Request) (int, string)

func (a answers) CloseAll() {}
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	code, body := a(r)
	w := httptest.NewRecorder()
	w.WriteHeader(code)
	_, _ = w.WriteString(body)
	return w.Result(), nil
}

func TestWhatAnAnswerSaysOfPermissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table pubsub.Table[types.Credentials]
		code, body := 403, ""
		record := access.NewCredentials(kubetest.Quiet(), &table)
		record.Configured(&rest.Config{})
		rt := &access.CredentialsRecorder{To: record, RoundTripper: answers(func(*http.Request) (int, string) { return code, body })}
		ask := func(method, path, want string) {
			t.Helper()
			req, _ := http.NewRequestWithContext(t.Context(), method, "https://kube"+path, http.NoBody)
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != body {
				t.Errorf("%s %s: who asked reads %q, %v", method, path, got, err)
			}
			if row, _ := table.Get(types.Global); row.Refused != want {
				t.Errorf("%s %s: refused is %q, not %q", method, path, row.Refused, want)
			}
		}
		const pods, evict = "/api/v1/namespaces/a/pods", "/api/v1/namespaces/a/pods/p/eviction"
		body = `{"message":"pods \"p\" is forbidden: exceeded quota: q"}`
		ask("POST", pods, "")
		body = `{"message":"admission webhook denied the request"}`
		ask("PATCH", "/api/v1/nodes/n1", "")
		body = "k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12pods is forbidden: User \"x\" cannot list resource" + strings.Repeat(".", 20<<10)
		ask("GET", pods, "list pods in a")
		ask("GET", pods+"?watch=true", "list pods in a, watch pods in a")
		ask("POST", evict, "create pods/eviction in a, list pods in a, watch pods in a")
		body = `{"message":"forbidden: User \"x\" cannot get path \"/metrics\""}`
		ask("GET", "/metrics", "create pods/eviction in a, get /metrics, list pods in a, watch pods in a")
		code, body = 404, "no such pod" // of nothing that is missing is anything proved
		ask("POST", evict, "create pods/eviction in a, get /metrics, list pods in a, watch pods in a")
		code = 200
		ask("POST", evict, "get /metrics, list pods in a, watch pods in a")
		ask("GET", "/api/v1/namespaces/b/pods", "get /metrics, list pods in a, watch pods in a")
		time.Sleep(time.Hour + time.Second)
		ask("GET", "/api/v1/nodes", "")

		const bind = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
		code, body = 403, `{"message":"clusterrolebindings is forbidden: user \"x\" (groups=[\"y\"]) is attempting to grant RBAC permissions not currently held"}`
		ask("POST", bind, "bind clusterroles.rbac.authorization.k8s.io")
		code = 201
		ask("POST", bind, "")

		code, body = 403, `{"message":"x is forbidden: User \"x\" cannot get"}`
		named := map[string]bool{}
		for i := range 20 {
			if i < 8 {
				named[fmt.Sprintf("get kind%d", i)] = true
			}
			ask("GET", fmt.Sprintf("/api/v1/kind%d/x", i), strings.Join(slices.Sorted(maps.Keys(named)), ", "))
		}
		record.Configured(&rest.Config{})
		code, body = 200, ""
		ask("GET", "/version", "")
	})
}
