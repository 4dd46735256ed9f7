package access

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// VerbWithin bounds a whole verb, its retries included.
const VerbWithin = 20 * time.Second

// Values are those of an object that a patch names, by field.
type Values map[string]any

func AnnotationsPatch(annotations Values) Values {
	return Values{"metadata": Values{"annotations": annotations}}
}

// UntilDone is as often as it takes, until a context ends it.
var UntilDone = wait.Backoff{Duration: 50 * time.Millisecond, Jitter: 1, Steps: 200}

// RetryOnConflict repeats what somebody else was faster than, as often as it
// takes, until its context ends it.
func RetryOnConflict(do func() error) error { return retry.RetryOnConflict(UntilDone, do) }

// PatchFor is the text of forVersion.
func PatchFor(version string, patch Values) ([]byte, error) {
	return json.Marshal(ForVersion(version, patch))
}

// ForVersion has the patch fail with a conflict on any other version.
func ForVersion(version string, patch Values) Values {
	metadata, ok := patch["metadata"].(Values)
	if !ok {
		metadata = Values{}
		patch["metadata"] = metadata
	}
	metadata["resourceVersion"] = version
	return patch
}
