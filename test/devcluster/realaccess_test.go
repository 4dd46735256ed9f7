//go:build linux

package devcluster

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeletServesAgents asks the kubelet of node 1 from node 0, as an agent with the permissions of
// deploy/rbac.yaml: what zedkube asks for is answered, and what takes nodes/proxy is not.
func kubeletServesAgents(t *testing.T, c *Cluster) {
	own, err := c.AgentKubeconfig(0)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(own)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Dial, cfg.ServerName = c.DialFrom(0), c.Nodes[1].Name
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{
		"/stats/summary":    http.StatusOK, // nodes/stats
		"/metrics/cadvisor": http.StatusOK, // nodes/metrics
		"/logs/pods/":       http.StatusOK, // nodes/log
		"/runningpods/":     http.StatusOK, // nodes/pods

		"/run/eve-kube-app/speaker/app":             http.StatusForbidden,
		"/exec/eve-kube-app/speaker/app?command=id": http.StatusForbidden,
		"/attach/eve-kube-app/speaker/app":          http.StatusForbidden,
		"/portForward/eve-kube-app/speaker":         http.StatusForbidden,
		"/containerLogs/kube-system/any/app":        http.StatusForbidden,
		"/configz":                                  http.StatusForbidden,
		"/checkpoint/eve-kube-app/speaker/app":      http.StatusForbidden,
		"/debug/pprof/heap":                         http.StatusForbidden,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+c.Nodes[1].IP+":10250"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: HTTP %d, want %d: %.200s", path, resp.StatusCode, want, text)
		}
		if path == "/runningpods/" && !strings.Contains(string(text), "speaker-") {
			t.Errorf("node 1 runs %s", text)
		}
	}
}
