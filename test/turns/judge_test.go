package turns

import (
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// row is a volume whose engine runs on n3, with whole replicas on these nodes, and failed ones on those.
func row(name string, whole, failed string) types.Volume {
	v := types.Volume{Name: name, State: "attached", Running: true, Engine: "n3"}
	for _, on := range strings.Fields(whole) {
		v.Replicas = append(v.Replicas, types.Replica{Node: on, Mode: "RW"})
	}
	for _, on := range strings.Fields(failed) {
		v.Replicas = append(v.Replicas, types.Replica{Node: on, Mode: "WO"})
	}
	v.Wanted = len(v.Replicas)
	return v
}

func TestTheRulesFindWhatBreaksThem(t *testing.T) {
	holds := func(n string) event { return event{Kind: lockIs, Node: n, Lock: types.DrainLock{Holder: n}} }
	is := func(k kind, n, text string) event { return event{Kind: k, Node: n, Text: text} }
	volumes := func(all ...types.Volume) event { return event{Kind: volumesAre, Volumes: all} }
	recorded := event{Kind: lockIs, Node: "n2", Lock: types.DrainLock{Holder: "n2", Task: types.TaskK3sChange, Volumes: map[string]int{"a": 2}}}
	kept := event{Kind: lockIs, Node: "n2", Lock: types.DrainLock{Holder: "n2", Volumes: map[string]int{"a": 2, "b": 1}}}
	later := event{Kind: happens, Text: "time passes"} // ten minutes, where a second is between others
	const dead = "the API server has not answered for 5m0s: nothing can be drained"
	none := types.DrainLock{}
	for name, row := range map[string]struct {
		events []event
		want   string // "" for none
	}{
		"one after the other":                       {[]event{holds("n1"), is(completes, "n1", ""), is(goesDown, "n1", ""), is(isBack, "n1", ""), holds("n2"), is(endsK3s, "n2", "patch change")}, ""},
		"one before the other is back":              {[]event{holds("n1"), is(completes, "n1", ""), is(goesDown, "n1", ""), holds("n2"), is(endsK3s, "n2", "patch change")}, "n1 is not back [one]"},
		"one while the other may go":                {[]event{holds("n1"), is(completes, "n1", ""), holds("n2"), is(completes, "n2", "")}, "n1 is not back [one]"},
		"after a withdrawal":                        {[]event{holds("n1"), is(completes, "n1", ""), is(takesBack, "n1", ""), holds("n2"), is(completes, "n2", "")}, ""},
		"one beside k3s that ends":                  {[]event{holds("n1"), is(endsK3s, "n1", byMounts), holds("n2"), is(completes, "n2", "")}, "n1 is not back [one]"},
		"beside one whose Node is deleted":          {[]event{holds("n1"), is(endsK3s, "n1", byMounts), is(isGone, "n1", ""), holds("n2"), is(completes, "n2", "")}, ""},
		"without the lock":                          {[]event{holds("n1"), is(endsK3s, "n2", "patch change")}, `the lock is "n1"'s [lock]`},
		"blind":                                     {[]event{is(mutes, "n1", ""), is(completes, "n1", dead), later, holds("n2"), is(completes, "n2", "")}, ""},
		"beside one that shows that it may go":      {[]event{is(mutes, "n1", ""), is(completes, "n1", dead), is(hears, "n1", ""), later, holds("n2"), is(completes, "n2", "")}, "n1 is not back [one]"},
		"beside one that has shown it just now":     {[]event{is(mutes, "n1", ""), is(completes, "n1", dead), later, is(hears, "n1", ""), holds("n2"), is(completes, "n2", "")}, ""},
		"without a quorum":                          {[]event{is(goesDown, "n1", ""), later, holds("n2"), is(completes, "n2", "")}, "1 of 3 voters would be left [quorum]"},
		"urgently without a quorum":                 {[]event{is(goesDown, "n1", ""), later, holds("n2"), is(endsK3s, "n2", "restart change Urgent")}, ""},
		"with a quorum that was there a moment ago": {[]event{holds("n2"), is(goesDown, "n1", ""), is(completes, "n2", "")}, ""},
		"the last whole replica":                    {[]event{volumes(row("a", "n1", "n2")), later, holds("n1"), is(completes, "n1", "")}, "last whole replica of a [replica]"},
		"the last one on a node that is there":      {[]event{volumes(row("a", "n1 n2", "")), is(isGone, "n2", ""), later, holds("n1"), is(endsK3s, "n1", "patch change")}, "last whole replica of a [replica]"},
		"the last one since a moment ago":           {[]event{volumes(row("a", "n1 n2", "")), later, volumes(row("a", "n1", "n2")), holds("n1"), is(completes, "n1", "")}, ""},
		"one of two replicas":                       {[]event{volumes(row("a", "n1 n2", "")), later, holds("n1"), is(completes, "n1", "")}, ""},
		"a lock that forgets a volume":              {[]event{volumes(row("a", "n3", "n2")), recorded, later, holds("n1")}, "a is worse than n2's lock has recorded [recorded]"},
		"a lock that is freed with one":             {[]event{volumes(row("a", "n3", "n2")), recorded, later, {Kind: lockIs, Lock: none}}, "a is worse than n2's lock has recorded [recorded]"},
		"a lock that keeps it":                      {[]event{volumes(row("a", "n3", "n2")), recorded, later, kept}, ""},
		"a lock whose volume is whole on its node":  {[]event{volumes(row("a", "n2", "n3")), recorded, later, holds("n1")}, ""},
		"a lock whose Node is gone":                 {[]event{volumes(row("a", "n3", "n2")), recorded, later, is(isGone, "n2", ""), holds("n1")}, ""},
		"a return of what runs well":                {[]event{holds("n1"), is(endsK3s, "n1", "patch change"), is(isBack, "n1", ""), later, is(endsK3s, "n1", "patch return")}, "patch return [return]"},
		"a return of what was silent":               {[]event{holds("n1"), is(endsK3s, "n1", "patch change"), is(isBack, "n1", ""), later, is(mutes, "n1", ""), is(endsK3s, "n1", "patch return")}, ""},
		"a return of what restarts for volumes":     {[]event{holds("n1"), is(endsK3s, "n1", "patch change"), is(isBack, "n1", ""), later, is(endsK3s, "n1", byMounts), is(mutes, "n1", ""), is(endsK3s, "n1", "patch return")}, "patch return [return]"},
		"what is left":                              {[]event{is(settled, "", "n1 is cordoned")}, "n1 is cordoned [settled]"},
	} {
		now := time.Duration(0)
		for i := range row.events {
			if now += time.Second; row.events[i].Kind == happens {
				now += 10 * time.Minute
			}
			row.events[i].At = now
		}
		got := strings.Join(judge([]string{"n1", "n2", "n3"}, row.events), "\n")
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
