package kubeapi

import (
	"encoding/json"
	"fmt"
)

const (
	repairAnnotation  = "zedkube.github.io/repair"  // docs/wire.md, "App objects"
	fenceAnnotation   = "zedkube.github.io/fence"   // docs/wire.md, "Nodes"
	witnessAnnotation = "zedkube.github.io/witness" // docs/wire.md, "Nodes"
	// annotationText bounds each of them, read or written. A witness of a
	// hundred nodes fits.
	annotationText = 16 << 10
)

// annotated is what an annotation of ours says. One that is garbage, or too
// long, counts as none: anybody may have written it.
func annotated[T any](annotations map[string]string, key string) (v T, ok bool) {
	text, ok := annotations[key]
	if !ok || len(text) > annotationText || json.Unmarshal([]byte(text), &v) != nil {
		var none T // what was read of it before the fault
		return none, false
	}
	return v, true
}

// annotation is the text of one.
func annotation(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	if len(text) > annotationText {
		return "", fmt.Errorf("annotation of %d bytes: more than %d", len(text), annotationText)
	}
	return string(text), nil
}
