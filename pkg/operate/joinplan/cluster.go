package joinplan

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

// name is whether the name of the candidate is free.
func (f Facts) name(all *findings, view *types.ReachCluster) {
	if f.Own.Node == "" {
		return // said already
	}
	for _, p := range f.Peers {
		if p.Node != "" && p.Node == f.Own.Node {
			all.add("name", Blocks, "rename one of the two devices at the controller", "The member %s also has the name %s.", p.Address, f.Own.Node)
			return
		}
	}
	if view == nil || view.Name == "" {
		all.add("name", Unknown, "ask on a member: zedkube join plan", "Whether another Node is called %s is unknown: %s", f.Own.Node, f.noView())
		return
	}
	v, remedy, what := nameText(f.Own.Node, view.Name)
	all.add("name", v, remedy, "%s", what)
}

// nameOf is the same for a candidate that a member looks at.
func (f Facts) nameOf(all *findings, p Peer) {
	switch {
	case p.Node == "":
		all.add("name", Unknown, "ask there: zedkube join plan", "What the Node of %s will be called cannot be told from here: its status server does not say.", p.Address)
	case f.Nodes == nil:
		all.add("name", Unknown, "", "Whether another Node is called %s is unknown: %s", p.Node, f.noView())
	default:
		for _, n := range f.Nodes {
			if n.Name == p.Node && n.InternalIP != p.Address.WithZone("").String() {
				all.add("name", Blocks, "rename one of the two devices at the controller", "Another node already uses the name %s (%s).", p.Node, n.InternalIP)
				return
			}
		}
		all.add("name", OK, "", "No other Node is called %s.", p.Node)
	}
}

// beforeDeleted is where it says what to look at first: a Node takes its member
// of etcd along.
const beforeDeleted = ` (first: docs/operations.md, "Before a Node is deleted")`

func nameText(name string, answer types.ReachName) (v Verdict, remedy, what string) {
	switch answer {
	case types.ReachNameFree:
		return OK, "", "No Node is called " + name + " yet, and none belongs to this device."
	case types.ReachNameOwn:
		return Warn, "if it does not come back: kubectl delete node " + name + beforeDeleted + ", and let it join again", "The cluster has a Node " + name + " of this device already: it was in this cluster before. k3s accepts it again only with the node password that it had then."
	case types.ReachNameOther:
		return Warn, "delete the Node with the old name" + beforeDeleted, "Another Node of the cluster belongs to this same device: it had another name before, and that Node remains."
	case types.ReachNameTaken:
		return Blocks, "rename one of the two devices at the controller; if that Node is left over: kubectl delete node " + name + beforeDeleted, "Another device owns the Node " + name + ": k3s refuses a second one."
	}
	return Unknown, "", fmt.Sprintf("Whether another Node is called %s is unknown: the member answers %q.", name, answer)
}

// noView is why nothing is known of the cluster.
func (f Facts) noView() string {
	switch {
	case f.Role == Member:
		return f.NoNodes
	case len(f.Peers) == 0:
		return "no node could be queried."
	case f.Peers[0].NoReach != "":
		return fmt.Sprintf("%s does not say: %s", f.Peers[0].Address, f.Peers[0].NoReach)
	}
	return fmt.Sprintf("%s does not know the state of its cluster now.", f.Peers[0].Address)
}

func (f Facts) masters(all *findings) {
	if len(f.Own.Masters) == 0 || f.Nodes == nil {
		return
	}
	absent := slices.DeleteFunc(slices.Clone(f.Own.Masters), func(m uuid.UUID) bool {
		return slices.ContainsFunc(f.Nodes, func(n types.Node) bool { return n.UUID == m.String() })
	})
	if len(absent) > 0 {
		all.add("masters", OK, "", "The controller names %s, of which %s not here yet: %s.", phrase.Counted(len(f.Own.Masters), "master"), isAre(len(absent)), and(absent))
		return
	}
	all.add("masters", Warn, "name it as a master at the controller first", "All %s that the controller names are here: one more server would be removed again, only a worker can join.", phrase.Counted(len(f.Own.Masters), "master"))
}

