package history

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// at puts events after one another, a second apart, and from further on after a
// pause.
func at(parts ...any) []Event {
	var events []Event
	now := time.Duration(0)
	for _, p := range parts {
		switch p := p.(type) {
		case time.Duration:
			now += p
		case Event:
			p.At = now
			events = append(events, p)
		case []Event:
			for _, e := range p {
				e.At = now
				events = append(events, e)
				now += time.Second
			}
			continue
		}
		now += time.Second
	}
	return events
}

func says(node string, s types.DrainStatus) Event {
	return Event{Kind: Drain, Node: node, Drain: &types.NodeDrainStatus{Status: s}}
}

func saysFor(node string, s types.DrainStatus, by types.DrainRequester) Event {
	return Event{Kind: Drain, Node: node, Drain: &types.NodeDrainStatus{Status: s, RequestedBy: by}}
}

// restored is what happens to etcd.
var restored = Event{Kind: Restored}

func why(node, text string) Event { return Event{Kind: Why, Node: node, Text: text} }

func up(node string) Event        { return Event{Kind: AgentUp, Node: node} }
func down(node string) Event      { return Event{Kind: AgentDown, Node: node} }
func asks(node string) Event      { return Event{Kind: Asked, Node: node, By: "UPDATE"} }
func asksToo(node string) Event   { return Event{Kind: Asked, Node: node, By: "DEVICEOP"} }
func stops(node string) Event     { return Event{Kind: TookBack, Node: node, By: "UPDATE"} }
func stopsToo(node string) Event  { return Event{Kind: TookBack, Node: node, By: "DEVICEOP"} }
func reboots(node string) Event   { return Event{Kind: Rebooted, Node: node} }
func fault(node, is string) Event { return Event{Kind: Fault, Node: node, Text: is} }
func alone(node string, is bool) Event {
	return Event{Kind: Alone, Node: node, On: is}
}

// is is a Node, Ready and voting.
func is(node string, change ...func(*Object)) Event {
	o := &Object{Ready: true, Voter: true}
	for _, c := range change {
		c(o)
	}
	return Event{Kind: NodeIs, Node: node, Object: o}
}

func ours(o *Object)    { o.Unschedulable, o.Mark = true, "drain" }
func theirs(o *Object)  { o.Unschedulable = true }
func unready(o *Object) { o.Ready = false }
func gone(o *Object)    { o.Gone = true }
func worker(o *Object)  { o.Voter = false }

func looked(node string, change ...func(*Look)) Event {
	l := &Look{Unschedulable: true}
	for _, c := range change {
		c(l)
	}
	return Event{Kind: Looked, Node: node, Look: l}
}

func withPods(l *Look)    { l.Pods = []string{"app-1"} }
func withVolumes(l *Look) { l.Volumes = []string{"pvc-1"} }
func uncordoned(l *Look)  { l.Unschedulable = false }

func lockOf(node, holder string) Event {
	return Event{Kind: LockIs, Node: node, Look: &Look{Holder: holder}}
}

func settled(change ...func(*Look)) Event {
	l := &Look{}
	for _, c := range change {
		c(l)
	}
	return Event{Kind: Settled, Look: l}
}

func leads(node string, on bool, since time.Duration) Event {
	return Event{Kind: Leader, Node: node, On: on, Since: since}
}

// setBack is a history in which n2, which has seen seen lead since it was started, leads after
// etcd was set back, and n1 beside it for a while.
func setBack(while time.Duration, seen string) []Event {
	says := Event{Kind: Leader, Node: "n2", Text: seen, Since: 8 * time.Second}
	return at(three, leads("n1", true, 6*time.Second), up("n2"), says, restored,
		leads("n2", true, 10*time.Second), while, leads("n1", false, 11*time.Second+while))
}

func reports(node string, on bool) Event { return Event{Kind: Reports, Node: node, On: on} }

func claims(node string, on bool) Event {
	return Event{Kind: Claim, Node: node, App: "uuid", On: on}
}

func pod(name, node string, change ...func(*Object)) Event {
	o := &Object{Name: name, App: "app", Domain: "uuid.1.1", Claims: []string{"pvc"}, Ready: true}
	for _, c := range change {
		c(o)
	}
	return Event{Kind: PodIs, Node: node, Object: o}
}

func ending(o *Object) { o.Ending = true }

