package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// addExamples gives every command below c that is shown, and has none of its own, what its help
// and its manual page show.
func addExamples(c *cobra.Command) {
	if own, has := examples()[c.CommandPath()]; has && c.Example == "" {
		c.Example = "  " + strings.ReplaceAll(own, "\n", "\n  ")
	}
	for _, sub := range c.Commands() {
		addExamples(sub)
	}
}

// examples are by the words of the command. A name in them is one that an operator has to replace.
func examples() map[string]string {
	return map[string]string{
		"zedkube":                   "zedkube status\nzedkube --root /tmp/zedkube-bundle doctor     on a copy of another device",
		"zedkube apps":              "zedkube apps --problem                        what does not run, and why\nzedkube apps --node press-line-2 -o wide\nzedkube apps cam -o jsonpath={.items[0].State}",
		"zedkube apps detach":       "zedkube apps detach press-line-3 6ba7b812-9dad-11d1-80b4-00c04fd430c8",
		"zedkube cluster":           "zedkube cluster -o yaml",
		"zedkube completion":        "source <(zedkube completion bash)",
		"zedkube doctor":            "zedkube doctor --only disk,node,etcd\nzedkube doctor -o json | jq '.Items[] | select(.Verdict == \"fail\")'",
		"zedkube drain":             "zedkube drain plan          what would happen\nzedkube drain request       do it\nzedkube drain status -w     watch it",
		"zedkube drain cancel":      "zedkube drain cancel",
		"zedkube drain keep-cordon": "zedkube drain keep-cordon   once the drain is complete",
		"zedkube drain plan":        "zedkube drain plan\nzedkube drain plan -o jsonpath={.Verdict}",
		"zedkube drain request":     "zedkube drain request --reason \"new disk\"",
		"zedkube drain status":      "zedkube drain status --watch && poweroff\nzedkube drain status press-line-2\nzedkube drain status --cluster",
		"zedkube drain unlock":      "zedkube drain unlock press-line-3",
		"zedkube events":            "zedkube events\nzedkube events --cluster -o json",
		"zedkube export":            "zedkube export cluster | jq .message\nzedkube export --watch metrics",
		"zedkube join":              "zedkube join plan\nzedkube join wait --timeout 10m",
		"zedkube join plan":         "zedkube join plan --check                              here, before it joins\nzedkube join plan --candidate 10.244.1.4               on a member",
		"zedkube join wait":         "zedkube join wait --timeout 10m && echo it may join",
		"zedkube k3s":               "zedkube k3s status\nzedkube k3s plan",
		"zedkube k3s certs":         "zedkube k3s certs --sort-by EXPIRES\nzedkube k3s certs -l state=Due",
		"zedkube k3s certs reset":   "zedkube k3s certs reset",
		"zedkube k3s hold":          "zedkube k3s hold",
		"zedkube k3s plan":          "zedkube k3s plan",
		"zedkube k3s release":       "zedkube k3s release v1.35.0+k3s1",
		"zedkube k3s retry":         "zedkube k3s retry",
		"zedkube k3s rollback":      "zedkube k3s rollback",
		"zedkube k3s snapshot":      "zedkube k3s snapshot",
		"zedkube k3s stage":         "zedkube k3s stage --help",
		"zedkube k3s status":        "zedkube k3s status\nzedkube k3s status -o json",
		"zedkube kubeconfig":        "zedkube kubeconfig --reason \"ticket 4711\" --for 2h > kubeconfig",
		"zedkube kubeconfig agent":  "zedkube kubeconfig agent press-line-2 > kubeconfig",
		"zedkube kubeconfig list":   "zedkube kubeconfig list -o name",
		"zedkube kubeconfig revoke": "zedkube kubeconfig revoke zedkube-kubeconfig-x7k2p",
		"zedkube leave":             "zedkube leave plan\nzedkube leave\nzedkube leave --cancel",
		"zedkube leave plan":        "zedkube leave plan --check",
		"zedkube logs":              "zedkube logs cam -f\nzedkube logs cam --previous --since 1h\nzedkube logs --pod kube-system/coredns-7db6d8ff4d-x2x4l --tail 100\nzedkube logs k3s -f              without an API server, too",
		"zedkube nodes":             "zedkube nodes -o wide --sort-by status\nzedkube nodes -l status!=Ready -o name\nzedkube nodes press-line-2 --watch\nzedkube nodes --cluster                      what is wrong on any node",
		"zedkube page":              "zedkube page",
		"zedkube status":            "zedkube status --watch\nzedkube status --check > /dev/null || echo look there",
		"zedkube support-bundle":    "zedkube support-bundle -f /persist/support.tar.gz\nzedkube support-bundle -f - | ssh desk tar xz",
		"zedkube top":               "zedkube top nodes\nzedkube top pods -A --sort-by memory\nzedkube top pods --cluster       of all nodes\nzedkube top containers --once -o json",
		"zedkube topics":            "zedkube topics NodeDrainStatus\nzedkube topics zedagent/EdgeNodeInfo/global -o json\nzedkube topics --watch",
		"zedkube uncordon":          "zedkube uncordon\nzedkube uncordon press-line-2 --yes",
		"zedkube volumes":           "zedkube volumes                  the last healthy replicas first\nzedkube volumes cam              those of an application, each replica\nzedkube volumes -l robustness=Degraded -w",
		"zedkube workloads":         "zedkube workloads disable --help",
		"zedkube workloads disable": "zedkube workloads disable",
		"zedkube workloads enable":  "zedkube workloads enable",
		"zedkube workloads status":  "zedkube workloads status --watch",
	}
}
