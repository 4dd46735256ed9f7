package types

import (
	"strings"
	"testing"
	"time"
)

func TestWhichAPIsAreRemovedByAMinorVersion(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	flows := DeprecatedAPI{"flowcontrol.apiserver.k8s.io", "v1beta3", "flowschemas", "1.32"}
	endpoints := DeprecatedAPI{"", "v1", "endpoints", ""}
	odd := DeprecatedAPI{"x.io", "v1", "things", "soon"}
	all := []DeprecatedAPI{flows, endpoints, odd}
	for name, row := range map[string]struct {
		seen  DeprecatedAPIs
		minor int
		want  string
		why   string
	}{
		"those of the release":                    {DeprecatedAPIs{now.Add(-25 * time.Hour), all, false}, 32, "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io things.v1.x.io", ""},
		"and of a former one":                     {DeprecatedAPIs{now.Add(-25 * time.Hour), all, false}, 33, "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io things.v1.x.io", ""},
		"not of a later one":                      {DeprecatedAPIs{now.Add(-25 * time.Hour), all, false}, 31, "things.v1.x.io", ""},
		"none that is deprecated only":            {DeprecatedAPIs{now.Add(-25 * time.Hour), []DeprecatedAPI{endpoints}, false}, 99, "", ""},
		"a server that has just started":          {DeprecatedAPIs{now.Add(-24*time.Hour + 1), all, false}, 31, "things.v1.x.io", "less than 24 hours"},
		"a server whose clock is ahead":           {DeprecatedAPIs{now.Add(time.Hour), nil, false}, 31, "", "less than 24 hours"},
		"a server that does not say":              {DeprecatedAPIs{}, 31, "", "does not say when"},
		"a server with more than can be counted":  {DeprecatedAPIs{now.Add(-25 * time.Hour), nil, true}, 31, "", "more deprecated APIs"},
		"a day is enough, to the last nanosecond": {DeprecatedAPIs{now.Add(-24 * time.Hour), nil, false}, 31, "", ""},
	} {
		removed, why := row.seen.RemovedBy(row.minor, now)
		var names []string
		for _, a := range removed {
			names = append(names, a.String())
		}
		if got := strings.Join(names, " "); got != row.want || !strings.Contains(why, row.why) || (why == "") != (row.why == "") {
			t.Errorf("%s: %q, %q; want %q, %q", name, got, why, row.want, row.why)
		}
	}
	if got := endpoints.String(); got != "endpoints.v1" {
		t.Errorf("of the core group: %s", got)
	}
}
