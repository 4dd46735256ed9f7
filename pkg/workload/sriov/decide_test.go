package sriov

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// missing is what is remembered of functions that have been missing for so long.
func missing(d time.Duration, vfs ...vf) map[string]time.Time {
	since := map[string]time.Time{}
	for _, v := range vfs {
		since[v.name()] = ago(d)
	}
	return since
}

func partOf(vfs ...vf) string { return part{Since: ago(time.Hour), VFs: vfs}.text() }

// held is a ConfigMap with the parts given by node, and their merge.
func held(parts map[string][]vf, more ...vf) types.SRIOVConfig {
	c := types.SRIOVConfig{Version: "7", Data: map[string]string{}}
	all := more
	for node, vfs := range parts {
		c.Data[partKey(node)] = partOf(vfs...)
		all = append(all, vfs...)
	}
	c.Data[configKey] = merge(all, nil)
	return c
}

func plugin(mark string, age time.Duration) types.SRIOVPlugin {
	return types.SRIOVPlugin{Name: "p", UID: "u", Created: ago(age), Part: mark}
}

func network(resource string) types.SRIOVNetwork {
	return types.SRIOVNetwork{Name: resource, UID: resource, Version: "1", Resource: resource}
}

func TestDecide(t *testing.T) {
	a, b, c := at("eth5", 1, "0000:3b:0a.1"), at("eth5", 2, "0000:3b:0a.2"), at("eth7", 1, "0000:5e:0a.1")
	unbound := b.place()
	mark := part{VFs: []vf{a}}.fingerprint()
	both := map[string][]vf{"n1": {a}, "n2": {c}}
	shown := func(vfs ...vf) *scanned { return &scanned{vfs: vfs} }
	for _, test := range []struct {
		name  string
		facts func(f *facts)
		want  summary
	}{
		{"nothing has changed: nothing is written", nil, summary{again: lookAgain}},
		{
			"what domainmgr has is not known: nothing is written",
			func(f *facts) { f.scanned, f.config = nil, types.SRIOVConfig{} },
			summary{again: lookAgain},
		},
		{
			"a node without functions makes no ConfigMap",
			func(f *facts) { f.scanned, f.config = shown(), types.SRIOVConfig{} },
			summary{again: lookAgain},
		},
		{
			"a node without functions tells so in one that is there, and leaves the configuration",
			func(f *facts) { f.scanned, f.config = shown(), held(map[string][]vf{"n2": {c}}) },
			summary{why: ownPart, keys: []string{"node.n1.json"}},
		},
		{
			"the first node makes the ConfigMap",
			func(f *facts) { f.config = types.SRIOVConfig{} },
			summary{why: ownPart, keys: []string{"config.json", "node.n1.json"}, resources: []string{"eth5_vf1"}},
		},
		{
			"a function more is added to those of the other nodes",
			func(f *facts) { f.scanned = shown(a, b) },
			summary{why: ownPart, keys: []string{"config.json", "node.n1.json"}, resources: []string{"eth5_vf1", "eth5_vf2", "eth7_vf1"}},
		},
		{
			"a function that no driver gives away is told in the own part alone",
			func(f *facts) {
				f.config, f.scanned = held(map[string][]vf{"n1": {a, unbound}, "n2": {c}}), shown(a, b)
			},
			summary{why: ownPart, keys: []string{"node.n1.json"}},
		},
		{
			"what domainmgr no longer names stays for a while",
			func(f *facts) { f.scanned = shown() },
			summary{again: shrinkAfter},
		},
		{
			"then it goes",
			func(f *facts) { f.scanned, f.memory.lacking = shown(), missing(shrinkAfter, a) },
			summary{why: ownPart, keys: []string{"config.json", "node.n1.json"}, resources: []string{"eth7_vf1"}},
		},
		{
			"what sysfs does not show stays as it was",
			func(f *facts) {
				f.scanned, f.memory.lacking = &scanned{unread: []string{a.Address}}, missing(time.Hour, a)
			},
			summary{again: lookAgain},
		},
		{
			"each function that is not named any more has its own time",
			func(f *facts) {
				f.config = held(map[string][]vf{"n1": {a, b}, "n2": {c}})
				f.scanned, f.memory.lacking = shown(), missing(shrinkAfter, a)
			},
			summary{why: ownPart, keys: []string{"config.json", "node.n1.json"}, resources: []string{"eth5_vf2", "eth7_vf1"}},
		},
		{
			"that a function was bound in another boot is told in the own part alone",
			func(f *facts) { f.boot = "second" },
			summary{why: ownPart, keys: []string{"node.n1.json"}},
		},
		{
			"not while it is not seen to be bound again",
			func(f *facts) { f.boot, f.scanned = "second", &scanned{unread: []string{a.Address}} },
			summary{again: lookAgain},
		},
		{
			"nor of one that is not bound",
			func(f *facts) {
				f.boot = "second"
				f.config, f.scanned = held(map[string][]vf{"n1": {unbound}, "n2": {c}}), shown(unbound)
			},
			summary{again: lookAgain},
		},
		{
			"a plug-in that has started in another boot is restarted",
			func(f *facts) {
				again := a
				again.Boot = "second"
				f.boot, f.config = "second", held(map[string][]vf{"n1": {again}, "n2": {c}})
				f.plugins = []types.SRIOVPlugin{plugin(mark, 2*time.Hour)}
			},
			summary{restart: 1, again: lookAgain},
		},
		{
			"a function that moved is told at once",
			func(f *facts) { f.scanned = shown(at("eth5", 1, "0000:3b:0a.7")) },
			summary{why: ownPart, keys: []string{"config.json", "node.n1.json"}, resources: []string{"eth5_vf1", "eth7_vf1"}},
		},
		{
			"an own part that cannot be read is written anew",
			func(f *facts) { f.config.Data["node.n1.json"] = `{"vfs":[{"pf":"eth5/../"}]}` },
			summary{why: ownPart, keys: []string{"node.n1.json"}, foreign: []string{"eth5_vf1"}},
		},
		{
			"a node that has only just left keeps its part",
			func(f *facts) { f.nodes = []string{"n1"} },
			summary{again: goneAfter},
		},
		{
			"the part of a node that left is dropped",
			func(f *facts) { f.nodes, f.memory.gone = []string{"n1"}, map[string]time.Time{"n2": ago(goneAfter)} },
			summary{why: tidy, keys: []string{"config.json", "node.n2.json"}, resources: []string{"eth5_vf1"}},
		},
		{
			"resources of a node that has no part are kept",
			func(f *facts) { f.config = held(map[string][]vf{"n1": {a}}, c); f.scanned = shown(a, b) },
			summary{why: ownPart, keys: []string{"config.json", "node.n1.json"}, resources: []string{"eth5_vf1", "eth5_vf2", "eth7_vf1"}, foreign: []string{"eth7_vf1"}},
		},
		{
			"resources of nobody go once all nodes have a part",
			func(f *facts) { f.config = held(both, b) },
			summary{why: tidy, keys: []string{"config.json"}, resources: []string{"eth5_vf1", "eth7_vf1"}, foreign: []string{"eth5_vf2"}},
		},
		{
			"another agent's list is merged with all parts",
			func(f *facts) { f.config.Data[configKey] = merge([]vf{b}, nil) },
			summary{why: correct, keys: []string{"config.json", "merged.json", "node.n1.json"}, resources: []string{"eth5_vf1", "eth7_vf1"}, foreign: []string{"eth5_vf2"}},
		},
		{
			"but not within a minute of the last time",
			func(f *facts) {
				f.config.Data[configKey] = merge([]vf{b}, nil)
				f.memory.repaired, f.memory.pause = ago(20*time.Second), minPause
			},
			summary{again: 40 * time.Second, foreign: []string{"eth5_vf2"}},
		},
		{
			"and less and less often",
			func(f *facts) {
				f.config.Data[configKey] = merge([]vf{b}, nil)
				f.memory.repaired, f.memory.pause = ago(9*time.Minute), 16*time.Minute
			},
			summary{again: 7 * time.Minute, foreign: []string{"eth5_vf2"}},
		},
		{
			"a configuration that would end every plug-in is mended by any node",
			func(f *facts) {
				f.scanned, f.config = shown(), held(map[string][]vf{"n1": {}, "n2": {c}})
				f.config.Data[configKey] = "{"
			},
			summary{why: correct, keys: []string{"config.json", "merged.json", "node.n1.json"}, resources: []string{"eth7_vf1"}},
		},
		{
			"that the resources of another node are missing is left to that node",
			func(f *facts) { f.config.Data[configKey] = merge([]vf{a}, nil) },
			summary{again: lookAgain},
		},
		{
			"a plug-in that has read the part is left alone",
			func(f *facts) { f.plugins = []types.SRIOVPlugin{plugin(mark, 2*time.Hour)} },
			summary{again: lookAgain},
		},
		{
			"one that has read another part is restarted",
			func(f *facts) { f.plugins = []types.SRIOVPlugin{plugin("other", 0)} },
			summary{restart: 1, again: lookAgain},
		},
		{
			"not twice in a minute",
			func(f *facts) {
				f.plugins, f.memory.restart = []types.SRIOVPlugin{plugin("other", 0)}, ago(50*time.Second)
			},
			summary{again: 10 * time.Second},
		},
		{
			"nor while it is on its way out",
			func(f *facts) {
				f.plugins = []types.SRIOVPlugin{plugin("other", 0)}
				f.plugins[0].Terminating = true
			},
			summary{again: lookAgain},
		},
		{
			"one without mark that is older than the part is restarted",
			func(f *facts) { f.plugins = []types.SRIOVPlugin{plugin("", 2*time.Hour)} },
			summary{restart: 1, again: lookAgain},
		},
		{
			"one without mark that is younger is marked",
			func(f *facts) { f.plugins = []types.SRIOVPlugin{plugin("", 30*time.Minute)} },
			summary{mark: []string{mark}, again: lookAgain},
		},
		{
			"after a write of this process every one without mark is older",
			func(f *facts) {
				f.plugins, f.memory.wrote = []types.SRIOVPlugin{plugin("", 0)}, mark
			},
			summary{restart: 1, again: lookAgain},
		},
		{
			"and after that every one without mark is younger, whatever the clocks say",
			func(f *facts) {
				f.plugins, f.memory.settled = []types.SRIOVPlugin{plugin("", 9*time.Hour)}, mark+" "+time.Time{}.String()
			},
			summary{mark: []string{mark}, again: lookAgain},
		},
		{
			"one without mark that may have started with another agent's list is restarted",
			func(f *facts) {
				f.plugins, f.memory.settled = []types.SRIOVPlugin{plugin("", 30*time.Minute)}, mark+" "+time.Time{}.String()
				f.config.Data[mergedKey] = `{"since":"2026-03-04T11:35:00Z"}`
			},
			summary{restart: 1, again: lookAgain},
		},
		{
			"a plug-in is not judged while what the node has is not known",
			func(f *facts) { f.scanned, f.plugins = nil, []types.SRIOVPlugin{plugin("other", 0)} },
			summary{again: lookAgain},
		},
		{
			"nor is one without mark",
			func(f *facts) { f.scanned, f.plugins = nil, []types.SRIOVPlugin{plugin("", 30*time.Minute)} },
			summary{again: lookAgain},
		},
		{
			"a plug-in is not judged by a configuration that lacks the own functions",
			func(f *facts) {
				f.config.Data[configKey] = merge([]vf{b}, nil)
				f.memory.repaired, f.memory.pause = noon, minPause
				f.plugins = []types.SRIOVPlugin{plugin("", 0)}
			},
			summary{again: minPause, foreign: []string{"eth5_vf2"}},
		},
		{
			"on a node that has never had functions a plug-in without mark is left alone",
			func(f *facts) {
				f.scanned, f.config = shown(), held(map[string][]vf{"n1": {}, "n2": {c}})
				f.config.Data["node.n1.json"] = part{}.text()
				f.plugins = []types.SRIOVPlugin{plugin("", 100*time.Hour)}
			},
			summary{mark: []string{nothing}, again: lookAgain},
		},
		{
			"one that may still offer what the node has lost is restarted",
			func(f *facts) {
				f.scanned, f.config = shown(), held(map[string][]vf{"n1": {}, "n2": {c}})
				f.plugins = []types.SRIOVPlugin{plugin("", 2*time.Hour)}
			},
			summary{restart: 1, again: lookAgain},
		},
		{
			"an attachment is looked at for a while before it goes",
			func(f *facts) { f.networks = []types.SRIOVNetwork{network("eve.network/eth5_vf9")} },
			summary{again: orphanAfter},
		},
		{
			"then it goes, if no node has its resource and it is EVE's",
			func(f *facts) {
				for _, r := range []string{"eve.network/eth5_vf9", "eve.network/eth5_vf1", "eve.network/eth7_vf1", "intel.com/nics"} {
					f.networks = append(f.networks, network(r))
				}
				f.memory.ownerless = map[string]time.Time{}
				for _, n := range f.networks {
					f.memory.ownerless[n.UID] = ago(orphanAfter)
				}
			},
			summary{drop: []string{"eve.network/eth5_vf9"}, again: lookAgain},
		},
		{
			"nor before what is to be written is",
			func(f *facts) {
				f.scanned = shown(a, b)
				f.networks = []types.SRIOVNetwork{network("eve.network/eth5_vf9")}
				f.memory.ownerless = map[string]time.Time{"eve.network/eth5_vf9": ago(time.Hour)}
			},
			summary{why: ownPart, keys: []string{"config.json", "node.n1.json"}, resources: []string{"eth5_vf1", "eth5_vf2", "eth7_vf1"}},
		},
		{
			"not while a node has no part",
			func(f *facts) {
				f.nodes = []string{"n1", "n2", "n3"}
				f.networks = []types.SRIOVNetwork{network("eve.network/eth5_vf9")}
				f.memory.ownerless = map[string]time.Time{"eve.network/eth5_vf9": ago(time.Hour)}
			},
			summary{again: lookAgain},
		},
		{
			"nor while another agent writes the configuration",
			func(f *facts) {
				f.memory.repaired, f.memory.pause = ago(time.Minute), minPause
				f.networks = []types.SRIOVNetwork{network("eve.network/eth5_vf9")}
				f.memory.ownerless = map[string]time.Time{"eve.network/eth5_vf9": ago(time.Hour)}
			},
			summary{again: lookAgain},
		},
	} {
		f := facts{now: noon, own: "n1", nodes: []string{"n1", "n2"}, scanned: shown(a), config: held(both)}
		if test.facts != nil {
			test.facts(&f)
		}
		if d := cmp.Diff(test.want, summed(decide(f)), cmp.AllowUnexported(summary{})); d != "" {
			t.Errorf("%s:\n%s", test.name, d)
		}
	}
}

// summary is an action in words.
type summary struct {
	why       change
	keys      []string // that are written
	resources []string // of the configuration that is written
	mark      []string
	restart   int
	drop      []string
	foreign   []string
	again     time.Duration
}

func summed(a action) summary {
	s := summary{why: a.why, restart: len(a.restart), foreign: a.foreign, again: a.again}
	if a.change != nil {
		s.keys = slices.Sorted(maps.Keys(a.change.Data))
		if text, ok := a.change.Data[configKey]; ok {
			s.resources = names(readConfig(text).vfs)
		}
	}
	for _, p := range a.mark {
		s.mark = append(s.mark, p.Part)
	}
	for _, n := range a.drop {
		s.drop = append(s.drop, n.Name)
	}
	return s
}
