package drain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/workload/drain/outlook"
	"github.com/zedkube/zedkube/types"
)

// PlanInput is the cluster as a plan looks at it. All of it was just read from the API server.
type PlanInput struct {
	Now        time.Time
	Own        string // the node to drain
	Nodes      []types.Node
	Lock       types.DrainLock
	Storage    types.Storage
	Pods       []types.Pod          // to evict, in the order of their list
	Situations []types.PodSituation // of Pods
	Refused    map[string]error     // by namespace/name, what trial evictions were answered
	Unknown    []string             // what could not be asked, and why
	Timeout    time.Duration        // the bound of one drain
}

// Forecast is what a drain would do now. All times are wall-clock times.
type Forecast struct {
	Node    string
	Made    time.Time
	Verdict string             // a sentence
	Outlook types.DrainOutlook // "" where nothing is in the way
	Unknown []string           // what could not be asked, and why

	Lock     types.DrainLockView
	Quorum   string   // a sentence where quorum is missing, else ""
	Cordon   string   // who has made the node unschedulable: zedkube, kept, operator; "" for nobody
	Warnings []string `json:",omitempty"` // nodes that somebody else has cordoned, and that a drain would not wait for
	Peers    []string // other nodes that are Ready and take pods
	Evicts   bool     // false without peers: the pods go down with the device

	Pods     []ForecastPod // in the order of their eviction
	Parallel int           // evictions at a time
	Blockers []types.DrainBlocker
	Volumes  []types.DrainVolume
	Stranded []string // pods that can run only here
}

// ForecastPod is one eviction to come.
type ForecastPod struct {
	Pod     string // namespace/name
	Refused string // what a trial eviction was answered now; "" for yes
}

// Plan says what a drain would do now, by the rules of the drain itself.
func Plan(p PlanInput) Forecast {
	f := Forecast{Node: p.Own, Made: p.Now, Unknown: p.Unknown, Parallel: parallel}
	nodes := trusted(p.Nodes, p.Now)
	ready := outlook.ReadyNodes(nodes)
	own, _ := nodeNamed(nodes, p.Own)
	f.Cordon = cordonedBy(own, own.TieBreaker)
	for _, n := range nodes {
		if n.Name != p.Own && ready[n.Name] && !n.Unschedulable {
			f.Peers = append(f.Peers, n.Name)
		}
	}
	slices.Sort(f.Peers)
	f.Evicts = len(f.Peers) > 0
	f.Lock = types.DrainLockView{Holder: p.Lock.Holder, Mine: p.Own != "" && ours(p.Lock, p.Own), Since: p.Lock.Since}
	var unlocked string
	unlocked, f.Warnings = sayCordons(cordonedByOthers(nodes, p.Own, p.Now), p.Timeout)
	f.Lock.Waits = cmp.Or(unlocked, lockable(p.Lock, p.Own, p.Now.Sub(p.Lock.Since), heard{}, nodes, p.Storage), goesUnlocked(nodes, p.Own, p.Lock.Holder, nil))
	f.Quorum = quorum(nodes, p.Own)
	for _, pod := range p.Pods {
		row := ForecastPod{Pod: pod.Key()}
		if err := p.Refused[pod.Key()]; err != nil {
			row.Refused = err.Error()
		}
		f.Pods = append(f.Pods, row)
	}
	f.Blockers = blockersAhead(p, own.Ready == types.ConditionTrue)
	f.Stranded = outlook.Stranded(p.Situations)
	// That a volume is in use here is no obstacle while its pod is still to go.
	f.Volumes = outlook.BlockingVolumes(outlook.WithoutUse(p.Storage, p.Own, func(string) bool { return true }), p.Own, ready)
	f.Outlook, f.Verdict = verdict(f)
	return f
}

// verdict is the plan in a sentence. What comes first in a drain comes first.
func verdict(f Forecast) (types.DrainOutlook, string) {
	never, slow := tally(f)
	switch {
	case f.Quorum != "":
		return types.OutlookNever, "it would wait before the cordon until etcd keeps quorum without this node"
	case f.Lock.Waits != "":
		return types.OutlookSlow, "it would wait for the drain lock: " + f.Lock.Waits
	case !f.Evicts && len(f.Pods) > 0:
		return types.OutlookSlow, fmt.Sprintf("nothing would be evicted, because there is no other node to run pods: %s would go down with the device", phrase.Counted(len(f.Pods), "pod"))
	case never > 0:
		return types.OutlookNever, fmt.Sprintf("it would not complete without action on %d of %s in the way", never, phrase.Counted(never+slow, "thing"))
	case slow > 0:
		return types.OutlookSlow, fmt.Sprintf("it would complete by itself, but not immediately, with %s in the way", phrase.Counted(slow, "thing"))
	case len(f.Unknown) > 0:
		return types.OutlookSlow, "nothing was found in the way, but not all could be checked"
	}
	gone := fmt.Sprintf("nothing is in the way: %s would go", phrase.Counted(len(f.Pods), "pod"))
	if n := len(f.Stranded); n > 0 {
		gone += fmt.Sprintf(", of which %d can run only here", n)
	}
	return "", gone
}

// tally counts what is in the way, pods and volumes.
func tally(f Forecast) (never, slow int) {
	explained := map[string]bool{}
	count := func(o types.DrainOutlook) {
		if o == types.OutlookNever {
			never++
		} else {
			slow++
		}
	}
	for _, b := range f.Blockers {
		count(b.Outlook)
		explained[b.Pod] = true
	}
	for _, p := range f.Pods {
		if p.Refused != "" && !explained[p.Pod] {
			count(types.OutlookSlow)
		}
	}
	for _, v := range f.Volumes {
		count(v.Outlook)
	}
	return never, slow
}

// trusted is nodes as far as their kubelets confirm them: one whose Lease was
// not renewed within fresh is not Ready, whatever its condition says. A plan
// looks once, so it can only go by the clocks.
func trusted(nodes []types.Node, now time.Time) []types.Node {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		if nodes[i].Ready == types.ConditionTrue && now.Sub(nodes[i].RenewedAt).Abs() > fresh {
			nodes[i].Ready = types.ConditionUnknown
		}
	}
	return nodes
}

// blockersAhead explains the pods that would not go at once: those whose trial
// eviction was refused, those on their way out already, and those that something
// about them keeps here.
func blockersAhead(p PlanInput, kubeletReady bool) []types.DrainBlocker {
	known := map[string]types.PodSituation{}
	for _, s := range p.Situations {
		known[s.Pod.Key()] = s
	}
	var ahead []outlook.StuckPod
	for _, pod := range p.Pods {
		o := outlook.StuckPod{Situation: known[pod.Key()], Since: p.Now, TerminatingSince: pod.Deleted, KubeletReady: kubeletReady}
		o.Situation.Pod = pod
		if err := p.Refused[pod.Key()]; err != nil {
			o.RefusedBy = err.Error()
		}
		if pod.Terminating() {
			o.Since = pod.Deleted
		}
		s := o.Situation
		if o.RefusedBy != "" || pod.Terminating() || len(s.Finalizers) > 0 || s.Pinned || s.Immovable != "" {
			ahead = append(ahead, o)
		}
	}
	return outlook.Blockers(p.Now, ahead)
}

// OnlyHere is what a leave of own would lose, by the rules of the drain: the
// volumes that have no healthy replica elsewhere, as far as can be told at now.
func OnlyHere(s types.Storage, nodes []types.Node, own string, now time.Time) []types.LeaveVolume {
	return outlook.LostByLeave(s, own, outlook.ReadyNodes(trusted(nodes, now)))
}
