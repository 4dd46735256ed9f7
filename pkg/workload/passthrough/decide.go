package passthrough

import (
	"maps"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// refresh is how often the attachments are looked at although nothing rang:
	// someone may have changed or deleted one. It is one list call.
	refresh = 5 * time.Minute
	// linkRest is how long a link that was set up is left alone, so that there is
	// no race with someone who sets it down.
	linkRest = 10 * time.Second
)

type facts struct {
	now     time.Time
	known   bool                               // configs is all that zedagent says
	wait    time.Duration                      // until an application that it does not say is not configured
	configs map[string]types.AppInstanceConfig // by application

	seen   bool // the API server answers and the tables are complete
	own    types.Node
	joined bool // own is known
	nodes  map[string]types.Node

	busy bool // a round is under way
	memory
}

// memory is what this process remembers. Losing it costs a repeated look, never more.
type memory struct {
	running task      // of the round under way
	done    task      // the last round that went through; zero for none since the API server was silent
	doneAt  time.Time // when it did
	tried   task      // the last round that failed
	pause   time.Time // it is not tried again before
	links   map[string]link
}

type link struct {
	state  Raised
	raised time.Time // when it was set up; zero for not by us
}

// task is what the attachments have to agree with. The zero value agrees with
// nothing.
type task struct {
	ports []string // sorted, each once
	owner types.Node
	nodes []string // of the cluster, sorted
	keep  bool     // of an attachment that nobody says to need, someone may need it
	early bool     // this node may need more than ports
}

func (t task) same(other task) bool {
	return t.owner.Name == other.owner.Name && t.owner.UID == other.owner.UID && t.keep == other.keep && t.early == other.early &&
		slices.Equal(t.ports, other.ports) && slices.Equal(t.nodes, other.nodes)
}

type action struct {
	ports    []string // that applications name, sorted
	problems map[adapter]string
	raise    []string // of ports, those to look at now
	round    *task
	cancel   bool // the round under way has lost its reason
	again    time.Duration
}

type adapter struct{ app, name string }

// decide says which ports are passed through, and whether the attachments are
// to be looked at. Until zedagent has parsed a configuration nothing is taken
// from this node: an application that is not heard of yet would lose its own.
func decide(f facts) action {
	if !f.known {
		return action{}
	}
	var a action
	a.ports, a.problems = wanted(f.configs)
	for _, p := range a.ports {
		if rest := linkRest - f.now.Sub(f.links[p].raised); rest > 0 {
			a.soon(rest)
		} else {
			a.raise = append(a.raise, p)
		}
	}
	t := task{
		ports: a.ports, owner: types.Node{Name: f.own.Name, UID: f.own.UID},
		nodes: slices.Sorted(maps.Keys(f.nodes)), keep: others(f.nodes, f.own), early: f.wait > 0,
	}
	if t.early {
		a.soon(f.wait)
	}
	switch rest := refresh - f.now.Sub(f.doneAt); {
	case !f.seen || !f.joined:
	case f.busy:
		a.cancel = !f.running.same(t)
	case f.tried.same(t) && f.now.Before(f.pause):
		a.soon(f.pause.Sub(f.now))
	case f.done.same(t) && rest > 0:
		a.soon(rest)
	default:
		a.round = &t
	}
	return a
}

func (a *action) soon(d time.Duration) {
	if a.again <= 0 || d < a.again {
		a.again = d
	}
}

// wanted is what the applications name, whether they are to run now or not: the
// attachment is there before their pods are. Virtual machines get their ports
// from domainmgr.
func wanted(configs map[string]types.AppInstanceConfig) (ports []string, problems map[adapter]string) {
	problems = map[adapter]string{}
	for app, config := range configs {
		if config.IsVMI() {
			continue
		}
		for _, io := range config.IoAdapterList {
			if io.Type != types.IoNetEth {
				continue
			}
			if _, err := types.NADName(io.Name); err != nil {
				problems[adapter{app, io.Name}] = err.Error()
				continue
			}
			ports = append(ports, io.Name)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports), problems
}

// others reports that on another node there may be EVE's own zedkube, which
// notes nowhere which attachments it needs: also on one that was put back to
// EVE's image and still has our stamp, which until it has been seen to change
// may be of such a node.
func others(nodes map[string]types.Node, own types.Node) bool {
	for _, n := range nodes {
		if n.Name != own.Name && n.UUID != "" && n.MaybeForeign() {
			return true
		}
	}
	return false
}

type change struct {
	ifname  string
	ensure  bool
	release map[string]string // owners to take off, nil for nothing
}

// suspects are owners that are no nodes of the cluster as the task knows it.
func suspects(t task, nads []types.NAD) bool {
	for _, nad := range nads {
		for node := range nad.Owners {
			if node != t.owner.Name && !slices.Contains(t.nodes, node) {
				return true
			}
		}
	}
	return false
}

// plan compares what there is with what the task asks for. An owner that is
// none of the nodes is taken off: its Node is gone. One with the name of a node
// is that node's own affair.
func plan(t task, nads []types.NAD, nodes []string) []change {
	var changes []change
	missing := slices.Clone(t.ports)
	for _, nad := range nads {
		ch := change{ifname: nad.Interface}
		needed := slices.Contains(t.ports, nad.Interface)
		missing = slices.DeleteFunc(missing, func(p string) bool { return p == nad.Interface })
		uid, noted := nad.Owners[t.owner.Name]
		ch.ensure = needed && (uid != t.owner.UID || nad.Altered || nad.Unowned)
		gone := map[string]string{}
		if noted && !needed && !t.early {
			gone[t.owner.Name] = ""
		}
		for node, uid := range nad.Owners {
			if node != t.owner.Name && !slices.Contains(nodes, node) {
				gone[node] = uid
			}
		}
		ownerless := len(nad.Owners) == 0 && !nad.Unowned && !needed && !t.keep && !t.early
		if len(gone) > 0 || ownerless {
			ch.release = gone
		}
		if ch.ensure || ch.release != nil {
			changes = append(changes, ch)
		}
	}
	for _, p := range missing {
		changes = append(changes, change{ifname: p, ensure: true})
	}
	return changes
}