func attached(name, node string, change ...func(*Object)) Event {
	o := &Object{Name: name, Volume: "pvc", Attached: true}
	for _, c := range change {
		c(o)
	}
	return Event{Kind: VolumeIs, Node: node, Object: o}
}

func evicted(by, pod string) Event {
	return Event{Kind: Called, Node: by, Text: "create pods/eviction " + pod + ": 201"}
}

func detached(o *Object) { o.Attached = false }

// three are Nodes that are Ready.
var three = []Event{is("n1"), is("n2"), is("n3"), up("n1"), up("n2"), up("n3")}

// drained is a drain as it should be, to COMPLETE.
func drained(node string) []Event {
	return []Event{
		says(node, types.DrainNotRequested), asks(node), says(node, types.DrainRequested), why(node, "waits for the lock"), says(node, types.DrainStarting),
		is(node, ours), lockOf(node, node), says(node, types.DrainCordoned), says(node, types.DrainRetrying), says(node, types.DrainComplete), looked(node),
	}
}

func back(node string) []Event {
	return []Event{reboots(node), up(node), says(node, types.DrainNotRequested), is(node)}
}

// TestViolationsAreFound has histories that break one rule each, and such that
// come as close as they may.
func TestViolationsAreFound(t *testing.T) {
	planted := map[string]bool{}
	const minutes = 3 * time.Minute
	for _, row := range []struct {
		name string
		all  []Event
		rule string // that is broken; "" for none
	}{
		{"three drains after one another", at(three, drained("n1"), back("n1"), drained("n2"), back("n2"), drained("n3"), back("n3"), settled()), ""},
		{"a drain that is taken back", at(three, drained("n1"), stops("n1"), says("n1", types.DrainNotRequested), is("n1"), settled()), ""},
		{"nothing", nil, ""},

		{"a pod is left at COMPLETE", at(three, drained("n1"), looked("n1", withPods)), "complete"},
		{"a pod is back after the request was taken back", at(three, drained("n1"), stops("n1"), looked("n1", withPods)), ""},
		{"a pod is back after the reboot", at(three, drained("n1"), reboots("n1"), looked("n1", withPods)), ""},
		{"a second requester comes before it is looked", at(three, drained("n1")[:10], asksToo("n1"), looked("n1", withPods)), "complete"},
		{"the API server answers, and it says otherwise", at(three, drained("n1")[:9], why("n1", "the API server has not answered for 5m0s: nothing can be drained"), says("n1", types.DrainComplete), looked("n1", withPods)), "complete"},
		{"a fault was over before the drain", at(three, fault("n1", "hung"), fault("n1", "none"), drained("n1")[:9], why("n1", "the API server has not answered for 5m0s: nothing can be drained"), says("n1", types.DrainComplete), looked("n1", withPods)), "complete"},
		{"a second requester comes after a fault", at(three, asks("n1"), fault("n1", "hung"), why("n1", "the API server has not answered for 5m0s: nothing can be drained"), says("n1", types.DrainRequested), fault("n1", "none"), asksToo("n1"), says("n1", types.DrainComplete), looked("n1", withPods, uncordoned)), ""},
		{"one of two requesters is done", at(three, drained("n1")[:10], asksToo("n1"), stops("n1"), looked("n1", withPods)), "complete"},
		{"none is forced", at(three, drained("n1")[:9], why("n1", "pods are evicted, none is forced"), says("n1", types.DrainComplete), looked("n1", withPods)), "complete"},
		{"an operator forces it", at(three, drained("n1")[:9], why("n1", "forced by the force file"), says("n1", types.DrainComplete), looked("n1", withPods)), ""},
		{"the node is in the list, and it says otherwise", at(three, drained("n1")[:9], why("n1", "this node is not in the cluster's list of nodes"), says("n1", types.DrainComplete), looked("n1", withPods)), "complete"},
		{"a voter that was missed is back before it is looked", at(three, is("n2", unready), 20*time.Second, drained("n1")[:10], is("n2"), looked("n1")), "complete"},
		{"pods stay where the API server is away", at(three, asks("n1"), fault("n1", "hung"), why("n1", "the API server has not answered for 5m0s: nothing can be drained"), says("n1", types.DrainRequested), fault("n1", "none"), says("n1", types.DrainComplete), looked("n1", withPods, uncordoned)), ""},
		{"pods stay on the only node", at(is("n1"), drained("n1")[:10], looked("n1", withPods, withVolumes)), ""},
		{"another one joins just then", at(is("n1"), drained("n1")[:9], is("n2"), drained("n1")[9], looked("n1", withPods)), ""},
		{"another one has long been there", at(is("n1"), is("n2"), 10*time.Second, drained("n1")[:10], looked("n1", withPods)), "complete"},
		{"a volume is left at COMPLETE", at(three, drained("n1"), looked("n1", withVolumes)), "complete"},
		{"no cordon at COMPLETE", at(three, drained("n1"), looked("n1", uncordoned)), "complete"},
		{"one of three voters is away", at(three, is("n2", unready), 10*time.Second, drained("n1")), "complete"},
		{"one of three voters goes just then", at(three, drained("n1")[:9], is("n2", unready), drained("n1")[9:]), ""},
		{"it goes afterwards", at(three, drained("n1")[:10], is("n2", unready), 10*time.Second, looked("n1")), ""},
		{"one of four voters is away", at(three, is("n4"), is("n2", unready), 10*time.Second, drained("n1")), "complete"},
		{"one of five voters is away", at(three, is("n4"), is("n5"), is("n2", unready), 10*time.Second, drained("n1")), ""},
		{"two of five voters are away", at(three, is("n4"), is("n5", unready), is("n2", unready), 10*time.Second, drained("n1")), "complete"},
		{"a worker is away", at(three, is("n4", worker, unready), 10*time.Second, drained("n1")), ""},
		{"a worker goes without quorum", at(is("n1", worker), is("n2"), is("n3", unready), is("n4", unready), 10*time.Second, asks("n1"), is("n1", worker, ours), says("n1", types.DrainComplete), looked("n1")), ""},
		{"one of two voters goes", at(is("n1"), is("n2"), drained("n1")), ""},
		{"a voter that left is not missed", at(three, is("n2", unready), is("n2", gone), 10*time.Second, drained("n1")), ""},

		{"a drain for nobody", at(three, says("n1", types.DrainNotRequested), says("n1", types.DrainRequested)), "order"},
		{"a drain for nobody after one that was taken back", at(three, drained("n1"), stops("n1"), says("n1", types.DrainNotRequested), is("n1"), minutes, says("n1", types.DrainRequested)), "order"},
		{"a drain for nobody after a reboot", at(three, drained("n1"), back("n1"), minutes, says("n1", types.DrainRequested)), "order"},
		{"a step back", at(three, drained("n1")[:9], says("n1", types.DrainCordoned)), "order"},
		{"COMPLETE is taken back while the request stands", at(three, drained("n1"), says("n1", types.DrainNotRequested)), "order"},
		{"one of two requests is taken back", at(three, drained("n1"), asksToo("n1"), stops("n1"), says("n1", types.DrainNotRequested)), "order"},
		{"both are", at(three, drained("n1"), asksToo("n1"), stops("n1"), stopsToo("n1"), says("n1", types.DrainNotRequested), is("n1")), ""},
		{"one that was taken back is heard of late", at(three, says("n1", types.DrainNotRequested), asks("n1"), stops("n1"), asks("n1"), says("n1", types.DrainRequested), says("n1", types.DrainNotRequested)), ""},
		{"and that is said too late", at(three, says("n1", types.DrainNotRequested), asks("n1"), stops("n1"), asks("n1"), 10*time.Second, says("n1", types.DrainRequested), says("n1", types.DrainNotRequested)), "order"},
		{"a failed drain begins again by itself", at(three, drained("n1")[:9], says("n1", types.DrainFailedDrain), says("n1", types.DrainRequested)), "order"},
		{"it begins again for another request", at(three, drained("n1")[:9], says("n1", types.DrainFailedDrain), asks("n1"), says("n1", types.DrainRequested)), ""},
		{"somebody else's drain begins when this one ends", at(three, asks("n1"), saysFor("n1", types.DrainStarting, types.DrainRequesterUpdate), stops("n1"), asksToo("n1"), saysFor("n1", types.DrainRequested, types.DrainRequesterDeviceOp)), ""},
		{"and this one has not", at(three, asks("n1"), saysFor("n1", types.DrainStarting, types.DrainRequesterUpdate), asksToo("n1"), saysFor("n1", types.DrainRequested, types.DrainRequesterDeviceOp)), "order"},
		{"a member that knows nothing of drains", at(says("n1", types.DrainNotSupported), says("n1", types.DrainNotRequested), says("n1", types.DrainNotSupported)), "order"},

		{"two are cordoned", at(three, asks("n1"), asks("n2"), is("n1", ours), is("n2", ours)), "one at a time"},
		{"two are cordoned that count as alone", at(three, asks("n1"), asks("n2"), alone("n1", true), alone("n2", true), is("n1", ours), is("n2", ours)), "one at a time"},
		{"one of two requests is taken back at COMPLETE without a cordon", at(three, asks("n1"), asksToo("n1"), fault("n1", "hung"), says("n1", types.DrainComplete), stops("n1"), asks("n2"), is("n2", ours)), "one at a time"},
		{"one is cordoned by somebody else", at(three, asks("n1"), is("n1", ours), Event{Kind: Foreign, Node: "n2", On: true}, is("n2", theirs)), ""},
		{"the second before the first is back", at(three, drained("n1"), reboots("n1"), asks("n2"), is("n2", ours)), "one at a time"},
		{"one COMPLETE without API server, one cordoned", at(three, asks("n1"), is("n1", ours), alone("n2", true), asks("n2"), says("n2", types.DrainComplete)), "one at a time"},
		{"both are alone", at(three, asks("n1"), asks("n2"), alone("n1", true), says("n1", types.DrainComplete), alone("n2", true), says("n2", types.DrainComplete)), ""},
		{"one of them is not", at(three, asks("n1"), asks("n2"), says("n1", types.DrainComplete), alone("n2", true), says("n2", types.DrainComplete)), "one at a time"},
		{"one that was alone is not any more, and has not rebooted", at(three, asks("n1"), asks("n2"), alone("n1", true), says("n1", types.DrainComplete), alone("n1", false), 31*time.Second, is("n2", ours)), "one at a time"},
		{"which its Node shows", at(three, asks("n1"), asks("n2"), alone("n1", true), says("n1", types.DrainComplete), alone("n1", false), is("n1", ours), 6*time.Second, is("n2", ours)), "one at a time"},
		{"which its Node showed before COMPLETE", at(three, asks("n1"), asks("n2"), alone("n1", true), says("n1", types.DrainComplete), alone("n1", false), is("n2", ours), is("n1", ours), 6*time.Second, says("n2", types.DrainComplete)), "one at a time"},
		{"which nobody can know yet", at(three, asks("n1"), asks("n2"), alone("n1", true), says("n1", types.DrainComplete), alone("n1", false), 3*time.Second, is("n2", ours), is("n1", ours), lockOf("n1", "n2")), ""},
		{"one that was alone is drained again, without the lock", at(three, asks("n1"), alone("n1", true), says("n1", types.DrainComplete), reboots("n1"), alone("n1", false), asks("n1"), is("n1", ours), lockOf("n1", "n2")), "locked"},
		{"one that was alone has rebooted", at(three, asks("n1"), asks("n2"), alone("n1", true), says("n1", types.DrainComplete), reboots("n1"), alone("n1", false), is("n2", ours)), ""},
		{"what it said is heard late", at(three, drained("n1"), reboots("n1"), is("n1"), asks("n2"), is("n2", ours)), ""},
		{"COMPLETE is heard before its cordon", at(three, asks("n1"), asks("n2"), says("n1", types.DrainComplete), is("n1", ours), is("n1"), is("n2", ours)), ""},
		{"one is deleted while it is away", at(three, asks("n1"), asks("n2"), is("n1", ours), is("n1", gone), is("n2", ours)), ""},

		{"two are COMPLETE without API server, whose Nodes nobody has seen", at(asks("n1"), asks("n2"), says("n1", types.DrainComplete), says("n2", types.DrainComplete)), "one at a time"},

		{"etcd is set back between two cordons", at(three, asks("n1"), is("n1", ours), asks("n2"), restored, is("n2", ours)), ""},
		{"between two COMPLETE", at(three, drained("n1"), asks("n2"), is("n2", ours), says("n2", types.DrainRetrying), restored, says("n2", types.DrainComplete)), "one at a time"},
		{"before two other drains", at(three, restored, asks("n1"), is("n1", ours), asks("n2"), is("n2", ours)), "one at a time"},
		{"nobody has the lock after that", at(three, asks("n1"), restored, lockOf("n1", "")), ""},
		{"nor in the next drain", at(three, restored, asks("n1"), lockOf("n1", "")), "locked"},
		{"no other node takes pods", at(three, is("n2", theirs), is("n3", theirs), minutes, drained("n1")[:9], why("n1", "no other node is Ready and schedulable: nothing is evicted"), says("n1", types.DrainComplete), looked("n1", withPods)), ""},
		{"one does", at(three, is("n2", theirs), minutes, drained("n1")[:9], why("n1", "no other node is Ready and schedulable: nothing is evicted"), says("n1", types.DrainComplete), looked("n1", withPods)), "complete"},
		{"one did a moment ago", at(three, is("n2", theirs), minutes, drained("n1")[:9], is("n3", theirs), why("n1", "no other node is Ready and schedulable: nothing is evicted"), says("n1", types.DrainComplete), looked("n1", withPods)), "complete"},
		{"pods are back after that", at(three, drained("n1"), restored, looked("n1", withPods)), ""},
		{"they are back when COMPLETE comes of a look before that", at(three, drained("n1")[:9], restored, says("n1", types.DrainComplete), looked("n1", withPods)), ""},
		{"it comes of a look after that", at(three, drained("n1")[:9], restored, 16*time.Second, says("n1", types.DrainComplete), looked("n1", withPods)), "complete"},

		{"the lock is another's", at(three, lockOf("n1", "n2")), "locked"},
		{"nobody has the lock", at(three, lockOf("n1", "")), "locked"},

		{"two report", at(leads("n1", true, 0), leads("n2", true, time.Second), leads("n1", false, 2*time.Second)), "one reporter"},
		{"two go on", at(leads("n1", true, 0), leads("n2", true, time.Second), 9*time.Second, up("n3")), "one reporter"},
		{"one after the other, heard the other way round", at(leads("n1", true, 0), 3*time.Second, leads("n2", true, 2*time.Second), leads("n1", false, time.Second)), ""},
		{"one is killed", at(leads("n1", true, 0), down("n1"), 20*time.Second, leads("n2", true, 15*time.Second)), ""},
		{"what it had said is heard again after the kill", at(leads("n1", true, 0), down("n1"), up("n1"), leads("n1", false, 0), 20*time.Second, leads("n2", true, 15*time.Second)), ""},
		{"and it had said that it reports", at(leads("n1", true, 0), down("n1"), up("n1"), leads("n1", true, 0), 20*time.Second, leads("n2", true, 15*time.Second)), ""},
		{"it is killed and says so again", at(leads("n1", true, 0), down("n1"), up("n1"), leads("n1", true, 3*time.Second), leads("n2", true, 4*time.Second), 9*time.Second, up("n3")), "one reporter"},

		{"etcd is set back to the term of one that has just started", setBack(time.Second, ""), ""},
		{"the other one goes on after its Lease has run out", setBack(time.Minute, ""), "one reporter"},
		{"the one has seen the other one lead", setBack(time.Second, "n1"), "one reporter"},
		{"the other one began after that", at(three, restored, leads("n1", true, 7*time.Second), leads("n2", true, 8*time.Second), leads("n1", false, 9*time.Second)), "one reporter"},
		{"the one led before that", at(three, leads("n1", true, 6*time.Second), restored, leads("n2", true, 6*time.Second), leads("n1", false, 9*time.Second)), "one reporter"},
		{"two publish reports", at(three, reports("n1", true), reports("n2", true), minutes, up("n3")), "one reporter"},
		{"two do for a moment", at(three, reports("n1", true), reports("n2", true), reports("n1", false), minutes, up("n3")), ""},
		{"the report of one that is killed is left", at(three, reports("n1", true), down("n1"), reports("n2", true), minutes, up("n3")), ""},
		{"one that is started again does not withdraw it", at(three, reports("n1", true), down("n1"), reports("n2", true), up("n1"), minutes, up("n3")), "one reporter"},
		{"one does whose term a restored etcd brought back", at(three, leads("n1", true, 6*time.Second), reports("n1", true), up("n2"), restored, leads("n2", true, 10*time.Second), reports("n2", true), 9*time.Second, leads("n1", false, 21*time.Second), 9*time.Second, reports("n1", false)), ""},
		{"it goes on for long", at(three, leads("n1", true, 6*time.Second), reports("n1", true), up("n2"), restored, leads("n2", true, 10*time.Second), reports("n2", true), 9*time.Second, leads("n1", false, 21*time.Second), minutes, up("n3"), minutes, up("n3")), "one reporter"},
		{"it does", at(three, reports("n1", true), down("n1"), reports("n2", true), up("n1"), reports("n1", false), minutes, up("n3")), ""},
		{"and is heard of after that", at(three, down("n1"), reports("n1", true), reports("n2", true), minutes, up("n3")), ""},

		{"a volume is attached twice", at(three, attached("a1", "n1"), attached("a2", "n2")), "one copy"},
		{"it moves", at(three, attached("a1", "n1"), attached("a1", "n1", detached), attached("a2", "n2")), ""},
		{"it moves, and the attachment is deleted", at(three, attached("a1", "n1"), attached("a1", "n1", gone), attached("a2", "n2")), ""},
		{"an application runs twice", at(three, pod("p1", "n1"), pod("p2", "n2")), "one copy"},
		{"two copies without a volume", at(three, pod("p1", "n1", noClaims), pod("p2", "n2", noClaims)), ""},
		{"two copies on one node", at(three, pod("p1", "n1"), pod("p2", "n1")), ""},
		{"the first ends", at(three, pod("p1", "n1"), pod("p1", "n1", ending), pod("p2", "n2")), ""},
		{"it is claimed twice for long", at(three, pod("p1", "n1"), claims("n1", true), claims("n2", true), minutes, up("n3")), "one copy"},
		{"it is claimed twice for a moment", at(three, pod("p1", "n1"), claims("n1", true), claims("n2", true), claims("n1", false), minutes, up("n3")), ""},
		{"both have a pod of it", at(three, pod("p1", "n1", ending), pod("p2", "n2"), claims("n1", true), claims("n2", true), minutes, up("n3")), ""},
		{"one who claims it is alone", at(three, pod("p2", "n2"), alone("n1", true), claims("n1", true), claims("n2", true), minutes, up("n3")), ""},
		{"one who claims it is dead", at(three, pod("p2", "n2"), claims("n1", true), down("n1"), claims("n2", true), minutes, up("n3")), ""},

		{"pods are evicted for a drain", at(three, pod("p1", "n1"), asks("n1"), evicted("n1", "p1")), ""},
		{"pods are evicted for nobody", at(three, pod("p1", "n1"), evicted("n1", "p1")), "evicts"},
		{"pods are evicted long after the request was taken back", at(three, pod("p1", "n1"), asks("n1"), stops("n1"), minutes, evicted("n1", "p1")), "evicts"},
		{"one is just then", at(three, pod("p1", "n1"), asks("n1"), stops("n1"), evicted("n1", "p1")), ""},
		{"pods are evicted long after the reboot", at(three, pod("p1", "n1"), asks("n1"), reboots("n1"), minutes, evicted("n1", "p1")), "evicts"},
		{"another requester still waits", at(three, pod("p1", "n1"), asks("n1"), asksToo("n1"), why("n1", "a pod is left"), stops("n1"), minutes, evicted("n1", "p1")), ""},
		{"pods of another node are evicted", at(three, pod("p1", "n2"), asks("n1"), evicted("n1", "p1")), "evicts"},
		{"it was refused", at(three, pod("p1", "n2"), Event{Kind: Called, Node: "n1", Text: "create pods/eviction p1: 403"}), ""},

		{"a cordon for nobody", at(three, is("n1", ours)), "cordons"},
		{"a cordon long after the drain", at(three, drained("n1"), stops("n1"), says("n1", types.DrainNotRequested), is("n1"), minutes, is("n1", ours)), "cordons"},
		{"a cordon is left", at(three, settled(func(l *Look) { l.Left = []string{"n1"} })), "cordons"},
		{"the lock is left", at(three, settled(func(l *Look) { l.Holder = "n1" })), "cordons"},
		{"somebody else's is left", at(three, Event{Kind: Foreign, Node: "n1", On: true}, settled(func(l *Look) { l.Left = []string{"n1"} })), ""},
		{"somebody else's is removed", at(three, is("n1", theirs), Event{Kind: Foreign, Node: "n1", On: true}, is("n1")), "cordons"},
		{"somebody else's is taken over", at(three, asks("n1"), is("n1", theirs), Event{Kind: Foreign, Node: "n1", On: true}, is("n1", ours)), "cordons"},
		{"somebody cordons a node that we have cordoned", at(three, asks("n1"), is("n1", ours), Event{Kind: Foreign, Node: "n1", On: true}, is("n1", ours, unready)), ""},
		{"it is removed by its owner", at(three, is("n1", theirs), Event{Kind: Foreign, Node: "n1", On: true}, Event{Kind: Foreign, Node: "n1"}, is("n1")), ""},

		{"a drain says nothing", at(three, asks("n1"), says("n1", types.DrainRequested), minutes, up("n2")), "explained"},
		{"a drain says why", at(three, asks("n1"), says("n1", types.DrainRequested), why("n1", "waits"), minutes, up("n2")), ""},
		{"it said why, and no longer does", at(three, asks("n1"), says("n1", types.DrainRequested), why("n1", "waits"), why("n1", ""), minutes, up("n2")), "explained"},
		{"its agent is dead", at(asks("n1"), minutes, up("n2")), ""},
		{"nobody asks any more", at(three, asks("n1"), stops("n1"), minutes, up("n2")), ""},

		{"an application does not come back", at(three, Event{Kind: App, App: "app", Nodes: []string{"n1", "n2"}}, pod("p1", "n1"), pod("p1", "n1", gone), minutes, up("n3")), "runs again"},
		{"it does", at(three, Event{Kind: App, App: "app", Nodes: []string{"n1", "n2"}}, pod("p1", "n1", gone), pod("p2", "n2"), minutes, up("n3")), ""},
		{"it is not Ready", at(three, Event{Kind: App, App: "app", Nodes: []string{"n1"}}, pod("p1", "n1", unready), minutes, up("n3")), "runs again"},
		{"it can run nowhere", at(three, asks("n1"), why("n1", "waits"), Event{Kind: App, App: "app", Nodes: []string{"n1"}}, is("n1", ours), minutes, up("n3")), ""},
		{"its node is away", at(three, Event{Kind: App, App: "app", Nodes: []string{"n1"}}, is("n1", unready), minutes, up("n3")), ""},
		{"it is not wanted any more", at(three, Event{Kind: App, App: "app", Nodes: []string{"n1"}}, Event{Kind: App, App: "app"}, minutes, up("n3")), ""},

		{"a reboot at once", at(Event{Kind: Told, Node: "n1", By: "zedagent", Text: "reboot command carried out at once: drain is CORDONED"}), "waited for"},
		{"a crash", at(Event{Kind: AgentBad, Node: "n1", Text: "exit status 2"}), "no crash"},
	} {
		planted[row.rule] = true
		t.Run(row.name, func(t *testing.T) {
			found, _ := Check(row.all, Usual())
			var broken []string
			for _, v := range found {
				if broken = append(broken, v.Rule); v.Rule != row.rule {
					t.Errorf("not wanted: %s", v)
				}
			}
			if row.rule != "" && !slices.Contains(broken, row.rule) {
				t.Errorf("broken are %v, not %s", broken, row.rule)
			}
		})
	}
	for _, r := range Rules() {
		if !planted[r.Name] {
			t.Errorf("no history breaks the rule %q", r.Name)
		}
	}
}

