package drain

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/workload/drain/outlook"
	"github.com/zedkube/zedkube/types"
)

// podEviction is a pod that has to leave, and what came of it.
type podEviction struct {
	pod      types.Pod
	since    time.Duration // when it was first chosen
	accepted time.Duration // when its eviction was accepted; 0 before
	next     time.Duration // no try before this
	backoff  time.Duration
	refusal  string // why the last try failed; "" before, and once accepted
	seen     bool   // the table has shown it since the last list
	gone     bool   // the table showed it, and does not any longer
	returns  int    // how often its creator's pods have come back
	shared   bool   // with those of other creators in its namespace
	stays    bool   // so often that it is no longer evicted
}

// due is how long it is until the pod's eviction may be tried; at most 0 for now.
func (e *podEviction) due(now time.Duration) time.Duration {
	at := e.next
	if e.accepted != 0 {
		at = max(at, e.accepted+evictAgain)
	}
	return at - now
}

// evictionResult sorts the pods of a drain by what came of their eviction, as the
// drain of Cluster API does. Each pod is in one list.
type evictionResult struct {
	notFound               []*podEviction // they are gone
	ignored                []*podEviction // their creator made them again too often: they go down with the device
	deletionTimestampSet   []*podEviction // they terminate
	toEvict                []*podEviction // now
	failedEviction         []*podEviction // refused, and tried again later
	toTriggerEvictionLater []*podEviction // accepted without effect yet, or of a creator whose pods came back
}

func (f facts) evictions() evictionResult { return sortEvictions(f.now, f.pods) }

// sortEvictions sorts the pods that the last list chose. Which pods are on that
// list is the first filter: kubeapi leaves out those of DaemonSets, mirror pods and
// those that have ended.
func sortEvictions(now time.Duration, pods []podEviction) (r evictionResult) {
	for i := range pods {
		e := &pods[i]
		list := &r.toTriggerEvictionLater
		switch {
		case e.gone:
			list = &r.notFound
		case e.stays:
			list = &r.ignored
		case e.pod.Terminating():
			list = &r.deletionTimestampSet
		case e.due(now) <= 0:
			list = &r.toEvict
		case e.refusal != "":
			list = &r.failedEviction
		}
		*list = append(*list, e)
	}
	return r
}

// remaining are the pods whose end the drain waits for.
func (r evictionResult) remaining() []*podEviction {
	return slices.Concat(r.deletionTimestampSet, r.toEvict, r.failedEviction, r.toTriggerEvictionLater)
}

// left counts the pods whose end the drain waits for.
func (r evictionResult) left() int {
	return len(r.deletionTimestampSet) + len(r.toEvict) + len(r.failedEviction) + len(r.toTriggerEvictionLater)
}

func (r evictionResult) evictNow() (pods []types.Pod) {
	for _, e := range r.toEvict {
		pods = append(pods, e.pod)
	}
	return pods
}

// next is how long it is until the next eviction may be tried, 0 for none.
func (r evictionResult) next(now time.Duration) (next time.Duration) {
	for _, e := range slices.Concat(r.failedEviction, r.toTriggerEvictionLater) {
		if due := e.due(now); next == 0 || due < next {
			next = due
		}
	}
	return next
}

// unseen counts the pods that the last list had and the table has not shown since,
// and says for how long the first of them has been on the list: the watch lags
// behind the list, or has shown its end already.
func (r evictionResult) unseen(list time.Duration) (n int, longest time.Duration) {
	for _, e := range r.remaining() {
		if !e.seen {
			n++
			longest = max(longest, list-e.since)
		}
	}
	return n, longest
}

// slow is the pods that are still there after so long, the longest-standing first.
func (r evictionResult) slow(now time.Duration, long time.Duration) []*podEviction {
	pods := slices.DeleteFunc(append(r.remaining(), r.ignored...), func(e *podEviction) bool { return now-e.since < long })
	slices.SortFunc(pods, func(a, b *podEviction) int {
		return cmp.Or(cmp.Compare(a.since, b.since), strings.Compare(a.pod.Key(), b.pod.Key()))
	})
	return pods
}

