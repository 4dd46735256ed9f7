package metrics

import (
	"slices"
	"strconv"
	"strings"

	"github.com/zedkube/zedkube/types"
)

// other stands for every value that is not known beforehand, so that no name
// from outside becomes a series of its own.
const other = "other"

// What labels may say, beside other. What is missing here is counted all the
// same, under other.
var (
	verbs  = []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	phases = []types.DrainPhase{
		types.PhaseIdle, types.PhaseGates, types.PhaseEmptying, types.PhaseComplete, types.PhaseNoCordon, types.PhaseNotEmpty,
	}
	outlooks = []types.DrainOutlook{types.OutlookSlow, types.OutlookNever}
	cordons  = []string{"zedkube", "operator", "tie-breaker", "kept"}
	sections = []string{
		types.SectionNodes, types.SectionAppPods, types.SectionAppVMIs, types.SectionStorage, types.SectionNamespaces,
		types.SectionAllocated, types.SectionStorageHealth, types.SectionServices, types.SectionIngresses, types.SectionLBPool,
	}
	statuses     = []types.ConditionStatus{types.ConditionTrue, types.ConditionFalse, types.ConditionUnknown}
	certificates = []string{"client", "CA", "server"}
	outcomes     = []types.OperationOutcome{types.OperationOK, types.OperationRefused, types.OperationFailed, types.OperationUnanswered}
	// operationVerbs are the first words of what is audited.
	operationVerbs = []string{
		"annotate", "ask", "bind", "cancel", "cordon", "create", "delete", "drain", "ensure", "evict", "fence", "force", "force-delete",
		"forget", "free", "keep", "label", "leave", "detach", "note", "patch", "remove", "release", "renew", "repair", "request", "reserve", "restart",
		"scale", "set", "stamp", "taint", "take", "uncordon", "unfence", "unkeep", "unlock", "untaint", "update", "withdraw", "witness", "write",
	}
)

// maxText bounds a version in a label, in bytes.
const maxText = 64

// oneOf is value where it is known, else other.
func oneOf[T ~string](value T, known []T) string {
	if slices.Contains(known, value) {
		return string(value)
	}
	return other
}

// codeLabel is the status itself where an API server is known to send it, and
// its class where only something strange would.
func codeLabel(code int) string {
	switch code {
	case 200, 201, 202, 400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 429, 500, 502, 503, 504:
		return strconv.Itoa(code)
	case 0:
		return "none"
	}
	if code >= 100 && code < 600 {
		return strconv.Itoa(code/100) + "xx"
	}
	return other
}

// text is what a version says, as a label may: of which there is one series, so
// that whatever it says stays one.
func text(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "")
	}
	return s
}
