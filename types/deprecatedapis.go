package types

import (
	"fmt"
	"strings"
	"time"
)

// DeprecatedAPIs is which deprecated APIs clients have requested of one API server
// since it started.
type DeprecatedAPIs struct {
	StartedAt time.Time       // by the server's clock; zero where it does not say
	APIs      []DeprecatedAPI // by name
	More      bool            // there are more than these
}

// DeprecatedAPI is one of them.
type DeprecatedAPI struct {
	Group, Version, Resource string
	RemovedIn                string // minor version of Kubernetes, as "1.36"; "" where that is not decided
}

// String is "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", as kubectl writes a resource.
func (a DeprecatedAPI) String() string {
	return strings.TrimSuffix(a.Resource+"."+a.Version+"."+a.Group, ".")
}

// APIsSettle is how long an API server has to run before what it was not asked for counts as
// not used: most clients that run by the clock come once a day.
const APIsSettle = 24 * time.Hour

// RemovedBy are those that Kubernetes 1.minor no longer has. Where the server has run for too
// short a time to know all, or there are more than it says, why is part of a sentence.
func (d DeprecatedAPIs) RemovedBy(minor int, now time.Time) (removed []DeprecatedAPI, why string) {
	for _, a := range d.APIs {
		var major, in int
		if n, err := fmt.Sscanf(a.RemovedIn, "%d.%d", &major, &in); n == 2 && err == nil && major == 1 && in > minor {
			continue
		} else if a.RemovedIn != "" {
			removed = append(removed, a) // also where its release cannot be read
		}
	}
	switch {
	case d.StartedAt.IsZero():
		why = "the API server does not say when it started"
	case now.Sub(d.StartedAt) < APIsSettle:
		why = fmt.Sprintf("the API server has run for less than %d hours, and does not know all that is used", int(APIsSettle.Hours()))
	case d.More:
		why = "there are more deprecated APIs in use than are shown"
	}
	return removed, why
}
