package turns

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// kind says what an event is.
type kind string

const (
	lockIs     kind = "lock"       // Lock is what the lock is from now on
	completes  kind = "complete"   // the drain of Node is complete, because of Text
	takesBack  kind = "took back"  // it is no longer
	endsK3s    kind = "ends k3s"   // an agent has k3s of Node end, because of Text
	goesDown   kind = "goes down"  // the device of Node, because of Text
	isBack     kind = "is back"    // k3s of Node runs again, on a device that is up
	isGone     kind = "gone"       // the Node is deleted
	volumesAre kind = "volumes"    // Volumes is what there is from now on
	says       kind = "says"       // Text is a line of the log of Node
	happens    kind = "happens"    // Text is something else, for who reads the history
	mutes      kind = "mutes"      // the API server of Node does not answer any more, because of Text
	hears      kind = "hears"      // it answers again
	settled    kind = "is settled" // nothing has happened for long: Text is what is left
)

type event struct {
	At      time.Duration // since the history began
	Kind    kind
	Node    string
	Text    string
	Lock    types.DrainLock
	Volumes []types.Volume
}

func (e event) String() string {
	switch e.Kind {
	case lockIs:
		l := e.Lock
		return fmt.Sprintf("%s %s: lock of %q, boot %s, task %q, ended %v, %v", e.At, e.Node, l.Holder, l.BootID, l.Task, l.Ended, l.Volumes)
	case volumesAre:
		text := fmt.Sprintf("%s volumes:", e.At)
		for _, v := range e.Volumes {
			text += fmt.Sprintf(" %s@%s", v.Name, v.Engine)
			for _, r := range v.Replicas {
				state := r.Mode
				if state == "" && v.Healthy(r) {
					state = "whole"
				}
				text += fmt.Sprintf(" %s:%s", r.Node, state)
			}
			text += ";"
		}
		return text
	}
	return fmt.Sprintf("%s %s %s: %s", e.At, e.Node, e.Kind, e.Text)
}

// slack is for how long what is so may be unknown to who looked before it acts.
const slack = time.Minute

