package drain

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

// wholeCluster is three healthy nodes, of which b is ours with two pods on it.
func wholeCluster() PlanInput {
	now := time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)
	node := func(name string) types.Node {
		return types.Node{Name: name, Ready: types.ConditionTrue, RenewedAt: now.Add(-5 * time.Second), Etcd: true, BootID: "boot-" + name}
	}
	pods := []types.Pod{{Namespace: "eve-kube-app", Name: "cam", UID: "1", NodeName: "b"}, {Namespace: "eve-kube-app", Name: "plc", UID: "2", NodeName: "b"}}
	return PlanInput{
		Now: now, Own: "b", Nodes: []types.Node{node("c"), node("b"), node("a")}, Pods: pods,
		Situations: []types.PodSituation{{Pod: pods[0], Fits: 2}, {Pod: pods[1], Fits: 2}},
	}
}

// storageAhead is a volume that is in use on b, with a healthy replica there and
// one on the other node.
func storageAhead(other string) types.Storage {
	v := types.Volume{Name: "v", State: "attached", Engine: "b", Running: true, Also: []string{"b"}, Wanted: 1}
	v.Replicas = []types.Replica{{Name: "1", Node: "b", Running: true, Mode: "RW"}}
	if other != "b" {
		v.Wanted, v.Replicas = 2, append(v.Replicas, types.Replica{Name: "2", Node: other, Running: true, Mode: "RW"})
	}
	return types.Storage{Longhorn: true, Volumes: []types.Volume{v}, Attachments: []types.Attachment{{Name: "a", Volume: "v"}}}
}

