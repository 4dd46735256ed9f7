package apps

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

const (
	appID = "b3e2f1a0-1111-4222-8333-444455556666"
	// name is the kube name of both applications below, in generation 1.
	name = "my-app-b3e2f-1"
)

var now = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

func config(change ...func(*types.AppInstanceConfig)) types.AppInstanceConfig {
	c := types.AppInstanceConfig{
		UUIDandVersion: types.UUIDandVersion{UUID: uuid.MustParse(appID)}, DisplayName: "My_App",
		PurgeCmd: types.AppInstanceOpsCmd{Counter: 1},
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func container(c *types.AppInstanceConfig) {
	c.FixedResources.VirtualizationMode = types.VirtualizationNoHyper
}

func vm(c *types.AppInstanceConfig) {
	c.FixedResources = types.VMConfig{VirtualizationMode: types.VirtualizationHVM, VncDisplay: 3}
}

func designated(c *types.AppInstanceConfig) { c.IsDesignatedNodeID = true }

// pod is a running pod of the container on this node.
func pod(suffix string, change ...func(*types.Pod)) types.Pod {
	p := types.Pod{
		Namespace: "eve-kube-app", Name: name + "-" + suffix, UID: suffix, NodeName: "n1", Phase: types.PodRunning,
		Owner: types.Owner{Kind: "ReplicaSet", Name: name}, App: name, Created: now.Add(-time.Hour),
	}
	for _, f := range change {
		f(&p)
	}
	return p
}

// launcher is the running launcher pod of the VM on this node.
func launcher(vmi string, change ...func(*types.Pod)) types.Pod {
	return pod("l", append([]func(*types.Pod){func(p *types.Pod) {
		p.Name, p.App = "virt-launcher-"+vmi+"-abcde", ""
		p.AppDomain, p.VMI = appID+".1.7", vmi
		p.Owner = types.Owner{Kind: "VirtualMachineInstance", Name: vmi}
	}}, change...)...)
}

func on(node string) func(*types.Pod) { return func(p *types.Pod) { p.NodeName = node } }

func pending(p *types.Pod) { p.Phase = types.PodPending }

func dying(p *types.Pod) { p.Deleted = now }

func owner(kind, name string) func(*types.Pod) {
	return func(p *types.Pod) { p.Owner = types.Owner{Kind: kind, Name: name} }
}

func label(app string) func(*types.Pod) { return func(p *types.Pod) { p.App = app } }

func domain(domain string) func(*types.Pod) { return func(p *types.Pod) { p.AppDomain = domain } }

func age(d time.Duration) func(*types.Pod) { return func(p *types.Pod) { p.Created = now.Add(-d) } }

// status is what stands for an application of which the cluster knows nothing.
func status(k types.AppKubeStatus, change ...func(*types.ENClusterAppStatus)) types.ENClusterAppStatus {
	s := types.ENClusterAppStatus{
		AppUUID: uuid.MustParse(appID), AppKubeStatus: k, StatusRunning: k == types.AppKubeRunning,
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

func here(s *types.ENClusterAppStatus) { s.ScheduledOnThisNode = true }

func dnid(s *types.ENClusterAppStatus) { s.IsDNidNode = true }

func isVMI(s *types.ENClusterAppStatus) { s.AppIsVMI = true }

func console(vmi string) func(*types.ENClusterAppStatus) {
	return func(s *types.ENClusterAppStatus) { s.VMIName, s.VNCPort = vmi, 5903 }
}

func TestPodsDecideTheStatus(t *testing.T) {
	rows := map[string]struct {
		config types.AppInstanceConfig
		pods   []types.Pod
		want   types.ENClusterAppStatus
	}{
		"no pod": {config(container), nil, status(types.AppKubeNotInCluster)},
		"no pod of a designated application": {
			config(container, designated), nil, status(types.AppKubeNotInCluster, dnid),
		},
		"runs here":            {config(container), []types.Pod{pod("a")}, status(types.AppKubeRunning, here)},
		"runs on another node": {config(container), []types.Pod{pod("a", on("n2"))}, status(types.AppKubeRunning)},
		"starts here":          {config(container), []types.Pod{pod("a", pending)}, status(types.AppKubeNotRunning, here)},
		"not scheduled yet": {
			config(container), []types.Pod{pod("a", pending, on(""))}, status(types.AppKubeNotRunning),
		},
		"a terminating pod does not count": {
			config(container), []types.Pod{pod("a", dying)}, status(types.AppKubeNotInCluster),
		},
		"a replacement speaks for a terminating pod": {
			config(container), []types.Pod{pod("a", dying), pod("b", on("n2"), pending)}, status(types.AppKubeNotRunning),
		},
		"the replica set alone tells": {
			config(container), []types.Pod{pod("a", label(""))}, status(types.AppKubeRunning, here),
		},
		"the label alone tells": {
			config(container), []types.Pod{pod("a", owner("", ""))}, status(types.AppKubeRunning, here),
		},
		"a container's pod may have the label of machines too": {
			config(container), []types.Pod{pod("a", domain(appID+".1.7"))}, status(types.AppKubeRunning, here),
		},
		"also where its set alone tells": {
			config(container), []types.Pod{pod("a", label("other"), domain(appID+".1.7"))}, status(types.AppKubeRunning, here),
		},
		"a launcher may have the label of containers too": {
			config(vm), []types.Pod{launcher(name+"abcde", label(name))}, status(types.AppKubeRunning, here, isVMI, console(name+"abcde")),
		},
		"an owner of another kind does not": {
			config(container), []types.Pod{pod("a", label(""), owner("Job", name))}, status(types.AppKubeNotInCluster),
		},
		"a longer generation number is another generation": {
			config(container),
			[]types.Pod{pod("a", label(name+"0"), owner("ReplicaSet", name+"0"))},
			status(types.AppKubeNotInCluster),
		},
		"a pod name tells nothing": {
			config(container), []types.Pod{pod("a", label(""), owner("", ""))}, status(types.AppKubeNotInCluster),
		},
		"of two pods the one that runs here speaks": {
			config(container), []types.Pod{pod("b", on("n2"), age(0)), pod("a")}, status(types.AppKubeRunning, here),
		},
		"of two pods the one that runs speaks": {
			config(container), []types.Pod{pod("b", pending, age(0)), pod("a", on("n2"))}, status(types.AppKubeRunning),
		},
		"of two pods that do not run the newer speaks": {
			config(container),
			[]types.Pod{pod("a", pending), pod("b", pending, on("n2"), age(0))},
			status(types.AppKubeNotRunning),
		},
		"of two equals always the same speaks": {
			config(container),
			[]types.Pod{pod("b", pending, on("n2")), pod("a", pending)},
			status(types.AppKubeNotRunning),
		},
		"a VM runs here": {
			config(vm),
			[]types.Pod{launcher(name + "x7k2p")},
			status(types.AppKubeRunning, here, isVMI, console(name+"x7k2p")),
		},
		"a VM starts on another node": {
			config(vm),
			[]types.Pod{launcher(name+"x7k2p", pending, on("n2"))},
			status(types.AppKubeNotRunning, isVMI, console(name+"x7k2p")),
		},
		"a VM of an older generation does not count": {
			config(vm), []types.Pod{launcher("my-app-b3e2f-0x7k2p")}, status(types.AppKubeNotInCluster, isVMI),
		},
		"a VM of generation 10 is not one of generation 1": {
			config(vm), []types.Pod{launcher(name + "0x7k2p")}, status(types.AppKubeNotInCluster, isVMI),
		},
		"a suffix may look like a number": {
			config(vm),
			[]types.Pod{launcher(name + "0x7k2")},
			status(types.AppKubeRunning, here, isVMI, console(name+"0x7k2")),
		},
		"a VM of another application does not count": {
			config(vm), []types.Pod{launcher(name+"x7k2p", func(p *types.Pod) {
				p.AppDomain = "b3e2f1a0-1111-4222-8333-444455556667.1.7"
			})}, status(types.AppKubeNotInCluster, isVMI),
		},
		"a VM is known by the owner of its launcher too": {
			config(vm),
			[]types.Pod{launcher(name+"x7k2p", func(p *types.Pod) { p.VMI = "" })},
			status(types.AppKubeRunning, here, isVMI, console(name+"x7k2p")),
		},
		"a launcher that names no VM counts by its application": {
			config(vm),
			[]types.Pod{launcher("", owner("", ""))},
			status(types.AppKubeRunning, here, isVMI, console("")),
		},
		"a container with the name of a VM is not that VM": {
			config(vm), []types.Pod{pod("a")}, status(types.AppKubeNotInCluster, isVMI),
		},
	}
	for row, r := range rows {
		t.Run(row, func(t *testing.T) {
			got := decide(facts{
				now: now, configs: map[string]types.AppInstanceConfig{appID: r.config}, pods: r.pods,
				self: types.Node{Name: "n1"},
			})
			want := map[string]types.ENClusterAppStatus{appID: r.want}
			if d := cmp.Diff(want, got.publish); d != "" {
				t.Error("want -, got +\n" + d)
			}
		})
	}
}

func TestWhatIsNotKnownIsNotClaimed(t *testing.T) {
	ran := status(types.AppKubeRunning, here)
	rows := map[string]struct {
		last  *types.ENClusterAppStatus
		blind time.Duration // 0: the pods are in view
		self  string
		want  types.ENClusterAppStatus
		again time.Duration
	}{
		"a short blindness changes nothing": {
			last: &ran, blind: 119 * time.Second, self: "n1", want: ran, again: time.Second,
		},
		"a new application in a short blindness is unknown": {
			blind: time.Minute, self: "n1", want: status(types.AppKubeUnknown), again: time.Minute,
		},
		"a long blindness claims nothing": {
			last: &ran, blind: 2 * time.Minute, self: "n1", want: status(types.AppKubeAPIUnreachable),
		},
		"who sees again claims again": {
			last: ptr(status(types.AppKubeAPIUnreachable)), self: "n1", want: ran,
		},
		"a claim given up does not come back in a new blindness": {
			last: ptr(status(types.AppKubeAPIUnreachable)), blind: time.Second, self: "n1",
			want: status(types.AppKubeAPIUnreachable), again: trust - time.Second,
		},
		"a node that is not in the cluster runs nothing": {
			last: &ran, want: status(types.AppKubeRunning),
		},
	}
	for row, r := range rows {
		t.Run(row, func(t *testing.T) {
			f := facts{
				now: now, configs: map[string]types.AppInstanceConfig{appID: config(container)},
				pods: []types.Pod{pod("a")}, self: types.Node{Name: r.self},
			}
			if r.blind > 0 {
				f.unseenSince = now.Add(-r.blind)
			}
			if r.last != nil {
				f.statuses = map[string]types.ENClusterAppStatus{appID: *r.last}
			}
			got := decide(f)
			if d := cmp.Diff(map[string]types.ENClusterAppStatus{appID: r.want}, got.publish); d != "" {
				t.Error("want -, got +\n" + d)
			}
			if got.again != r.again {
				t.Errorf("it wants to look again in %s, not in %s", got.again, r.again)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestConfigurationChangesShowEvenToTheBlind(t *testing.T) {
	got := decide(facts{
		now: now, configs: map[string]types.AppInstanceConfig{appID: config(container, designated)},
		statuses:    map[string]types.ENClusterAppStatus{appID: status(types.AppKubeRunning, here)},
		unseenSince: now, self: types.Node{Name: "n1"},
	}).publish[appID]
	if d := cmp.Diff(status(types.AppKubeRunning, here, dnid), got); d != "" {
		t.Error("want -, got +\n" + d)
	}
}