// count is the pods of a drain in numbers, of total that were ever chosen.
func (r evictionResult) count(total int) types.DrainPods {
	p := types.DrainPods{Total: total, Terminating: len(r.deletionTimestampSet), Waiting: r.left() - len(r.deletionTimestampSet)}
	for _, e := range r.ignored {
		if e.pod.Terminating() {
			p.Terminating++
		} else {
			p.Waiting++
		}
	}
	p.Evicted = max(0, total-p.Terminating-p.Waiting)
	return p
}

// leftAlone says which pods stay on the node, "" for none.
func (r evictionResult) leftAlone() string {
	if len(r.ignored) == 0 {
		return ""
	}
	names := keys(r.ignored)
	return fmt.Sprintf("; %s came back %d times and will go down with the device: %s", phrase.Counted(len(names), "pod"), outlook.MaxReturns, outlook.Some(names))
}

// keys are the pods by namespace/name, in order.
func keys(pods []*podEviction) (names []string) {
	for _, e := range pods {
		names = append(names, e.pod.Key())
	}
	slices.Sort(names)
	return names
}

// applyList replaces the set of pods to evict by a fresh one and keeps what is
// known of those that stay in it; but that one was gone does not count against a
// list that holds it. table is the pods there were before the list was requested:
// one that came later may not be in it.
func (s *state) applyList(now time.Duration, pods []types.Pod, table map[string]types.Pod) {
	m := &s.mem
	before := map[string]podEviction{}
	for _, e := range m.pods {
		before[e.pod.UID] = e
	}
	m.list, m.listed, m.pods = now, map[string]bool{}, nil
	for _, p := range table {
		m.listed[p.UID] = true
	}
	if len(m.chosen) == 0 && s.rec.Total > 0 { // by an earlier process, who knows which
		s.rec.Total = max(s.rec.Total, len(pods))
		for _, p := range pods {
			m.chosen[p.UID] = true
		}
	}
	for _, p := range pods {
		m.listed[p.UID] = true
		e, ok := before[p.UID]
		if !ok {
			e.since = now
			e.next = s.countReturn(now, p)
			if !m.chosen[p.UID] {
				m.chosen[p.UID] = true
				s.rec.Total++
			}
		}
		e.pod, e.seen, e.gone = p, false, false
		m.pods = append(m.pods, e)
	}
}

// applyEvictions notes for each pod whether it goes, or when to try again. A
// budget's refusal is news once per pod and never an error.
func (s *state) applyEvictions(now time.Duration, pods []types.Pod, results []error) {
	index := map[string]int{}
	for i := range s.mem.pods {
		index[s.mem.pods[i].pod.UID] = i
	}
	// Hundreds of pods that wait for a budget are no reason for a storm.
	longest := max(maxRefused, time.Duration(len(s.mem.pods))*100*time.Millisecond)
	var bad error
	for i, p := range pods {
		at, ok := index[p.UID]
		if !ok || errors.Is(results[i], errNoTime) {
			continue
		}
		e := &s.mem.pods[at]
		err := results[i]
		if err == nil {
			e.accepted, e.backoff, e.refusal = now, 0, ""
			s.noteEvicted(p)
			continue
		}
		if errors.Is(err, types.ErrDisruptionBudget) {
			if e.refusal == "" {
				s.note(logrus.InfoLevel, "cordonAndDrainNode: eviction waits for a PodDisruptionBudget", logrus.Fields{"pod": p.Key(), logrus.ErrorKey: err})
			}
		} else if bad == nil {
			bad = fmt.Errorf("evict pod %s: %w", p.Key(), err)
		}
		e.refusal = err.Error()
		e.backoff = min(max(2*e.backoff, minBackoff), longest)
		e.next = now + e.backoff
	}
	if bad != nil {
		s.mem.lastErr, s.mem.errVerb = bad, evict
	}
}

// maxPause is the longest pause before pods that came back are evicted again.
const maxPause = time.Minute

// creator is who makes the pods of a drain, as far as the drain has to know.
type creator struct {
	first   map[string]bool // UIDs of its pods that were there before one was evicted
	evicted bool            // one was
	again   bool            // one was since the last return was counted
	returns int             // how often pods of it have come back
	shared  bool            // it stands for all creators of its namespace that have no lasting name
	next    time.Duration   // no eviction of those before this
}

