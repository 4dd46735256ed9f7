//go:build linux

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func at(second int) time.Time { return time.Unix(int64(second), 0) }

// tale is a pod that is made at 100, changes at 200 and goes at 300, and a volume
// that is there from 10 on.
func tale() *history {
	h := newHistory(at(0))
	pod, volume := thing{types.SectionAppPods, "pod"}, thing{types.SectionStorage, "volume"}
	h.note(volume, "healthy", at(10))
	h.note(pod, "pending", at(100))
	h.note(pod, "pending", at(150))
	h.note(pod, "running", at(200))
	h.note(pod, gone, at(300))
	return h
}

func TestALieIsFound(t *testing.T) {
	known := types.ReportSection{Known: true}
	since := func(second int) types.ReportSection {
		return types.ReportSection{Known: true, StaleSince: at(second), Why: "the API server does not answer"}
	}
	for _, row := range []struct {
		rule     string
		section  string
		value    string
		from, to int
		health   types.ReportSection
		want     int
	}{
		{"what is true", types.SectionAppPods, "pending", 101, 199, known, 0},
		{"what was true half a minute ago", types.SectionAppPods, "pending", 101, 230, known, 0},
		{"what was true a minute ago", types.SectionAppPods, "pending", 101, 260, known, 1},
		{"what will be true", types.SectionAppPods, "running", 190, 260, known, 1},
		{"what never was", types.SectionAppPods, "failed", 101, 102, known, 1},
		{"what was true a minute ago, said to be as old", types.SectionAppPods, "pending", 230, 260, since(200), 0},
		{"what was true when an unnoticed silence began", types.SectionAppPods, "pending", 230, 400, since(229), 0},
		{"what was true long before it is said to be stale", types.SectionAppPods, "pending", 240, 400, since(239), 1},
		{"nothing of what is there", types.SectionAppPods, gone, 150, 160, known, 1},
		{"nothing of what has just come", types.SectionAppPods, gone, 90, 130, known, 0},
		{"nothing of what is gone", types.SectionAppPods, gone, 300, 400, known, 0},
		{"what has been gone for a minute", types.SectionAppPods, "running", 360, 370, known, 1},
		{"a volume that vanishes because a list failed", types.SectionStorage, gone, 100, 101, known, 1},
		{"a volume that vanishes because a list failed, said to be stale", types.SectionStorage, gone, 100, 101, since(90), 1},
		{"a volume that vanishes and has never been seen", types.SectionStorage, gone, 100, 101, types.ReportSection{StaleSince: at(99)}, 0},
		{"a volume of a former run that was never so", types.SectionStorage, "faulted", 100, 101, types.ReportSection{StaleSince: at(99)}, 1},
	} {
		row.health.Name = row.section
		told := sighting{node: "a", span: span{at(row.from), at(row.to)}, sections: []string{row.section}}
		if name := map[string]string{types.SectionAppPods: "pod", types.SectionStorage: "volume"}[row.section]; row.value != gone {
			told.facts = map[thing]string{{row.section, name}: row.value}
		}
		health := opinion{node: "a", span: span{at(0), at(500)}, KubeReportHealth: types.KubeReportHealth{Sections: []types.ReportSection{row.health}}}
		if found := lies(tale(), []sighting{told}, []opinion{health}, at(500)); len(found) != row.want {
			t.Errorf("%s: found %q", row.rule, found)
		}
	}
}

func TestAReportWithoutHealthIsFound(t *testing.T) {
	told := sighting{node: "a", span: span{at(100), at(120)}, sections: []string{types.SectionStorage}, facts: map[thing]string{{types.SectionStorage, "volume"}: "healthy"}}
	found := lies(tale(), []sighting{told}, nil, at(500))
	if len(found) != 1 || !strings.Contains(found[0], "nothing of its health") {
		t.Errorf("found %q", found)
	}
	other := opinion{node: "b", span: span{at(0), at(500)}}
	if found := lies(tale(), []sighting{told}, []opinion{other}, at(500)); len(found) != 1 {
		t.Errorf("with the health of another node: found %q", found)
	}
}

