package passthrough

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

var now = time.Date(2026, 5, 3, 6, 41, 17, 0, time.UTC)

// container is a native one with these ports.
func container(ports ...string) types.AppInstanceConfig {
	c := types.AppInstanceConfig{FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationNoHyper}}
	for _, p := range ports {
		c.IoAdapterList = append(c.IoAdapterList, types.IoAdapter{Type: types.IoNetEth, Name: p})
	}
	return c
}

// node is one of a cluster on which a zedkube of this kind runs.
func node(name string, change ...func(*types.Node)) types.Node {
	n := types.Node{Name: name, UID: "uid-" + name, UUID: device(name).String(), Ready: types.ConditionTrue, Agent: &types.AgentStamp{}}
	for _, c := range change {
		c(&n)
	}
	return n
}

func unstamped(n *types.Node) { n.Agent = nil }
func outlived(n *types.Node)  { n.StampStale = true }
func stranger(n *types.Node)  { n.Agent, n.UUID = nil, "" }

func table(nodes ...types.Node) map[string]types.Node {
	rows := map[string]types.Node{}
	for _, n := range nodes {
		rows[n.Name] = n
	}
	return rows
}

// scene is node n1 of two with one application that has eth1, just started.
func scene() facts {
	return facts{
		now: now, known: true, configs: map[string]types.AppInstanceConfig{"app-a": container("eth1")},
		seen: true, own: node("n1"), joined: true, nodes: table(node("n1"), node("n2")),
	}
}

func asks(ports ...string) task {
	return task{ports: ports, owner: types.Node{Name: "n1", UID: "uid-n1"}, nodes: []string{"n1", "n2"}}
}

func settled(f *facts) { f.done, f.doneAt = asks("eth1"), now.Add(-time.Minute) }

func TestWhenTheAttachmentsAreLookedAt(t *testing.T) {
	kept := asks("eth1")
	kept.keep = true
	tests := map[string]struct {
		change func(*facts)
		round  []task // one or none
		cancel bool
		again  time.Duration
	}{
		"at the start": {func(*facts) {}, []task{asks("eth1")}, false, 0},
		"not before all configurations are known": {func(f *facts) { f.known = false }, nil, false, 0},
		"not while the API server is silent":      {func(f *facts) { f.seen = false }, nil, false, 0},
		"not while the own Node is not there":     {func(f *facts) { f.joined = false }, nil, false, 0},
		"not again when all is well":              {settled, nil, false, 4 * time.Minute},
		"again after five minutes":                {func(f *facts) { settled(f); f.doneAt = now.Add(-5 * time.Minute) }, []task{asks("eth1")}, false, 0},
		"with no application at all":              {func(f *facts) { f.configs = nil }, []task{asks()}, false, 0},
		"again when the last application goes":    {func(f *facts) { settled(f); f.configs = nil }, []task{asks()}, false, 0},
		"again when the Node is made anew":        {func(f *facts) { settled(f); f.done.owner.UID = "former" }, []task{asks("eth1")}, false, 0},
		"again when a node comes or goes":         {func(f *facts) { settled(f); f.done.nodes = []string{"n1", "n2", "n3"} }, []task{asks("eth1")}, false, 0},
		"not for a node that is only busy": {func(f *facts) {
			settled(f)
			f.nodes["n2"] = node("n2", func(n *types.Node) { n.Ready = types.ConditionFalse })
		}, nil, false, 4 * time.Minute},
		"beside EVE's own zedkube nothing is taken": {func(f *facts) { f.nodes["n2"] = node("n2", unstamped) }, []task{kept}, false, 0},
		"beside a node that is no device it is":     {func(f *facts) { f.nodes["n2"] = node("n2", stranger) }, []task{asks("eth1")}, false, 0},
		"nor beside one that was put back to it":    {func(f *facts) { f.nodes["n2"] = node("n2", outlived) }, []task{kept}, false, 0},
		"nor beside one that was not seen to be ours": {func(f *facts) {
			f.nodes["n2"] = node("n2", func(n *types.Node) { n.StampUnconfirmed = true })
		}, []task{kept}, false, 0},
		"before the own stamp is written it is": {func(f *facts) { f.nodes["n1"] = node("n1", unstamped) }, []task{asks("eth1")}, false, 0},
		"not before the pause is over":          {func(f *facts) { f.tried, f.pause = asks("eth1"), now.Add(7*time.Second) }, nil, false, 7 * time.Second},
		"but for something else at once":        {func(f *facts) { f.tried, f.pause = asks("eth2"), now.Add(7*time.Second) }, []task{asks("eth1")}, false, 0},
		"one at a time":                         {func(f *facts) { f.busy, f.running = true, asks("eth1") }, nil, false, 0},
		"one that is out of date is called off": {func(f *facts) { f.busy, f.running = true, asks("eth2") }, nil, true, 0},
	}
	for name, test := range tests {
		f := scene()
		test.change(&f)
		a := decide(f)
		var round []task
		if a.round != nil {
			round = append(round, *a.round)
		}
		if diff := cmp.Diff(test.round, round, cmp.AllowUnexported(task{}), cmp.Transformer("joined", func(in []string) string { return strings.Join(in, " ") })); diff != "" {
			t.Errorf("%s: round (-want +got):\n%s", name, diff)
		}
		if a.cancel != test.cancel || a.again != test.again {
			t.Errorf("%s: cancel %v, again in %v", name, a.cancel, a.again)
		}
	}
}