func TestAPlanForesees(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*PlanInput)
		outlook types.DrainOutlook
		verdict string
		check   func(Forecast) bool
	}{
		"a way that is free": {
			func(*PlanInput) {}, "", "nothing is in the way: 2 pods would go",
			func(f Forecast) bool {
				return f.Evicts && cmp.Equal(f.Peers, []string{"a", "c"}) && len(f.Pods) == 2 && f.Pods[0].Pod == "eve-kube-app/cam" && f.Parallel == parallel
			},
		},
		"a node that nothing runs on": {
			func(p *PlanInput) { p.Pods, p.Situations = nil, nil }, "", "0 pods would go",
			func(f Forecast) bool { return len(f.Pods) == 0 },
		},
		"quorum that would be lost": {
			func(p *PlanInput) { p.Nodes[0].Ready = types.ConditionFalse }, types.OutlookNever, "until etcd keeps quorum without this node",
			func(f Forecast) bool { return strings.Contains(f.Quorum, "c is") },
		},
		"a peer whose kubelet is silent": {
			func(p *PlanInput) { p.Nodes[0].RenewedAt = p.Now.Add(-time.Minute) }, types.OutlookNever, "until etcd keeps quorum without this node",
			func(f Forecast) bool { return cmp.Equal(f.Peers, []string{"a"}) },
		},
		"a lock that another node needs": {
			func(p *PlanInput) {
				p.Lock = types.DrainLock{Holder: "a", BootID: "boot-a", Since: p.Now.Add(-time.Hour)}
			},
			types.OutlookSlow, "it would wait for the drain lock: node a drains",
			func(f Forecast) bool { return f.Lock.Holder == "a" && !f.Lock.Mine && f.Lock.Waits != "" },
		},
		"a lock that its holder does not need any more": {
			func(p *PlanInput) { p.Lock = types.DrainLock{Holder: "a", BootID: "another boot"} }, "", "nothing is in the way",
			func(f Forecast) bool { return f.Lock.Holder == "a" && f.Lock.Waits == "" },
		},
		"a node that is complete without the lock": {
			func(p *PlanInput) {
				n := &p.Nodes[0]
				n.Unschedulable, n.CordonedBy, n.DrainReason, n.Agent = true, &types.Cordon{}, types.DrainForced, &types.AgentStamp{}
			},
			types.OutlookSlow, "the drain of node c is complete",
			func(f Forecast) bool { return f.Lock.Holder == "" && f.Lock.Waits != "" },
		},
		"our own lock": {
			func(p *PlanInput) { p.Lock = types.DrainLock{Holder: "b"} }, "", "nothing is in the way",
			func(f Forecast) bool { return f.Lock.Mine && f.Lock.Waits == "" },
		},
		"no node that takes pods": {
			func(p *PlanInput) { p.Nodes[0].Unschedulable, p.Nodes[2].Unschedulable = true, true },
			types.OutlookSlow, "2 pods would go down with the device",
			func(f Forecast) bool { return !f.Evicts && f.Peers == nil && f.Quorum == "" },
		},
		"an only node": {
			func(p *PlanInput) { p.Nodes = p.Nodes[1:2] }, types.OutlookSlow, "because there is no other node to run pods",
			func(f Forecast) bool { return !f.Evicts },
		},
		"a refused eviction": {
			func(p *PlanInput) { p.Refused = map[string]error{"eve-kube-app/plc": errors.New("a budget")} }, "-", "",
			func(f Forecast) bool { return f.Pods[0].Refused == "" && f.Pods[1].Refused == "a budget" },
		},
		"a volume in use here, with a healthy replica elsewhere": {
			func(p *PlanInput) { p.Storage = storageAhead("c") }, "", "nothing is in the way",
			func(f Forecast) bool { return len(f.Volumes) == 0 },
		},
		"a volume whose last healthy replica is here": {
			func(p *PlanInput) { p.Storage = storageAhead("b") }, types.OutlookNever, "without action on 1 of 1 thing",
			func(f Forecast) bool { return len(f.Volumes) == 1 && f.Volumes[0].LastHere },
		},
		"a pod that can run only here": {
			func(p *PlanInput) { p.Situations[0].Fits, p.Situations[0].Lacks = 0, "no node has its device" }, "", "nothing is in the way",
			func(f Forecast) bool { return cmp.Equal(f.Stranded, []string{"eve-kube-app/cam"}) },
		},
		"what could not be asked": {
			func(p *PlanInput) { p.Unknown = []string{"the volumes: no answer"} }, types.OutlookSlow, "not all could be checked",
			func(f Forecast) bool { return cmp.Equal(f.Unknown, []string{"the volumes: no answer"}) },
		},
		"an operator's cordon": {
			func(p *PlanInput) { p.Nodes[1].Unschedulable = true }, "", "", func(f Forecast) bool { return f.Cordon == "operator" },
		},
		"a cordon of ours": {
			func(p *PlanInput) { p.Nodes[1].Unschedulable, p.Nodes[1].CordonedBy = true, &types.Cordon{} }, "", "",
			func(f Forecast) bool { return f.Cordon == "zedkube" },
		},
		"a node that is not there": {
			func(p *PlanInput) { p.Own = "x" }, "", "", func(f Forecast) bool { return f.Cordon == "" && len(f.Peers) == 3 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := wholeCluster()
			c.change(&p)
			f := Plan(p)
			if c.outlook != "-" && f.Outlook != c.outlook || !strings.Contains(f.Verdict, c.verdict) || !c.check(f) {
				t.Errorf("got %+v", f)
			}
		})
	}
}

func TestAPlanCountsWhatIsInTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		f       Forecast
		outlook types.DrainOutlook
		verdict string
	}{
		"a pod for ever": {
			Forecast{Evicts: true, Blockers: []types.DrainBlocker{{Outlook: types.OutlookNever}, {Outlook: types.OutlookSlow}}},
			types.OutlookNever, "without action on 1 of 2 things",
		},
		"a volume for a while": {
			Forecast{Evicts: true, Volumes: []types.DrainVolume{{Outlook: types.OutlookSlow}}},
			types.OutlookSlow, "with 1 thing in the way",
		},
		"a refusal that nobody can explain": {
			Forecast{Evicts: true, Pods: []ForecastPod{{Pod: "a/b", Refused: "no"}, {Pod: "a/c"}}}, types.OutlookSlow, "with 1 thing in the way",
		},
		"quorum before everything": {
			Forecast{Quorum: "no", Lock: types.DrainLockView{Waits: "for a"}, Blockers: []types.DrainBlocker{{}}}, types.OutlookNever, "etcd",
		},
	} {
		if outlook, verdict := verdict(c.f); outlook != c.outlook || !strings.Contains(verdict, c.verdict) {
			t.Errorf("%s: got %s, %s", name, outlook, verdict)
		}
	}
}