// judge reads a history and says which rules it breaks:
//
//	replica:  no device may go down, and no k3s is ended, while a volume would be left without a whole replica
//	one:      never are two nodes between COMPLETE, or the end of their k3s, and their return
//	quorum:   nor does a node go while etcd has no quorum without it
//	lock:     who goes has the lock
//	recorded: the volumes that a lock has recorded are in it until they are as they were
//	return:   no k3s is taken back that runs well, or did until it was restarted for volumes that are not mounted
//	settled:  in the end nothing is left
//
// A drain that is complete because its API server did not answer has looked at nothing and needs no lock; the others
// wait for it once its Node shows that, until the device has rebooted. A return
// asks no others. A restart for certificates that are about to expire does without a quorum that lacks anyway, and
// without volumes, as one for volumes that are not mounted does without those that no pod there waits for: it keeps
// the replicas (docs/wire.md, "KubeLifecycle", "MountRecovery").
func judge(nodes []string, events []event) (wrong []string) {
	var lock types.DrainLock
	var volumes []types.Volume
	complete, ended, rebooting := map[string]bool{}, map[string]bool{}, map[string]bool{}
	blind, down, gone := map[string]bool{}, map[string]time.Duration{}, map[string]bool{}
	mute, remounts := map[string]bool{}, map[string]bool{}
	since := map[string]time.Duration{} // when a condition began to hold
	holds := func(at time.Duration, key string, is bool) {
		if _, was := since[key]; !is {
			delete(since, key)
		} else if !was {
			since[key] = at
		}
	}
	lastsFor := func(at time.Duration, key string, long time.Duration) bool {
		from, is := since[key]
		return is && at-from >= long
	}
	lasts := func(at time.Duration, key string) bool { return lastsFor(at, key, slack) }
	away := func(n string) bool { return complete[n] || ended[n] || rebooting[n] }
	for _, e := range events {
		n := e.Node
		fail := func(format string, args ...any) {
			wrong = append(wrong, fmt.Sprintf("%s, %s %s: ", e.At, n, e.Kind)+fmt.Sprintf(format, args...))
		}
		goes := func() {
			if lock.Holder != n {
				fail("the lock is %q's [lock]", lock.Holder)
			}
			voters, up := 0, 0
			for _, other := range nodes {
				if gone[other] {
					continue
				}
				voters++
				if _, is := down[other]; other != n && (!is || e.At-down[other] < slack) {
					up++
				}
				if other != n && away(other) && (!blind[other] || lasts(e.At, "shows "+other)) {
					fail("%s is not back [one]", other)
				}
			}
			urgent, returns := strings.Contains(e.Text, string(types.RestartUrgent)), strings.Contains(e.Text, string(types.K3sStepReturn))
			if up < voters-1 && up <= voters/2 && !urgent && !returns {
				fail("%d of %d voters would be left [quorum]", up, voters)
			}
			for _, v := range volumes {
				if lasts(e.At, "last "+v.Name+" "+n) && !urgent && !returns && e.Text != byMounts {
					fail("it has the last whole replica of %s [replica]", v.Name)
				}
			}
		}
		switch e.Kind {
		case lockIs:
			for _, name := range worse(lock, volumes) {
				if !gone[lock.Holder] && (e.Lock.Holder != lock.Holder || e.Lock.Volumes[name] < lock.Volumes[name]) && lasts(e.At, "worse "+name) {
					fail("%s is worse than %s's lock has recorded [recorded]", name, lock.Holder)
				}
			}
			lock = e.Lock
		case completes:
			if blind[n] = excused(e.Text); !blind[n] && !complete[n] {
				goes()
			}
			complete[n] = true
		case takesBack:
			complete[n] = false
		case endsK3s:
			if !excused(e.Text) && !ended[n] {
				goes()
			}
			if strings.Contains(e.Text, string(types.K3sStepReturn)) && lastsFor(e.At, "runs "+n, 10*time.Minute) {
				fail("%s [return]", e.Text)
			}
			ended[n] = true
			down[n] = e.At
		case goesDown:
			rebooting[n], complete[n] = away(n), false
			down[n] = e.At
		case isBack:
			ended[n], rebooting[n] = false, false
			delete(down, n)
		case isGone:
			ended[n], rebooting[n], complete[n], gone[n] = false, false, false, true
		case volumesAre:
			volumes = e.Volumes
		case settled:
			if e.Text != "" {
				fail("%s [settled]", e.Text)
			}
		}
		for _, n := range nodes {
			_, is := down[n]
			if e.Node == n && (e.Kind == mutes || e.Kind == hears) {
				mute[n] = e.Kind == mutes
			}
			if e.Node == n && (e.Kind == endsK3s && e.Text == byMounts || e.Kind == hears) {
				remounts[n] = e.Kind == endsK3s
			}
			holds(e.At, "runs "+n, !is && !mute[n] || remounts[n])
			holds(e.At, "shows "+n, !is && !mute[n] && complete[n])
		}
		isDown := func(n string) bool { _, is := down[n]; return is && !ended[n] || gone[n] }
		for _, v := range volumes {
			for _, n := range nodes {
				holds(e.At, "last "+v.Name+" "+n, wholeOn(v, n) && !slices.ContainsFunc(nodes, func(other string) bool { return other != n && wholeOn(v, other) && !isDown(other) }))
			}
			holds(e.At, "worse "+v.Name, slices.Contains(worse(lock, volumes), v.Name))
		}
	}
	return wrong
}

// byMounts is the Text of a restart for volumes that are not mounted.
const byMounts = "mounts"

// excused says of a drain or a restart that it needed nobody.
func excused(why string) bool {
	return slices.ContainsFunc([]string{"has not answered for", "not in the cluster's list", string(types.RestartExpired)}, func(part string) bool { return strings.Contains(why, part) })
}

// wholeOn reports that the node has a whole replica of a volume of which that is known.
func wholeOn(v types.Volume, node string) bool {
	return (v.Running || v.State == "detached") && slices.ContainsFunc(v.Replicas, func(r types.Replica) bool { return r.Node == node && v.Healthy(r) })
}

// worse are the volumes in use that have fewer whole replicas than the lock has recorded, and none on
// its holder (docs/decisions/0015-drain-lock.md).
func worse(lock types.DrainLock, volumes []types.Volume) (names []string) {
	for _, v := range volumes {
		whole := 0
		for _, r := range v.Replicas {
			if v.Running && v.Healthy(r) {
				whole++
			}
		}
		if v.Running && whole < min(lock.Volumes[v.Name], v.Wanted) && !wholeOn(v, lock.Holder) {
			names = append(names, v.Name)
		}
	}
	return names
}
