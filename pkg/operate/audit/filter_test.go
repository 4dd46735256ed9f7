package audit

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestAFilterWantsWhatItSays(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	o := types.Operation{
		At: at, Component: "drain", Op: "delete pod", Target: "pod/eve-kube-app/cam-0", By: "UPDATE,OPERATOR",
		Outcome: types.OperationRefused, Times: 5, Last: at.Add(time.Hour),
	}
	for name, row := range map[string]struct {
		filter Filter
		want   bool
	}{
		"all":                            {Filter{}, true},
		"since before":                   {Filter{Since: at.Add(-time.Second)}, true},
		"since then, by its last try":    {Filter{Since: at.Add(time.Minute)}, true},
		"since after":                    {Filter{Since: at.Add(2 * time.Hour)}, false},
		"until before":                   {Filter{Until: at.Add(-time.Second)}, false},
		"until after":                    {Filter{Until: at.Add(time.Second)}, true},
		"the operation":                  {Filter{Ops: []string{"cordon", "delete pod"}}, true},
		"its first word":                 {Filter{Ops: []string{"delete"}}, true},
		"a part of a word":               {Filter{Ops: []string{"del"}}, false},
		"its last word":                  {Filter{Ops: []string{"pod"}}, false},
		"the component":                  {Filter{Components: []string{"drain"}}, true},
		"another component":              {Filter{Components: []string{"apps"}}, false},
		"one of its requesters":          {Filter{By: []string{"operator"}}, true},
		"another requester":              {Filter{By: []string{"DEVICEOP"}}, false},
		"a part of the target":           {Filter{Target: "cam-0"}, true},
		"another target":                 {Filter{Target: "cam-1"}, false},
		"what failed":                    {Filter{Failed: true}, true},
		"all at once":                    {Filter{Failed: true, Target: "cam", Ops: []string{"delete"}, By: []string{"UPDATE"}}, true},
		"all at once, but for one thing": {Filter{Failed: true, Target: "cam", Ops: []string{"evict"}, By: []string{"UPDATE"}}, false},
	} {
		if got := row.filter.Wants(o); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for outcome, want := range map[types.OperationOutcome]bool{
		types.OperationOK: false, types.OperationBegun: false, types.OperationFailed: true, types.OperationUnanswered: true,
	} {
		if got := (Filter{Failed: true}).Wants(types.Operation{Outcome: outcome}); got != want {
			t.Errorf("--failed wants %q: %v", outcome, got)
		}
	}
}

func TestTimesAsPeopleWriteThem(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 30, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2h": now.Add(-2 * time.Hour), "90m": now.Add(-90 * time.Minute), "0s": now, "7d": now.AddDate(0, 0, -7),
		"2026-01-30": time.Date(2026, 1, 30, 0, 0, 0, 0, time.UTC), "2026-01-30T01:02:03Z": time.Date(2026, 1, 30, 1, 2, 3, 0, time.UTC),
		"2026-01-30T01:02:03+01:00": time.Date(2026, 1, 30, 0, 2, 3, 0, time.UTC), "2026-01-30 15:04": time.Date(2026, 1, 30, 15, 4, 0, 0, time.UTC),
		"09:15": time.Date(2026, 1, 31, 9, 15, 0, 0, time.UTC),
	} {
		if got, err := ParseTime(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "yesterday", "-2h", "2", "-1d", "999999999d", "25:00", "2026-13-01", "\x1b[31m"} {
		if got, err := ParseTime(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