func TestWhatApplicationsName(t *testing.T) {
	vm := container("eth5")
	vm.FixedResources.VirtualizationMode = types.VirtualizationHVM
	other := container("eth6")
	other.IoAdapterList[0].Type = types.IoNetEthVF
	ports, problems := wanted(map[string]types.AppInstanceConfig{
		"idle": container("eth2", "eth1"), "second": container("eth1"), "vm": vm, "vf": other, "none": container(),
		"vlan": container("eth0.100"), "bad": container("Eth_1", "eth3", ""),
	})
	if diff := cmp.Diff([]string{"eth0.100", "eth1", "eth2", "eth3"}, ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	if len(problems) != 2 || !strings.Contains(problems[adapter{"bad", "Eth_1"}], `"host-Eth_1" is not a valid name`) || problems[adapter{"bad", ""}] == "" {
		t.Errorf("flaws are %v", problems)
	}
}

func TestWhichLinksAreLookedAt(t *testing.T) {
	f := scene()
	f.configs["app-b"] = container("eth2", "eth3")
	f.seen, f.joined = false, false
	f.links = map[string]link{"eth2": {SetUp, now.Add(-4 * time.Second)}, "eth3": {WasUp, time.Time{}}}
	a := decide(f)
	if diff := cmp.Diff([]string{"eth1", "eth3"}, a.raise); diff != "" || a.again != 6*time.Second {
		t.Errorf("without a cluster, and one just set up: again in %v (-want +got):\n%s", a.again, diff)
	}
	f.known = false
	if a := decide(f); len(a.raise) > 0 {
		t.Errorf("of configurations that are not known: %v", a.raise)
	}
}

func TestWhatIsDoneAboutEachAttachment(t *testing.T) {
	owned := func(by ...string) types.NAD {
		nad := types.NAD{Interface: "eth1", Owners: map[string]string{}}
		for _, n := range by {
			nad.Owners[n] = "uid-" + n
		}
		return nad
	}
	altered, scribbled, former := owned("n1"), types.NAD{Interface: "eth1", Unowned: true}, owned("n1")
	altered.Altered = true
	former.Owners["n1"] = "uid of the former Node"
	keep := func(t task) task { t.keep = true; return t }
	ensure := change{ifname: "eth1", ensure: true}
	drop := func(owners ...string) change {
		ch := change{ifname: "eth1", release: map[string]string{}}
		for _, o := range owners {
			name, uid, _ := strings.Cut(o, "=")
			ch.release[name] = uid
		}
		return ch
	}
	both := drop("n9=uid-n9")
	both.ensure = true
	tests := map[string]struct {
		task task
		nads []types.NAD
		want []change
	}{
		"a needed one is made":                            {asks("eth1"), nil, []change{ensure}},
		"a needed one of other nodes is shared":           {asks("eth1"), []types.NAD{owned("n2")}, []change{ensure}},
		"a needed one is left":                            {asks("eth1"), []types.NAD{owned("n1", "n2")}, nil},
		"an altered one is put right":                     {asks("eth1"), []types.NAD{altered}, []change{ensure}},
		"one that does not say who needs it is claimed":   {asks("eth1"), []types.NAD{scribbled}, []change{ensure}},
		"one of a former Node is claimed":                 {asks("eth1"), []types.NAD{former}, []change{ensure}},
		"one that is not needed any more is released":     {asks(), []types.NAD{owned("n1", "n2")}, []change{drop("n1")}},
		"whichever Node of ours needed it":                {asks(), []types.NAD{former}, []change{drop("n1")}},
		"another node's is left":                          {asks(), []types.NAD{owned("n2")}, nil},
		"that of a node that is gone is released":         {asks(), []types.NAD{owned("n2", "n9")}, []change{drop("n9=uid-n9")}},
		"both, where it is needed":                        {asks("eth1"), []types.NAD{owned("n9")}, []change{both}},
		"one without owners is removed":                   {asks(), []types.NAD{owned()}, []change{drop()}},
		"not while others may need it":                    {keep(asks()), []types.NAD{owned()}, nil},
		"one that does not say who needs it is not":       {asks(), []types.NAD{scribbled}, nil},
		"an altered one of another node is its own cares": {asks(), []types.NAD{{Interface: "eth1", Altered: true, Owners: map[string]string{"n2": "x"}}}, nil},
	}
	for name, test := range tests {
		got := plan(test.task, test.nads, test.task.nodes)
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(change{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if unclear := suspects(test.task, test.nads); unclear != strings.Contains(name, "gone") && unclear != strings.Contains(name, "both") {
			t.Errorf("%s: an owner is unknown: %v", name, unclear)
		}
	}
}
