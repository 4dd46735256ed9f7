package apps

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

type facts struct {
	now    time.Time     // for what is told to people and other agents
	uptime time.Duration // for everything that lasts
	boot   string

	configsKnown bool // zedagent's table has been complete once
	configs      map[string]types.AppInstanceConfig
	statuses     map[string]types.ENClusterAppStatus // published, perhaps by a former run
	repairs      map[string]types.AppRepairStatus    // published, perhaps by a former run
	requests     map[string]types.AppDetachRequest   // by hand
	settled      bool                                // and has been so for long enough after a boot to hold all of them
	reached      bool                                // zedagent fetched a configuration within two intervals
	events       string                              // the setting when virtual machines go back

	unseenSince time.Time // since when the tables and self do not tell the whole present truth; zero: they do
	wholeSets   bool      // the tables of sets and virtual machines do, too
	self        types.Node
	nodes       map[string]types.Node
	known       map[string]types.KnownNode // also those that are deleted
	pods        []types.Pod                // those of configured applications, and those on nodes that do not serve
	vmis        []types.VMI
	sets        map[string]types.AppSet
	mounts      types.MountRecovery
	off         types.WorkloadsStatus
	witnessed   map[string]time.Time // when the word of each witness last changed

	memory
}

// memory is what this process remembers of earlier steps. Losing it costs time,
// never correctness.
type memory struct {
	since  map[string]time.Duration // when what is seen now began, by what it is
	words  types.Witnesses
	fresh  fresh            // the last look at what no table holds
	acting *task            // under way; nil for none
	rest   map[string]pause // by application, by the UID of a Node to fence or unfence, by late, held, telling, and "" for all

	configSource types.ConfigArrival
	fetching     bool          // the last fetch that was looked at succeeded
	fetched      time.Duration // uptime when that was last so; zero for never
}

// pause is how long something is left alone after a try.
type pause struct {
	until time.Duration // uptime
	last  time.Duration // how long it was
	why   string        // what came of the try, a sentence
	act   types.RepairAct
}

// fresh is what only a list tells, and when it was asked for.
type fresh struct {
	at      time.Duration // uptime when it began; zero for never
	came    time.Duration // uptime when it had ended
	tried   time.Duration // the last try, which err came of
	nodes   []types.Node
	storage types.Storage
	err     string
	leases  map[string]time.Time // of deleted Nodes that were asked for, by UID; zero where there is none
	renewed map[string]renewal   // by UID of a Node, over all looks
}

// renewal is the last renewal of a kubelet's Lease, and how long that has been so.
type renewal struct {
	by    time.Time     // the kubelet's clock; zero where there is no Lease
	seen  time.Duration // when the first answer that has it had come
	still time.Duration // when the last look that has it began
}

type action struct {
	publish   map[string]types.ENClusterAppStatus
	repairs   map[string]types.AppRepairStatus
	unpublish []string
	since     map[string]time.Duration
	look      bool         // at volumes and Leases, again
	deleted   []types.Node // whose Leases it is to show as well, though their Nodes are missing
	act       *task
	tell      *types.Designations // to be written on the own Node
	again     time.Duration       // when time alone will change the answer; 0: never
}

func (a *action) soon(d time.Duration) {
	if d > 0 && (a.again == 0 || d < a.again) {
		a.again = d
	}
}

func decide(f facts) action {
	a := action{publish: map[string]types.ENClusterAppStatus{}, repairs: map[string]types.AppRepairStatus{}, since: map[string]time.Duration{}}
	verdicts := map[string]verdict{}
	for _, app := range f.apps() {
		status, waits := f.restarting(app, f.status(app))
		a.publish[app.key] = status
		if !f.unseenSince.IsZero() {
			a.soon(trust - f.unseen(app.key))
		}
		a.follow(f, waits)
		v := f.judge(app)
		verdicts[app.key] = v
		a.repairs[app.key] = f.told(app, v)
		a.follow(f, v)
	}
	if f.configsKnown {
		published := slices.AppendSeq(slices.Collect(maps.Keys(f.statuses)), maps.Keys(f.repairs))
		slices.Sort(published)
		a.unpublish = slices.DeleteFunc(slices.Compact(published), func(app string) bool {
			_, configured := f.configs[app]
			return configured
		})
	}
	f.tell(&a)
	f.unfence(&a)
	f.fence(&a)
	if f.acting == nil {
		a.act = f.choose(&a, verdicts)
	}
	return a
}

// follow takes over when and where a verdict wants to look again.
func (a *action) follow(f facts, v verdict) {
	for _, k := range v.keys {
		began, ok := f.since[k]
		if !ok {
			began = f.uptime
		}
		a.since[k] = began
	}
	a.look = a.look || v.look
	if _, there := f.nodes[v.lost.Name]; !there && v.lost.UID != "" {
		a.deleted = append(a.deleted, v.lost)
	}
	a.soon(v.again)
}

// choose gathers what may be done now into one task: all of one kind, and of
// one lost node, so that no application waits for another's round.
func (f facts) choose(a *action, verdicts map[string]verdict) *task {
	if a.act != nil {
		return a.act
	}
	if wait := f.pausing(""); wait > 0 {
		a.soon(wait)
		return nil
	}
	var t *task
	for _, key := range slices.Sorted(maps.Keys(verdicts)) {
		v := verdicts[key]
		if v.target == nil {
			continue
		}
		if wait := f.pausing(key); wait > 0 {
			a.soon(wait)
			continue
		}
		if t == nil {
			t = f.task(v.act, v.lost)
		}
		if v.act == t.act && v.lost.Name == t.lost.Name && v.lost.UID == t.lost.UID && len(t.targets) < f.most(v.act) {
			t.targets = append(t.targets, *v.target)
		}
	}
	return t
}

// task is one about a lost node, or about none, and what was known of it.
func (f facts) task(act types.RepairAct, lost types.Node) *task {
	_, there := f.nodes[lost.Name]
	t := &task{act: act, lost: lost, deleted: !there, self: f.self, words: f.words, heard: f.uptime, renewed: f.fresh.renewed[lost.UID].by}
	if lost.Name != "" {
		t.others = f.podClaims(lost.Name)
	}
	return t
}

func (f facts) pausing(key string) time.Duration { return max(0, f.rest[key].until-f.uptime) }

// most bounds how many applications one task takes. What disturbs something
// that runs, or may have to be repeated, is done to one at a time.
func (f facts) most(act types.RepairAct) int {
	if act == types.ActFailback || act == types.ActUnstick {
		return 1
	}
	return 50
}

// lastRenewal is the sentence that tells when the kubelet of a deleted Node was
// last seen to renew its Lease, nil where that is not remembered.
func (f facts) lastRenewal(lost types.Node) []string {
	seen := f.known[lost.Name].LeaseSeen
	if seen.IsZero() {
		return nil
	}
	ago := "less than a minute"
	if d := f.now.Sub(seen).Truncate(time.Minute); d > 0 {
		ago = strings.TrimSuffix(d.String(), "0s")
	}
	return []string{fmt.Sprintf("The last renewal of the Lease of %s before its Node was deleted was at %s, %s ago.",
		lost.Name, seen.UTC().Format(time.RFC3339), ago)}
}

// renewedSince reports that the Lease of a device is another than is remembered from
// before the deletion of its Node, and has not been for long. A Lease that outlives its
// Node and is renewed shows that the kubelet lives.
func (f facts) renewedSince(lost types.Node) bool {
	r := f.fresh.renewed[lost.UID]
	return !r.by.IsZero() && !r.by.Equal(f.known[lost.Name].LeaseRenewed) && f.uptime-r.seen < deletedFor
}