func noClaims(o *Object) { o.Claims = nil }

func TestEveryRuleIsCheckedInAHistoryThatHasSomethingForIt(t *testing.T) {
	all := at(three, drained("n1"), evicted("n1", "app-1"), back("n1"), leads("n1", true, 0), attached("a", "n1"), pod("p1", "n1"), Event{Kind: App, App: "app"}, settled())
	_, checked := Check(all, Usual())
	for _, r := range Rules() {
		if checked[r.Name] == 0 {
			t.Errorf("%s: nothing was checked", r.Name)
		}
		if r.Says == "" || strings.Contains(r.Says, "|") {
			t.Errorf("%s: cannot stand in the report: %q", r.Name, r.Says)
		}
	}
}

// Where clocks jump, what agents write of time does not count, and what is heard
// late does.
func TestAgentsWhoseClocksJumpAreJudgedByWhatIsHeard(t *testing.T) {
	b := Usual()
	b.Clocks = false
	for _, row := range []struct {
		name string
		all  []Event
		want int
	}{
		{"their times overlap", at(leads("n1", true, 0), leads("n1", false, 100*time.Hour), leads("n2", true, -100*time.Hour), leads("n2", false, 0)), 0},
		{"two report for long", at(leads("n1", true, 0), leads("n2", true, 0), time.Minute, leads("n1", false, 0)), 1},
	} {
		if found, _ := Check(row.all, b); len(found) != row.want {
			t.Errorf("%s: %v", row.name, found)
		}
	}
}
