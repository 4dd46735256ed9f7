package access

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

// AnnotationText bounds each annotation of ours, read or written. A witness of a
// hundred nodes fits.
const AnnotationText = 16 << 10

// Annotated is what an annotation of ours says. One that is garbage, or too
// long, counts as none: anybody may have written it.
func Annotated[T any](annotations map[string]string, key string) (v T, ok bool) {
	text, ok := annotations[key]
	if !ok || len(text) > AnnotationText || json.Unmarshal([]byte(text), &v) != nil {
		var none T // what was read of it before the fault
		return none, false
	}
	return v, true
}

// Annotation is the text of one.
func Annotation(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	if len(text) > AnnotationText {
		return "", fmt.Errorf("annotation of %d bytes: more than %d", len(text), AnnotationText)
	}
	return string(text), nil
}

// Sorted is names without the empty one, each once; nil for none.
func Sorted(names []string) []string {
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
	if len(names) == 0 {
		return nil
	}
	return names
}

// ConditionOf is nil where the Node has no such condition.
func ConditionOf(n *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i, c := range n.Status.Conditions {
		if c.Type == kind {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// Labels of docs/wire.md, "App objects".
const (
	LabelApp       = "app"
	LabelAppDomain = "App-Domain-Name"
	LabelVMI       = "vm.kubevirt.io/name"
)

// OwnerOf is zero where nothing controls o.
func OwnerOf(o metav1.Object) types.Owner {
	c := metav1.GetControllerOfNoCopy(o)
	if c == nil {
		return types.Owner{}
	}
	return types.Owner{Kind: c.Kind, Name: c.Name, UID: string(c.UID)}
}

// Labels of docs/wire.md, "Nodes".
const (
	LabelNodeUUID     = "node-uuid"
	LabelTieBreaker   = "tie-breaker-node"
	LabelControlPlane = types.LabelControlPlane
	LabelMaster       = types.LabelMaster
	LabelEtcd         = types.LabelEtcd
	LabelEdge         = "node-role.kubernetes.io/edge"
)

// DrainManager is the field manager of all that a drain writes.
const DrainManager = "zedkube-drain"

// IsEdge reports that a Node is one of KubeEdge's: a device that runs pods of
// the cluster and belongs to no EVE device of it, and that may be out of reach for
// days. It is no member. No table and no list of Nodes that leaves this package has
// it, so no rule on members can count it (docs/wire.md, "Nodes").
//
// The label alone does not do: a person may put it on any Node, and a member that
// is missing has to leave. What has a device's UUID or the role of a server is a
// member whatever other labels it has.
func IsEdge(n *corev1.Node) bool {
	has := func(label string) bool { _, ok := n.Labels[label]; return ok }
	return has(LabelEdge) && !has(LabelNodeUUID) && !has(LabelControlPlane) && !has(LabelMaster) && !has(LabelEtcd)
}

// Cut shortens text to at most max bytes, whole characters.
func Cut(text string, max int) string {
	if len(text) <= max {
		return text
	}
	return strings.ToValidUTF8(text[:max-len("…")], "") + "…"
}

// AppsManager is the field manager of what is written for applications.
const AppsManager = "zedkube-apps"

// LonghornNamespace is where Longhorn is installed.
const LonghornNamespace = types.NamespaceLonghorn