func isAre(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

// mostMembers is as many as etcd is made for.
const mostMembers = 7

// room is whether etcd takes one more, and what it would be able to lose then.
func (f Facts) room(all *findings, view *types.ReachCluster) {
	switch {
	case view == nil:
		all.add("room", Unknown, "", "Whether there is capacity for one more is unknown: %s", f.noView())
		return
	case f.Own.Worker && f.Role == Candidate:
		all.add("room", OK, "", "It joins as a worker, alongside %s: it takes no part in etcd.", phrase.Counted(view.Nodes, "Node"))
		return
	}
	n, ready := view.Members, view.Ready
	q := types.Quorum{Voters: n, Ready: ready}
	switch {
	case n == 0:
		all.add("room", Unknown, "", "No Node of the cluster is a member of etcd.")
	case !q.Has():
		all.add("room", Blocks, "bring the others back first", "Only %d of %d etcd members are Ready, so etcd has no quorum and no node can join.", ready, n)
	case view.Learners > 0:
		all.add("room", Warn, "wait until it is a voter", "One etcd member is still a learner, and etcd allows only one at a time.")
	case ready < n:
		all.add("room", Warn, "bring the others back first", "%d of %d etcd members are Ready: with one more, %d of %d have to be, and %s be lost.", ready, n, (n+1)/2+1, n+1, spare(types.Quorum{Voters: n + 1, Ready: ready + 1}.Spare()))
	case n+1 > mostMembers:
		all.add("room", Warn, "let it join as a worker", "It would be etcd's member %d, and more than %d are slower and no safer.", n+1, mostMembers)
	case (n+1)%2 == 0:
		all.add("room", Warn, "let another one join soon", "With it etcd has %d members, an even number: %s be lost, as with %d, and more can fail.", n+1, spare(n/2), n)
	default:
		all.add("room", OK, "", "With it etcd has %d members, of which %s be lost.", n+1, spare(n/2))
	}
	if view.TieBreaker != "" {
		all.add("room", OK, "", "%s is the tie-breaker.", view.TieBreaker)
	}
}

func spare(n int) string {
	if n <= 0 {
		return "none may"
	}
	return fmt.Sprintf("%d may", n)
}

// release is the version of Kubernetes in a version of k3s.
var release = regexp.MustCompile(`^v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})([-+].*)?$`)

func minorOf(version string) (minor int, ok bool) {
	m := release.FindStringSubmatch(version)
	if m == nil {
		return 0, false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ = strconv.Atoi(m[2])
	return major*10000 + minor, true
}

// olderKubelets is how many minor releases a kubelet may be behind.
const olderKubelets = 3

// versions is whether the software fits together.
func (f Facts) versions(all *findings, view *types.ReachCluster, whose string) {
	for _, p := range f.Peers {
		if p.Reach != nil && p.Reach.Zedkube != "" && p.Reach.Zedkube != f.Own.Version {
			all.add("version", OK, "", "zedkube is %s here and %s at %s.", f.Own.Version, p.Reach.Zedkube, p.Address)
		}
	}
	want := f.Own.Kubernetes
	own, ok := minorOf(want)
	kubelets := f.kubelets(view)
	switch {
	case want == "":
		all.add("version", Unknown, "name it: --kubernetes v1.34.1+k3s1", "It is not known which version of Kubernetes is to run: no file on this device names it.")
		return
	case !ok:
		all.add("version", Unknown, "", "%q, which %s names, is not a version of Kubernetes.", want, f.Own.KubernetesFrom)
		return
	case len(kubelets) == 0:
		all.add("version", Unknown, "", "The candidate is to run Kubernetes %s (%s), and what the members run is unknown.", want, f.Own.KubernetesFrom)
		return
	}
	low, high := own, own
	for _, k := range kubelets {
		if minor, ok := minorOf(k); ok {
			low, high = min(low, minor), max(high, minor)
		}
	}
	const update = "update the older ones first"
	is := fmt.Sprintf("The candidate is to run Kubernetes %s (%s), the members run %s (%s)", want, f.Own.KubernetesFrom, and(kubelets), cmp.Or(whose, "their status server"))
	switch {
	case f.Own.Worker && own > low:
		all.add("version", Blocks, update, "%s: a worker must not be newer than an API server.", is)
	case f.Own.Worker && high-own > olderKubelets, !f.Own.Worker && high-low > 1:
		all.add("version", Blocks, update, "%s: that is too far apart.", is)
	case !f.Own.Worker && high != low:
		all.add("version", Warn, update, "%s: servers may be one minor release apart only during an update.", is)
	case slices.Contains(kubelets, want) && len(kubelets) == 1:
		all.add("version", OK, "", "The candidate is to run Kubernetes %s (%s), as the members do.", want, f.Own.KubernetesFrom)
	default:
		all.add("version", OK, "", "%s: close enough.", is)
	}
}

// kubelets are the versions of the members.
func (f Facts) kubelets(view *types.ReachCluster) []string {
	var out []string
	if view != nil {
		out = view.Kubelets
	} else {
		for _, p := range f.Peers {
			if p.Kubernetes != "" && f.Role == Candidate {
				out = append(out, p.Kubernetes)
			}
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(out)))
}
