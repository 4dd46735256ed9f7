package kubeapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/zedkube/zedkube/types"
)

// The kind that Multus reads.
const nadKind = "NetworkAttachmentDefinition"

var nads = schema.GroupVersionResource{Group: "k8s.cni.cncf.io", Version: "v1", Resource: "network-attachment-definitions"}

// untilDone is as often as it takes, until a context ends it.
var untilDone = wait.Backoff{Duration: 50 * time.Millisecond, Jitter: 1, Steps: 200}

func nadsOn(conn *connection) dynamic.ResourceInterface {
	return conn.custom.Resource(nads).Namespace(Namespace)
}

// nadOf is the row of an attachment for that interface.
func nadOf(o *unstructured.Unstructured, ifname string) types.NAD {
	owners, known := ownersOf(o)
	return types.NAD{
		Interface: ifname, Owners: owners, Unowned: !known,
		Altered: !sameConfig(o, ifname) || o.GetDeletionTimestamp() != nil,
	}
}

func ourNAD(o *unstructured.Unstructured) bool { return o.GetLabels()[passthroughLabel] == "true" }

// ownersOf are those noted on the attachment, never nil; false where that
// cannot be read.
func ownersOf(o *unstructured.Unstructured) (owners map[string]string, known bool) {
	note, ok := o.GetAnnotations()[neededAnnotation]
	if err := json.Unmarshal([]byte(note), &owners); !ok || err != nil || owners == nil {
		return map[string]string{}, false
	}
	return owners, true
}

// nadConfig is what Multus hands to the CNI plug-in host-device.
func nadConfig(ifname string) string {
	type plugin struct {
		Type   string `json:"type"`
		Device string `json:"device"`
	}
	return text(struct {
		CNIVersion string   `json:"cniVersion"`
		Plugins    []plugin `json:"plugins"`
	}{"0.3.1", []plugin{{"host-device", ifname}}})
}

// sameConfig compares by value: EVE's own zedkube writes it in many lines.
func sameConfig(o *unstructured.Unstructured, ifname string) bool {
	config, _, err := unstructured.NestedString(o.Object, "spec", "config")
	var is, want any
	if err != nil || json.Unmarshal([]byte(config), &is) != nil || json.Unmarshal([]byte(nadConfig(ifname)), &want) != nil {
		return false
	}
	return reflect.DeepEqual(is, want)
}

// text is v as JSON; v is made of strings.
func text(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

// isNAD reports that o is the attachment of that name, and of some version.
func isNAD(o *unstructured.Unstructured, name string) bool {
	return o.GetKind() == nadKind && o.GetName() == name && o.GetNamespace() == Namespace && o.GetResourceVersion() != ""
}

// answeredNAD is the error of a write that was answered with o.
func answeredNAD(o *unstructured.Unstructured, name string, err error) error {
	if err == nil && !isNAD(o, name) {
		return errOther
	}
	return err
}

// knownNADs says what it means that there is nothing under the path of a kind.
func knownNADs(err error) error {
	if apierrors.IsNotFound(err) && !absent(err) {
		return fmt.Errorf("%s is %w, so Multus is not installed (yet): %w", nadKind, types.ErrNotInstalled, err)
	}
	return err
}
