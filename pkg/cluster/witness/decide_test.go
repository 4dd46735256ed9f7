package witness

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

// up is the uptime of every row.
const up = time.Hour

// scene is n1 in a cluster of three whose n3 has been lost for two looks, with
// the next one due.
func scene(change ...func(*facts)) facts {
	f := facts{
		uptime: up, seen: true, own: node(1), others: []types.Node{node(2), node(3, unknown)}, ports: []int{1, 2},
		round: 7, streaks: map[string]streak{"uid-n3": {node: "n3", looks: 2}}, last: up - every, next: up,
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

// found is a look at n3, and at n2 for a control, that has ended.
func found(n3, n2 reply) func(*facts) {
	return func(f *facts) {
		f.next, f.last = up+3*time.Second, up-2*time.Second
		f.result = []dial{
			{uid: "uid-n3", address: "a:1", inner: true, reply: n3, why: "why"},
			{uid: "uid-n3", address: "a:2", inner: true, reply: min(n3, silence)},
			{uid: "uid-n3", address: "b:1", reply: untried, why: "another network"},
			{uid: "uid-n2", address: "c:1", inner: true, control: true, reply: n2},
		}
	}
}

func allReady(f *facts)   { f.others = []types.Node{node(2), node(3)} }
func published(f *facts)  { f.own.Witness = &types.Witness{Round: 7} }
func unseen(f *facts)     { f.seen = false }
func looking(f *facts)    { f.looking = true }
func publishing(f *facts) { f.publishing = true }
func alone(f *facts)      { f.others = f.others[1:] }
func pausing(f *facts)    { f.pause = up + 4*time.Second }
func notDue(f *facts)     { f.next = up + time.Second }
func large(f *facts)      { f.large = true }
func standstill(f *facts) { f.last = up - interrupted - 1 }
func steady(looks int) func(*facts) {
	return func(f *facts) { f.streaks["uid-n3"] = streak{node: "n3", looks: looks} }
}

// outcome is an action without the details that stories show.
type outcome struct {
	Cancel   bool
	Dials    int
	Interval time.Duration
	Tell     *types.Witness
	Looks    int // of n3 with the same result
	Hindered bool
	Again    time.Duration
}

func TestRules(t *testing.T) {
	seen := func(s types.Sighting) *types.Witness {
		s.Node, s.UID = "n3", "uid-n3"
		return &types.Witness{Round: 8, Sightings: []types.Sighting{s}}
	}
	gone, none := seen(types.Sighting{Silent: 3}), &types.Witness{}
	look := outcome{Dials: 4, Interval: every, Looks: 2}
	for name, r := range map[string]struct {
		f    facts
		want outcome
	}{
		"a node that is not Ready is looked at":                    {scene(), look},
		"not before it is due":                                     {scene(notDue), outcome{Again: time.Second, Looks: 2}},
		"one look at a time":                                       {scene(looking), outcome{Looks: 2}},
		"also while the last word is under way":                    {scene(publishing), look},
		"nobody is looked at while all are Ready":                  {scene(allReady), outcome{}},
		"what was told is removed then":                            {scene(allReady, published), outcome{Tell: none}},
		"not while another word is under way":                      {scene(allReady, published, publishing), outcome{}},
		"not while the watch may not have shown it yet":            {scene(allReady, published, pausing), outcome{Again: 4 * time.Second}},
		"a look whose node is Ready again is called off":           {scene(allReady, looking), outcome{Cancel: true}},
		"its result is not told":                                   {scene(allReady, found(silence, answer)), outcome{}},
		"nothing is looked at or told while the API is silent":     {scene(unseen, published), outcome{}},
		"a look is called off then":                                {scene(unseen, looking), outcome{Cancel: true}},
		"silence is counted":                                       {scene(found(silence, answer)), outcome{Tell: gone, Looks: 3, Again: 3 * time.Second}},
		"an answer is told":                                        {scene(found(answer, answer)), outcome{Tell: seen(types.Sighting{Alive: "a:1"}), Looks: 1, Again: 3 * time.Second}},
		"what could not be tried says nothing":                     {scene(found(untried, answer)), outcome{Hindered: true, Again: 3 * time.Second}},
		"and what was told before is removed":                      {scene(found(untried, answer), published), outcome{Hindered: true, Tell: none, Again: 3 * time.Second}},
		"silence says nothing while no Ready node answers":         {scene(found(silence, silence)), outcome{Hindered: true, Again: 3 * time.Second}},
		"nor does an answer":                                       {scene(found(answer, untried), published), outcome{Hindered: true, Tell: none, Again: 3 * time.Second}},
		"a result is remembered, though a word is under way":       {scene(found(silence, answer), publishing), outcome{Looks: 3, Again: 3 * time.Second}},
		"without another Ready node there is no control":           {scene(alone), outcome{Dials: 2, Interval: every, Looks: 2}},
		"after a standstill the looks before do not count":         {scene(standstill), outcome{Dials: 4, Interval: every}},
		"nor does the one that was under way":                      {scene(found(silence, answer), standstill), outcome{Again: 3 * time.Second}},
		"what is the same for long is looked at less often":        {scene(steady(settled)), outcome{Dials: 4, Interval: slowly, Looks: settled}},
		"in a large cluster sooner":                                {scene(steady(settledLarge), large), outcome{Dials: 4, Interval: slowly, Looks: settledLarge}},
		"but not before a minute":                                  {scene(steady(settledLarge-1), large), outcome{Dials: 4, Interval: every, Looks: settledLarge - 1}},
		"but not before":                                           {scene(steady(settled - 1)), outcome{Dials: 4, Interval: every, Looks: settled - 1}},
		"a node that nobody can reach is not looked at":            {scene(func(f *facts) { f.others[1].InternalIP = "" }), outcome{Hindered: true, Looks: 2}},
		"and what was told of it is removed":                       {scene(func(f *facts) { f.others[1].InternalIP = "" }, published), outcome{Hindered: true, Tell: none, Looks: 2}},
		"a kubelet that says itself that it is not Ready, as well": {scene(func(f *facts) { f.others[1].Ready = types.ConditionFalse }), look},
		"a node whose Ready condition is missing, as well":         {scene(func(f *facts) { f.others[1].Ready = "" }), look},
	} {
		t.Run(name, func(t *testing.T) {
			a := decide(r.f)
			got := outcome{
				Cancel: a.cancel, Dials: len(a.look), Interval: a.interval, Tell: a.tell, Looks: a.streaks["uid-n3"].looks,
				Hindered: a.unreliable != "", Again: a.again,
			}
			if d := cmp.Diff(r.want, got); d != "" {
				t.Error("want -, got +\n" + d)
			}
		})
	}
}

func TestTheMostUrgentNodesComeFirst(t *testing.T) {
	since := func(hour int) func(*types.Node) {
		return func(n *types.Node) { n.ReadySince = time.Date(2026, 5, 3, hour, 0, 0, 0, time.UTC) }
	}
	notReadyItself := func(n *types.Node) { n.Ready = types.ConditionFalse }
	var got []string
	for _, n := range notReady([]types.Node{
		node(1), node(2, notReadyItself, since(9)), node(3, unknown, since(1)), node(4, unknown, since(8)), node(5, unknown, since(1)),
	}) {
		got = append(got, n.Name)
	}
	if d := cmp.Diff([]string{"n4", "n3", "n5", "n2"}, got); d != "" {
		t.Error("want -, got +\n" + d)
	}
}
