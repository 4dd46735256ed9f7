package terminal

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// InKube says where kubectl is: not where zedkube is.
const InKube = `kubectl is in "eve enter kube"`

// typesKubectl matches a text that tells to type a command of kubectl.
var typesKubectl = regexp.MustCompile(`\bkubectl (?:-n \S+ )?(?:get|describe|logs|edit|patch|delete|apply|annotate|label|taint|scale)\b`)

// kubectlHint answers the words of one who is used to kubectl: which command of ours shows that,
// and where kubectl is. It is "" for words that are not kubectl's.
func kubectlHint(root *cobra.Command, args []string) string {
	verbs := []string{
		"get", "describe", "cordon", "taint", "label", "annotate", "delete", "edit", "apply", "create", "patch", "replace", "scale", "rollout",
		"exec", "attach", "cp", "port-forward", "proxy", "debug", "config", "auth", "api-resources", "wait",
	}
	kinds := map[string]string{
		"node": "nodes", "no": "nodes", "pods": "top pods", "pod": "top pods", "po": "top pods", "events": "events", "event": "events", "ev": "events",
		"pvc": "volumes", "pv": "volumes", "volume": "volumes", "volumes": "volumes", "vm": "apps", "vms": "apps", "vmi": "apps", "vmis": "apps", "app": "apps",
		"lease": "drain status", "leases": "drain status", "pdb": "drain plan", "nodes": "nodes", "apps": "apps",
	}
	isVerb := slices.Contains(verbs, args[0])
	kind := args[0]
	if isVerb && len(args) > 1 {
		kind, _, _ = strings.Cut(args[1], "/")
	}
	ours, known := kinds[strings.ToLower(kind)]
	switch args[0] {
	case "cordon":
		ours, known = "drain request", true
	case "get", "describe":
		ours = cmp.Or(ours, "status")
	default:
		if isVerb {
			ours = ""
		}
	}
	if !isVerb && !known {
		return ""
	}
	var hints []string
	if found, _, err := root.Find(strings.Fields(ours)); err == nil && found != root {
		hints = append(hints, fmt.Sprintf("did you mean %q?", root.Name()+" "+ours))
	}
	if !isVerb {
		args = append([]string{"get"}, args...)
	}
	return strings.Join(append(hints, InKube+": kubectl "+Clean(strings.Join(args, " "))), " ")
}
