//go:build linux

package kubeapi_test

import (
	"net/http"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/zedkube/zedkube/test/devcluster"
)

// elsewhere are the permissions of deploy/rbac.yaml that the stories here may do without. The
// tests that are named fail if it was not needed; kubelets keep no audit log.
var elsewhere = map[string]string{
	"get nodes/stats":                                  "asked of the kubelet: test/metrics, TestRealNodes",
	"get nodes/metrics":                                "asked of the kubelet: test/metrics, TestRealNodes",
	"get nodes/log":                                    "asked of the kubelet: test/applogs, TestRealNodes",
	"get nodes/pods":                                   "asked of the kubelet: TestRealNodes",
	"list poddisruptionbudgets.policy":                 "TestPodsInTheWayAgainstARealAPIServer",
	"list persistentvolumes":                           "TestPodsInTheWayAgainstARealAPIServer",
	"list daemonsets.apps":                             "TestPodsInTheWayAgainstARealAPIServer",
	"get persistentvolumeclaims":                       "TestPodsInTheWayAgainstARealAPIServer",
	"get pods/log in eve-kube-app":                     "real containers: test/applogs",
	"bind clusterroles.rbac.authorization.k8s.io view": "asked for with each binding that is made",
	"bind clusterroles.rbac.authorization.k8s.io edit": "asked for with each binding that is made",
}

// needed fails where no agent has asked for these permissions.
func needed(t *testing.T, c *devcluster.Cluster, names ...string) {
	t.Helper()
	if err := c.Needed(t.Context(), names...); err != nil {
		t.Error(err)
	}
}

// permissions compares what the verbs and tables have asked for with deploy/rbac.yaml.
func permissions(t *testing.T, c *devcluster.Cluster) {
	unused, refused, err := c.Permissions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range refused {
		t.Errorf("refused: %s", text)
	}
	unneeded := map[string]bool{}
	for _, r := range unused {
		unneeded[r.String()] = true
	}
	for _, r := range unused {
		watch := r
		watch.Verb = "watch"
		switch {
		case elsewhere[r.String()] != "":
		case r.Verb == "list" && !unneeded[watch.String()]: // what a server that streams no lists is asked for
		default:
			t.Errorf("nothing needs: %s", r)
		}
	}
}

// isExempt proves that the API server queues requests of agents as little as those of the
// administrator.
func isExempt(t *testing.T, c *devcluster.Cluster) {
	level := func(text []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := clientcmd.RESTConfigFromKubeConfig(text)
		if err != nil {
			t.Fatal(err)
		}
		client, err := rest.HTTPClientFor(cfg)
		if err != nil {
			t.Fatal(err)
		}
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, cfg.Host+"/api/v1/nodes?limit=1", http.NoBody)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.Header.Get("X-Kubernetes-PF-PriorityLevel-UID")
	}
	if agent, admin := level(c.AgentKubeconfig(7)), level(c.NodeKubeconfig(7), nil); agent != admin || agent == "" {
		t.Errorf("the priority level of an agent is %q, that of the administrator %q", agent, admin)
	}
}