// stays reports that a pod of it is no longer evicted. That needs one that came
// back: any other is evicted, and its budgets are honoured.
func (m *creator) stays(uid string) bool {
	return m != nil && m.returns >= outlook.MaxReturns && !m.first[uid]
}

// creatorOf is the key of who makes the pod, the same for all pods of it: the
// application, the controlling owner, or for a pod without one its namespace.
func creatorOf(p types.Pod) string {
	switch {
	case p.AppDomain != "":
		return "application " + p.AppDomain
	case p.Owner.Name != "":
		return p.Namespace + "/" + p.Owner.Kind + " " + p.Owner.Name
	}
	return sharedOf(p)
}

// sharedOf is the key of all creators in the pod's namespace that have no lasting
// name: programs that make pods without an owner, and what makes the owner of its
// pods again under another name each time, such as a VirtualMachineInstanceReplicaSet.
func sharedOf(p types.Pod) string { return "namespace " + p.Namespace }

// nameOf is the creator of p, for people.
func (m *creator) nameOf(p types.Pod) string {
	if m.shared && p.Owner.Name != "" {
		return "what makes " + outlook.OwnerName(p)
	}
	return outlook.OwnerName(p)
}

// countReturn notes a pod that was chosen for the first time. One whose creator had a
// pod evicted before has come back: then it may not be evicted before next, which
// is later and later.
func (s *state) countReturn(now time.Duration, p types.Pod) (next time.Duration) {
	m := s.makes(p)
	switch {
	case !m.evicted:
		m.first[p.UID] = true
		return 0
	case m.again:
		m.again = false
		m.returns++
		if m.returns == outlook.MaxReturns {
			s.report(true, "DrainLeavesPods", fmt.Sprintf(
				"pods of %s in namespace %s have come back to this node %d times: they are no longer evicted and go down with the device",
				m.nameOf(p), p.Namespace, m.returns))
		}
	}
	m.next = max(m.next, now+min(maxPause, time.Second<<min(m.returns-1, 6)))
	return m.next
}

// makes is who makes the pod. An owner that is new on a cordoned node from whose
// namespace pods were evicted counts as the shared one.
func (s *state) makes(p types.Pod) *creator {
	key, all := creatorOf(p), s.mem.creators
	shared := all[sharedOf(p)]
	if shared == nil {
		shared = &creator{first: map[string]bool{}, shared: true}
		all[sharedOf(p)] = shared
	}
	switch {
	case all[key] != nil:
	case p.AppDomain == "" && shared.evicted: // an application keeps its name
		all[key] = shared
	default:
		all[key] = &creator{first: map[string]bool{}}
	}
	return all[key]
}

// noteEvicted notes that a pod of a creator was evicted.
func (s *state) noteEvicted(p types.Pod) {
	for _, key := range []string{creatorOf(p), sharedOf(p)} {
		if m := s.mem.creators[key]; m != nil {
			m.evicted, m.again = true, true
		}
	}
}

// staying is the creators whose pods stay on the node, by key, each with the UIDs
// of those that do not.
func (s *state) staying() map[string]map[string]bool {
	stays := map[string]map[string]bool{}
	for key, m := range s.mem.creators {
		if m.returns >= outlook.MaxReturns {
			stays[key] = maps.Clone(m.first)
		}
	}
	return stays
}

// remains reports that the drain waits for the end of p.
func (in call) remains(p types.Pod) bool {
	first, stays := in.stays[creatorOf(p)]
	return !stays || first[p.UID]
}

// leavesUseToPods reports that the use of volumes by pods that stay on the node and
// go down with the device does not count: for a reboot and never for a leave.
func (in call) leavesUseToPods(s types.Storage) bool {
	return !in.forGood && len(in.stays) > 0 && outlook.InUse(s, in.node.Name)
}

// usedByStaying reports of a volume that only pods use it that stay.
func (r reading) usedByStaying(in call) func(volume string) bool {
	return func(volume string) bool {
		return len(r.users[volume]) > 0 && !slices.ContainsFunc(r.users[volume], in.remains)
	}
}