// A section that becomes stale in the middle of a report is judged by what is
// said of it at each moment.
func TestHealthCountsFromWhenItIsSaid(t *testing.T) {
	told := sighting{node: "a", span: span{at(150), at(450)}, sections: []string{types.SectionAppPods}, facts: map[thing]string{{types.SectionAppPods, "pod"}: "pending"}}
	for said, want := range map[int]int{220: 0, 270: 1} {
		opinions := []opinion{
			{node: "a", span: span{at(100), at(said)}, KubeReportHealth: types.KubeReportHealth{Sections: []types.ReportSection{{Name: types.SectionAppPods, Known: true}}}},
			{node: "a", span: span{at(said), time.Time{}}, KubeReportHealth: types.KubeReportHealth{Sections: []types.ReportSection{{Name: types.SectionAppPods, Known: true, StaleSince: at(201)}}}},
		}
		if found := lies(tale(), []sighting{told}, opinions, at(500)); len(found) != want {
			t.Errorf("stale at %d: found %q", said, found)
		}
	}
}

func TestTwoReportersAtATimeAreFound(t *testing.T) {
	one := func(node string, from, to int) sighting {
		s := sighting{node: node, topic: "KubeClusterInfo", span: span{from: at(from)}}
		if to > 0 {
			s.to = at(to)
		}
		return s
	}
	for _, row := range []struct {
		rule string
		all  []sighting
		want int
	}{
		{"one after the other", []sighting{one("a", 1, 5), one("a", 5, 9), one("b", 9, 12)}, 0},
		{"the second before the end of the first", []sighting{one("a", 1, 5), one("b", 3, 12)}, 1},
		{"both go on", []sighting{one("b", 3, 0), one("a", 1, 0)}, 1},
	} {
		if found := overlaps(row.all, at(20)); len(found) != row.want {
			t.Errorf("%s: found %q", row.rule, found)
		}
	}
}

func TestTheSameWrittenAgainIsFound(t *testing.T) {
	all := []sighting{
		{node: "a", topic: "x", span: span{at(1), at(2)}, bytes: []byte("1")},
		{node: "b", topic: "x", span: span{at(1), at(9)}, bytes: []byte("1")},
		{node: "a", topic: "x", span: span{at(2), at(3)}, bytes: []byte("2")},
		{node: "a", topic: "x", span: span{at(3), at(4)}, bytes: []byte("2")},
		{node: "a", topic: "x", span: span{at(8), at(9)}, bytes: []byte("2")}, // by another run
	}
	if found := repeats(all); len(found) != 1 {
		t.Errorf("found %q", found)
	}
}

func TestWhatIsToldIsComparedWithWhatIs(t *testing.T) {
	there, other := thing{"x", "there"}, thing{"y", "other"}
	for _, row := range []struct {
		rule  string
		facts map[thing]string
		same  bool
	}{
		{"all", map[thing]string{there: "1", other: "2"}, true},
		{"another value", map[thing]string{there: "2"}, false},
		{"nothing", nil, false},
		{"too much", map[thing]string{there: "1", {"x", "more"}: "1"}, false},
		{"too much elsewhere", map[thing]string{there: "1", {"z", "more"}: "1"}, true},
	} {
		if what := differs(row.facts, map[thing]string{there: "1", other: "3"}, "x"); (what == "") != row.same {
			t.Errorf("%s: %s", row.rule, what)
		}
	}
}

func TestAgesAreMeasured(t *testing.T) {
	pending := []span{{at(100), at(200)}, {at(300), at(310)}}
	for second, want := range map[int]time.Duration{150: 0, 230: 30 * time.Second, 312: 2 * time.Second} {
		if age := ageAt(pending, at(second), at(500)); age != want {
			t.Errorf("at %d it is %s old, want %s", second, age, want)
		}
	}
}
