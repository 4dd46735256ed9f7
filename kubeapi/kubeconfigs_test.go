package kubeapi

import (
	"context"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestABindingWhoseCreationWasNotAnsweredIsRemoved(t *testing.T) {
	const bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	for name, made := range map[string]bool{"it was made": true, "it was not": false} {
		ctx, gone := context.WithCancel(t.Context())
		s := objectsOf(map[string]jsonObject{})
		s.before = func(r *http.Request, _ jsonObject) {
			if r.Method != http.MethodPost || r.URL.Path != bindings {
				return
			}
			if made {
				meta, _ := s.asked[len(s.asked)-1].body["metadata"].(jsonObject)
				p := path.Join(bindings, meta["name"].(string))
				s.objects[p] = named(p, "u1", nil)
				s.objects[p]["kind"] = "ClusterRoleBinding"
			}
			gone()
		}
		c := s.client(t)
		conn, done, err := c.session.Use()
		if err != nil {
			t.Fatal(err)
		}
		conn.Cfg.CAData = []byte("an authority")
		done()
		if _, _, err := c.IssueKubeconfig(ctx, types.IssuedKubeconfig{Role: "view", Node: "n1", Reason: "x"}, time.Hour, "10.0.0.1"); err == nil {
			t.Errorf("%s: issued", name)
		}
		last := s.asked[len(s.asked)-1]
		if deleted := last.method == http.MethodDelete && strings.HasPrefix(last.path, bindings+"/zedkube-kubeconfig-"); deleted != made || len(s.objects) > 0 {
			t.Errorf("%s: asked %+v, left %v", name, s.asked, s.objects)
		}
	}
}
