package podnetworks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	netA = uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")
	netB = uuid.MustParse("6ba7b811-9dad-41d1-80b4-00c04fd430c8")
)

// source is a topic that may not have been received yet.
type source struct {
	pubsub.Table[types.NetworkInstanceStatus]
	unknown atomic.Bool
}

func (s *source) Synced() bool { return !s.unknown.Load() }

// journal counts what reaches the disk.
type journal struct {
	pubsub.Table[types.PodMarkers]
	writes atomic.Int32
}

func (j *journal) Publish(key string, v types.PodMarkers) error {
	j.writes.Add(1)
	return j.Table.Publish(key, v)
}

// stage is the component with its surroundings, in fake time, on a real directory.
type stage struct {
	*testing.T
	dir        string
	membership pubsub.Table[types.ClusterMembership]
	networks   source
	pods       pubsub.Table[types.Pod]
	api        pubsub.Table[types.APIStatus]
	configs    pubsub.Table[types.AppNetworkConfig]
	journal    journal
	pulse      *loop.Pulse
	logs       *logtest.Hook
	stop       func()
}

func play(t *testing.T, do func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, dir: filepath.Join(t.TempDir(), "zedkube", "kubeapp-net"), stop: func() {}}
		s.orchestration(true)
		s.complete()
		s.network(netA, "Line_1")
		do(s)
		s.stop()
	})
}

func (s *stage) orchestration(native bool) {
	config := types.EdgeNodeClusterConfig{ClusterType: types.ClusterTypeReplicatedStorage, EnableNativeK8SOrchestration: native}
	_ = s.membership.Publish(types.Global, types.ClusterMembership{State: types.MembershipMember, Config: &config})
}

func (s *stage) complete() { _ = s.api.Publish(types.Global, types.APIStatus{Synced: true}) }

func (s *stage) silent() {
	_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now(), Reason: "refused"})
}

func (s *stage) network(id uuid.UUID, name string) {
	_ = s.networks.Publish(id.String(), types.NetworkInstanceStatus{DisplayName: name, Type: types.NetworkInstanceLocal, ClusterWide: true})
}

func (s *stage) start() {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	log, hook := logtest.NewNullLogger()
	s.logs, s.pulse = hook, &loop.Pulse{}
	c := &Component{
		Log: log, Pulse: s.pulse, Membership: &s.membership, Networks: &s.networks, NodePods: &s.pods, API: &s.api, Dir: s.dir,
		Configs: &s.configs, Journal: &s.journal,
	}
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	s.stop = func() { cancel(); <-done }
	synctest.Wait()
}

// after lets time pass. In an hour without news it hardly steps.
func (s *stage) after(d time.Duration) {
	s.Helper()
	before := s.pulse.Counts().Steps
	time.Sleep(d)
	synctest.Wait()
	if n := s.pulse.Counts().Steps - before; d >= time.Hour && n > 200 {
		s.Errorf("%d steps in %s", n, d)
	}
}

func (s *stage) pod(namespace, name string, change ...func(*types.Pod)) {
	p := types.Pod{Namespace: namespace, Name: name}
	for _, c := range change {
		c(&p)
	}
	_ = s.pods.Publish(p.Key(), p)
}

func (s *stage) gone(namespace, name string) { _ = s.pods.Unpublish(namespace + "/" + name) }

func on(networks string) func(*types.Pod) { return func(p *types.Pod) { p.Networks = networks } }

func owned(by, deployment string) func(*types.Pod) {
	return func(p *types.Pod) {
		p.Owner, p.Deployment = types.Owner{Kind: types.KindReplicaSet, Name: by}, deployment
	}
}

// markers are the files, by name.
func (s *stage) markers() map[string]string {
	s.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(s.dir, e.Name()))
		if err != nil {
			s.Fatal(err)
		}
		files[e.Name()] = string(text)
	}
	return files
}

func (s *stage) want(what string, want map[string]string) {
	s.Helper()
	if diff := cmp.Diff(want, s.markers()); diff != "" {
		s.Errorf("%s: markers (-want +got):\n%s", what, diff)
	}
}

func (s *stage) said(text string) int {
	n := 0
	for _, e := range s.logs.AllEntries() {
		if line, _ := e.String(); strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func TestEveryPodOfThisNodeHasItsMarkerAtOnce(t *testing.T) {
	play(t, func(s *stage) {
		s.pod("default", "web-7f6c4-abcde")
		s.start()
		s.want("at the start", map[string]string{"default_web-7f6c4-abcde": "native"})
		s.pod("eve-kube-app", "panel-b3e2f-0-abcde")
		s.pod("eve-kube-app", "virt-launcher-vm-b3e2f-0x7k2p-abcde", on("[]"))
		s.pod("eve-kube-app", "cdi-upload-d8c1a-pvc-0")
		s.pod("eve-kube-app", "cdi-upload-other")
		s.pod("eve-kube-app", "plain", on("ni-line-1"))
		s.pod("shop", "attached", on("eve-kube-app/ni-line-1@net1"))
		s.pod("shop", "routed", on(`[{"name":"ni-line-1","namespace":"eve-kube-app","default-route":["10.1.0.9"]}]`))
		s.pod("shop", "elsewhere", on(`[{"name":"ni-line-1","default-route":["10.1.0.9"]}]`))
		s.pod("shop", "dotted.name")
		synctest.Wait()
		s.want("as they come", map[string]string{
			"default_web-7f6c4-abcde":                          "native",
			"eve-kube-app_panel-b3e2f-0-abcde":                 "controller",
			"eve-kube-app_virt-launcher-vm-b3e2f-0x7k2p-abcde": "controller",
			"eve-kube-app_cdi-upload-d8c1a-pvc-0":              "native",
			"eve-kube-app_cdi-upload-other":                    "controller",
			"eve-kube-app_plain":                               "native",
			"shop_attached":                                    "native",
			"shop_routed":                                      "native-ni-default",
			"shop_elsewhere":                                   "native",
			"shop_dotted.name":                                 "native",
		})
		info, err := os.Stat(filepath.Join(s.dir, "shop_routed"))
		if err != nil || info.Mode() != 0o644 {
			t.Errorf("eve-bridge cannot read it: %v, %v", info, err)
		}
	})
}

func TestAMarkerOutlastsItsPodByAMinute(t *testing.T) {
	play(t, func(s *stage) {
		s.pod("shop", "a")
		s.pod("shop", "b")
		s.start()
		s.gone("shop", "a")
		s.after(removeAfter - time.Second)
		s.want("before the minute", map[string]string{"shop_a": "native", "shop_b": "native"})
		s.after(time.Second)
		s.want("after it", map[string]string{"shop_b": "native"})

		// One that comes back within the minute keeps it, and has a minute again.
		s.gone("shop", "b")
		s.after(removeAfter - time.Second)
		s.pod("shop", "b")
		s.after(time.Second)
		s.gone("shop", "b")
		s.after(removeAfter - time.Second)
		s.want("a pod made again", map[string]string{"shop_b": "native"})
		s.after(time.Second)
		s.want("at last", map[string]string{})
	})
}

func TestNoMarkerIsRemovedWhileThePodsAreNotKnown(t *testing.T) {
	play(t, func(s *stage) {
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"shop_a", "shop_away", "not-a-marker", "Shop_x", "shop_b_c"} {
			if err := os.WriteFile(filepath.Join(s.dir, name), []byte("native"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		all := s.markers()
		s.silent()
		s.start()
		s.after(time.Hour)
		s.want("while the API server is silent", all)
		s.stop()
		s.want("at the stop", all)
		_ = s.api.Unpublish(types.Global)
		s.start()
		s.after(time.Hour)
		s.want("before anything is known", all)

		// The tables are complete: the pod of one was deleted while the agent was away.
		s.pod("shop", "a")
		s.complete()
		s.after(removeAfter - time.Second)
		s.want("within the minute", all)
		s.silent() // it ends in an outage
		s.after(time.Hour)
		s.want("in an outage", all)
		s.complete()
		s.after(time.Minute)
		delete(all, "shop_away")
		s.want("after the minute", all)
	})
}

func TestMarkersOfABootWithoutAnAPIServerAreThoseOfTheLastList(t *testing.T) {
	play(t, func(s *stage) {
		s.pod("shop", "a")
		s.pod("shop", "routed", on(`[{"name":"ni-line-1","namespace":"eve-kube-app","default-route":["10.1.0.9"]}]`))
		s.start()
		s.after(journalAfter)
		s.stop()
		if err := os.RemoveAll(s.dir); err != nil { // the boot
			t.Fatal(err)
		}
		s.gone("shop", "a")
		s.gone("shop", "routed")
		kept, _ := s.journal.Get(types.Global)
		kept.Markers["../../escaped"], kept.Markers["shop_../x"] = "native", "native"
		want := map[string]string{"shop_a": "native", "shop_routed": "native-ni-default"}
		_ = s.api.Unpublish(types.Global)
		s.start()
		s.want("before the API server was asked", map[string]string{})
		s.silent()
		synctest.Wait()
		s.want("in silence", want)
		s.after(time.Hour)
		s.want("an hour later", want)
		if n := s.journal.writes.Load(); n != 1 {
			t.Errorf("what is kept was written %d times", n)
		}
		s.pod("shop", "a")
		s.complete()
		s.after(removeAfter)
		s.want("with the list", map[string]string{"shop_a": "native"})
		if _, err := os.Stat(filepath.Join(s.dir, "../../escaped")); err == nil {
			t.Error("a name led out of the directory")
		}
	})
}

func TestTheListIsKeptOnceAMinuteAtMost(t *testing.T) {
	play(t, func(s *stage) {
		s.start()
		for i := range 120 { // pods come and go every second
			s.pod("shop", fmt.Sprint("job-", i))
			s.gone("shop", fmt.Sprint("job-", i-3))
			s.after(time.Second)
		}
		if n := s.journal.writes.Load(); n < 2 || n > 3 { // the first at once
			t.Errorf("%d writes in two minutes", n)
		}
		s.after(time.Hour)
		n := s.journal.writes.Load()
		s.after(time.Hour)
		if kept, _ := s.journal.Get(types.Global); s.journal.writes.Load() != n || len(kept.Markers) != 3 {
			t.Errorf("%d writes of what does not change, of %v", s.journal.writes.Load()-n, kept)
		}
	})
}

func TestEveryDeviceHasMarkersAndOnlyNativeOrchestrationConnects(t *testing.T) {
	config := func(of types.ClusterType) *types.EdgeNodeClusterConfig {
		return &types.EdgeNodeClusterConfig{ClusterType: of, EnableNativeK8SOrchestration: of == types.ClusterTypeHA}
	}
	words := map[string]string{"shop_a": "native", "eve-kube-app_app": "controller"}
	for name, membership := range map[string]*types.ClusterMembership{
		"no membership":  nil,
		"never":          {State: types.MembershipNever},
		"left":           {State: types.MembershipLeft, Config: config(types.ClusterTypeK3sBase)},
		"not native":     {State: types.MembershipMember, Config: config(types.ClusterTypeReplicatedStorage)},
		"doubtful":       {State: types.MembershipDoubtful, Config: config(types.ClusterTypeReplicatedStorage)},
		"leaving":        {State: types.MembershipLeaving},
		"another's type": {State: types.MembershipMember, Config: config(types.ClusterTypeHA)},
	} {
		play(t, func(s *stage) {
			_ = s.membership.Unpublish(types.Global)
			if membership != nil {
				_ = s.membership.Publish(types.Global, *membership)
			}
			s.pod("shop", "a", on("eve-kube-app/ni-line-1"))
			s.start()
			s.pod("eve-kube-app", "app")
			synctest.Wait()
			s.want(name, words)
			s.after(time.Hour)
			if n := s.journal.writes.Load(); len(s.configs.All()) != 0 || n != 2 || len(s.logs.AllEntries()) > 0 {
				t.Errorf("%s: %v, %d writes, %v", name, s.configs.All(), n, s.logs.AllEntries())
			}
			s.orchestration(true)
			synctest.Wait()
			s.want("then native", words)
			s.orchestration(false)
			s.after(time.Hour)
			if len(s.configs.All()) != 1 {
				t.Errorf("%s: a pod lost its networks when native orchestration was switched off", name)
			}
		})
	}
}

func TestALeaveWithdrawsNetworksAndKeepsMarkersOfPodsThatAreThere(t *testing.T) {
	play(t, func(s *stage) {
		s.pod("shop", "a", on("eve-kube-app/ni-line-1"))
		s.start()
		before, _ := s.membership.Get(types.Global)
		for _, state := range []types.Membership{types.MembershipDoubtful, types.MembershipLeaving} {
			before.State = state
			_ = s.membership.Publish(types.Global, before)
			s.after(time.Hour)
			if len(s.configs.All()) != 1 {
				t.Errorf("%s: it is connected to %v", state, s.configs.All())
			}
		}
		s.silent() // the node is deleted, and k3s stopped
		_ = s.membership.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeft})
		synctest.Wait()
		if len(s.configs.All()) > 0 {
			t.Errorf("zedrouter is still asked for %v", s.configs.All())
		}
		s.after(time.Hour)
		s.want("while it may run", map[string]string{"shop_a": "native"})
		s.gone("shop", "a") // k3s of a single node
		s.pod("kube-system", "coredns")
		s.complete()
		s.after(removeAfter)
		s.want("with the list", map[string]string{"kube-system_coredns": "native"})
	})
}

func TestABootInAnotherClusterMakesNoMarkersOfTheFormer(t *testing.T) {
	former, present := uuid.New(), uuid.New()
	member := func(of uuid.UUID) types.ClusterMembership {
		config := types.EdgeNodeClusterConfig{ClusterID: types.UUIDandVersion{UUID: of}}
		return types.ClusterMembership{State: types.MembershipMember, Config: &config}
	}
	play(t, func(s *stage) {
		_ = s.membership.Publish(types.Global, member(former))
		s.pod("shop", "a")
		s.start()
		s.stop()
		s.gone("shop", "a")
		s.silent()
		for name, membership := range map[string]types.ClusterMembership{
			"another cluster": member(present), "never": {State: types.MembershipNever},
		} {
			if err := os.RemoveAll(s.dir); err != nil { // the boot
				t.Fatal(err)
			}
			_ = s.membership.Publish(types.Global, membership)
			s.start()
			s.after(time.Hour)
			s.want(name, map[string]string{})
			s.stop()
		}
		_ = s.membership.Publish(types.Global, member(former))
		s.start()
		s.want("the same cluster", map[string]string{"shop_a": "native"})
		s.stop()

		// What is the same in the other cluster is kept for it too.
		_ = s.membership.Publish(types.Global, member(present))
		s.pod("shop", "a")
		s.complete()
		s.start()
		s.after(journalAfter)
		if kept, _ := s.journal.Get(types.Global); kept.Cluster != present || len(kept.Markers) != 1 {
			t.Errorf("kept: %v", kept)
		}
	})
}

// zedrouter may know a network only after eve-bridge has read the marker.
func TestAMarkerSaysTheSameBeforeANetworkIsKnown(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.networks.Unpublish(netA.String())
		s.pod("shop", "routed", on(`[{"name":"ni-line-1","namespace":"eve-kube-app","default-route":["10.1.0.9"]}]`))
		s.pod("eve-kube-app", "plain", on("ni-line-1"))
		words := map[string]string{"shop_routed": "native-ni-default", "eve-kube-app_plain": "native"}
		s.networks.unknown.Store(true)
		s.start()
		s.want("before zedrouter", words)
		s.after(time.Hour)
		if len(s.logs.AllEntries()) > 0 {
			t.Errorf("said: %v", s.logs.AllEntries())
		}
		s.networks.unknown.Store(false)
		s.after(time.Hour)
		s.want("before the network", words)
		if len(s.configs.All()) > 0 || s.said("no network instance has the name ni-line-1") != 1 {
			t.Errorf("published %v", s.configs.All())
		}
		s.network(netA, "Line_1")
		synctest.Wait()
		s.want("with it", words)
		if len(s.configs.All()) != 2 {
			t.Errorf("published %v", s.configs.All())
		}
	})
}

// Networks become known one after the other: half of them would give the interfaces
// of a pod other numbers.
func TestAWorkloadIsConnectedToAllOfItsNetworksOrNone(t *testing.T) {
	play(t, func(s *stage) {
		s.pod("shop", "a", on("eve-kube-app/ni-other,eve-kube-app/ni-line-1"))
		s.start()
		if len(s.configs.All()) > 0 {
			t.Errorf("to one of two: %v", s.configs.All())
		}
		s.network(netB, "other")
		synctest.Wait()
		if list := byOwner(s.configs.All(), "a").AppNetAdapterList; len(list) != 2 || list[0].Network != netB || list[1].Network != netA {
			t.Errorf("connected to %v", list)
		}
		published := s.configs.All()
		_ = s.networks.Unpublish(netB.String()) // zedrouter starts again
		s.after(time.Hour)
		if diff := cmp.Diff(published, s.configs.All()); diff != "" {
			t.Errorf("without one of them (-before +after):\n%s", diff)
		}
	})
}

func TestAPodThatIsMadeAgainKeepsItsNetworks(t *testing.T) {
	play(t, func(s *stage) {
		attached := on("eve-kube-app/ni-line-1")
		s.pod("shop", "db-0", attached)
		s.start()
		for range 3 { // of a StatefulSet
			s.gone("shop", "db-0")
			s.after(removeAfter - time.Second)
			if len(s.configs.All()) != 1 {
				t.Fatal("withdrawn between two pods of one name")
			}
			s.pod("shop", "db-0", attached)
			s.after(time.Second)
		}
		s.gone("shop", "db-0")
		s.after(removeAfter)
		if len(s.configs.All()) > 0 {
			t.Error("they outlast it")
		}
	})
}

func TestPodsThatComeAndGoWithErrorsAreNotSaidEachTime(t *testing.T) {
	play(t, func(s *stage) {
		s.start()
		for i := range 600 {
			s.pod("shop", fmt.Sprint("job-", i), on("["))
			s.gone("shop", fmt.Sprint("job-", i-1))
			s.after(time.Second)
		}
		if n := s.said("some pods cannot be connected"); n < 5 || n > 11 {
			t.Errorf("%d lines in ten minutes", n)
		}
	})
}

func TestAWorkloadThatAttachesIsConnectedAsItAsks(t *testing.T) {
	play(t, func(s *stage) {
		s.network(netB, "---")
		s.pod("shop", "web-7f6c4d84f5-abcde", owned("web-7f6c4d84f5", "web"), on(`[
			{"name":"other","namespace":"eve-kube-app"},
			{"name":"ni-line-1","namespace":"eve-kube-app","mac":"02:16:3e:00:00:01","ips":["10.1.0.7/24","10.1.0.8"],"default-route":["10.1.0.9","10.1.0.10"],
			 "portMappings":[{"hostPort":8080,"containerPort":80,"protocol":" TCP "},null,{"hostPort":0,"containerPort":1,"protocol":"tcp"},
			  {"hostPort":53,"containerPort":5353,"protocol":"udp"},{"hostPort":1,"containerPort":70000,"protocol":"udp"},{"hostPort":1,"containerPort":1,"protocol":"sctp"}]}]`))
		s.start()
		// A known answer: UUIDv5(UUIDv5(OID, "eve-kube-app-network-id"), "shop/web-7f6c4d84f5").
		const key = "f3de8560-c29d-55cb-ab04-0fa6d2a3c419"
		got, _ := s.configs.Get(key)
		want := types.AppNetworkConfig{
			UUIDandVersion: types.UUIDandVersion{UUID: uuid.MustParse(key), Version: "1"}, DisplayName: "web", Activate: true,
			KubeApp: &types.KubeAppInfo{Namespace: "shop", OwnerName: "web-7f6c4d84f5"},
			AppNetAdapterList: []types.AppNetAdapterConfig{{
				Name: "net0", AppMacAddr: net.HardwareAddr{2, 0x16, 0x3e, 0, 0, 1}, AppIPAddr: net.ParseIP("10.1.0.7"), Network: netA,
				DefaultRouteVia: net.ParseIP("10.1.0.9"),
				ACLs: []types.ACE{
					{Name: "allow-ipv4", RuleID: 1, Matches: []types.ACEMatch{{Type: "ip", Value: "0.0.0.0/0"}}},
					{Name: "allow-ipv6", RuleID: 2, Matches: []types.ACEMatch{{Type: "ip", Value: "::/0"}}},
					{
						Name: "map-tcp-8080", RuleID: 100, Dir: types.ACEIngress, Matches: []types.ACEMatch{{Type: "protocol", Value: "tcp"}, {Type: "lport", Value: "8080"}},
						Actions: []types.ACEAction{{PortMap: true, TargetPort: 80}},
					},
					{
						Name: "map-udp-53", RuleID: 101, Dir: types.ACEIngress, Matches: []types.ACEMatch{{Type: "protocol", Value: "udp"}, {Type: "lport", Value: "53"}},
						Actions: []types.ACEAction{{PortMap: true, TargetPort: 5353}},
					},
				},
			}},
		}
		if diff := cmp.Diff(want, got); diff != "" || len(s.configs.All()) != 1 {
			t.Errorf("of %d (-want +got):\n%s", len(s.configs.All()), diff)
		}

		// A pod of its own has its own name; the list cannot say more.
		s.pod("shop", "bare", on(" eve-kube-app/ni-line-1@eth7 , ni-line-1,eve-kube-app/nothing"))
		synctest.Wait()
		bare := byOwner(s.configs.All(), "bare")
		if len(bare.AppNetAdapterList) != 1 || bare.DisplayName != "bare" || bare.AppNetAdapterList[0].AppMacAddr != nil || len(bare.AppNetAdapterList[0].ACLs) != 2 {
			t.Errorf("the bare pod is %+v", bare)
		}
		s.gone("shop", "bare")
		s.after(removeAfter)
		if len(s.configs.All()) != 1 {
			t.Error("its configuration outlasts it")
		}
	})
}

func byOwner(configs map[string]types.AppNetworkConfig, owner string) (found types.AppNetworkConfig) {
	for _, c := range configs {
		if c.KubeApp.OwnerName == owner {
			found = c
		}
	}
	return found
}

func TestWhatCannotBeConnectedIsSaidAndHarmsNobodyElse(t *testing.T) {
	for networks, says := range map[string]string{
		`eve-kube-app/ni-line-1,eve-kube-app/ni-line-1`:                                 "named twice",
		`[{"name":"ni-line-1","namespace":"eve-kube-app","mac":"zz"}]`:                  "invalid MAC",
		`[{"name":"ni-line-1","namespace":"eve-kube-app","ips":["ten"]}]`:               "is not an IP address",
		`[{"name":"ni-line-1","namespace":"eve-kube-app","default-route":["0.0.0.0"]}]`: "gateway",
		`[{"name":"ni-line-1","namespace":"eve-kube-app","default-route":["x"]}]`:       "not valid",
		`[{"name":"ni-line-1"`:  "not valid",
		`[{"name":7}]`:          "not valid",
		`eve-kube-app/ni-twice`: "several network instances",
		`eve-kube-app/ni-none`:  "no network instance has the name ni-none",
		`[{"name":"ni-line-1","namespace":"eve-kube-app","mac":"` + strings.Repeat("f", 9000) + `"}]`: "networks of pod shop/bad",
	} {
		play(t, func(s *stage) {
			s.network(netB, "twice")
			s.network(uuid.MustParse("6ba7b812-9dad-41d1-80b4-00c04fd430c8"), "twice")
			s.pod("shop", "good", on("eve-kube-app/ni-line-1"))
			s.start()
			s.pod("shop", "bad", on(networks))
			s.after(time.Hour)
			if len(s.configs.All()) != 1 || byOwner(s.configs.All(), "good").DisplayName == "" {
				t.Errorf("%s: published %v", networks, s.configs.All())
			}
			if n := s.said(says); n != 1 {
				t.Errorf("%.100s: said %d times", networks, n)
			}
			for _, e := range s.logs.AllEntries() {
				if line, _ := e.String(); len(line) > 1500 {
					t.Errorf("a line of %d bytes", len(line))
				}
			}
			word := "native"
			if strings.Contains(networks, "0.0.0.0") { // it asks for the default route
				word = "native-ni-default"
			}
			s.want("both", map[string]string{"shop_bad": word, "shop_good": "native"})
		})
	}
}

// No annotation that fits into a row makes more than fits into one message.
func TestTheLargestConfigurationCanBePublished(t *testing.T) {
	const row = 8 << 10
	mapping := `{"hostPort":65535,"containerPort":65535,"protocol":"tcp"}`
	networks := `[{"name":"ni-line-1","namespace":"eve-kube-app","portMappings":[` + mapping
	for len(networks)+len(mapping)+4 <= row {
		networks += "," + mapping
	}
	config, _, err := configOf(types.Pod{Namespace: strings.Repeat("n", 63), Name: strings.Repeat("p", 253), Networks: networks + "]}]"}, map[string]uuid.UUID{"ni-line-1": netA})
	text, jsonErr := json.Marshal(config)
	if err = errors.Join(err, jsonErr); err != nil || len(text) > pubsub.MaxMessage || len(config.AppNetAdapterList[0].ACLs) < 100 {
		t.Errorf("%d bytes with %d rules, %v", len(text), len(config.AppNetAdapterList[0].ACLs), err)
	}
}

func TestNamesThatLeadElsewhereGetNoMarker(t *testing.T) {
	play(t, func(s *stage) {
		s.pod("..", "x")
		s.pod("shop", "../../../etc/passwd")
		s.pod("shop", "a_b")
		s.pod("a.b", "c")
		s.pod("Shop", "a")
		s.pod("shop", strings.Repeat("x", 251))
		s.pod("", "")
		s.start()
		s.after(time.Hour)
		s.want("all of them", map[string]string{})
		if n := s.said("a name that no marker can have"); n != 1 {
			t.Errorf("said %d times", n)
		}
		s.pod("shop", "good")
		synctest.Wait()
		s.want("a good one", map[string]string{"shop_good": "native"})
	})
}

func TestLauncherPodsAreLeftToTheController(t *testing.T) {
	play(t, func(s *stage) {
		s.pod("shop", "virt-launcher-vm-abcde", on("eve-kube-app/ni-line-1"))
		s.start()
		if len(s.configs.All()) > 0 {
			t.Errorf("published %v", s.configs.All())
		}
		s.want("it", map[string]string{"shop_virt-launcher-vm-abcde": "native"})
	})
}

func TestWhatIsPublishedStaysWhileATableIsNotKnown(t *testing.T) {
	play(t, func(s *stage) {
		routed := on(`[{"name":"ni-line-1","namespace":"eve-kube-app","default-route":["10.1.0.9"]}]`)
		s.pod("shop", "a", routed)
		s.start()
		published := s.configs.All()
		s.stop()
		// The agent starts again: the API server has not answered, then zedrouter has not either.
		s.gone("shop", "a")
		s.silent()
		s.start()
		s.after(time.Hour)
		if diff := cmp.Diff(published, s.configs.All()); diff != "" || len(published) != 1 {
			t.Errorf("in silence (-before +after):\n%s", diff)
		}
		s.stop()
		_ = s.networks.Unpublish(netA.String())
		s.networks.unknown.Store(true)
		s.silent()
		s.start()
		s.after(time.Hour)
		s.pod("shop", "a", routed)
		s.complete()
		s.after(time.Hour)
		if diff := cmp.Diff(published, s.configs.All()); diff != "" || len(published) != 1 {
			t.Errorf("(-before +after):\n%s", diff)
		}
		s.want("the pod", map[string]string{"shop_a": "native-ni-default"})
		// A namesake of its network keeps it as it is.
		s.network(netA, "Line_1")
		s.network(netB, "line-1")
		s.networks.unknown.Store(false)
		s.after(time.Hour)
		if diff := cmp.Diff(published, s.configs.All()); diff != "" {
			t.Errorf("with a namesake (-before +after):\n%s", diff)
		}
		_ = s.networks.Unpublish(netB.String())
		_ = s.networks.Unpublish(netA.String())
		s.after(time.Hour)
		if diff := cmp.Diff(published, s.configs.All()); diff != "" {
			t.Errorf("without its network (-before +after):\n%s", diff)
		}
		s.gone("shop", "a")
		s.after(removeAfter)
		if len(s.configs.All()) > 0 {
			t.Error("it outlasts its pod")
		}
	})
}

// burst counts how many markers were there when each configuration was published.
type burst struct {
	pubsub.Table[types.AppNetworkConfig]
	dir  string
	seen []int
}

func (b *burst) Publish(key string, v types.AppNetworkConfig) error {
	entries, _ := os.ReadDir(b.dir)
	b.seen = append(b.seen, len(entries))
	return b.Table.Publish(key, v)
}

func TestMarkersOfABurstAreWrittenBeforeAnyConfiguration(t *testing.T) {
	const pods = 300
	dir := t.TempDir()
	table, networks := &pubsub.Table[types.Pod]{}, &source{}
	member, api, configs := &pubsub.Table[types.ClusterMembership]{}, &pubsub.Table[types.APIStatus]{}, &burst{dir: dir}
	_ = member.Publish(types.Global, types.ClusterMembership{State: types.MembershipMember, Config: &types.EdgeNodeClusterConfig{ClusterType: types.ClusterTypeK3sBase}})
	_ = api.Publish(types.Global, types.APIStatus{Synced: true})
	_ = networks.Publish(netA.String(), types.NetworkInstanceStatus{DisplayName: "Line_1", Type: types.NetworkInstanceSwitch, ClusterWide: true})
	for i := range pods {
		p := types.Pod{Namespace: "shop", Name: fmt.Sprint("p", i), Networks: "eve-kube-app/ni-line-1"}
		_ = table.Publish(p.Key(), p)
	}
	log, _ := logtest.NewNullLogger()
	kept := &journal{}
	_ = kept.Publish(types.Global, types.PodMarkers{Markers: map[string]string{"shop_before": "native"}})
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Membership: member, Networks: networks, NodePods: table, API: api, Dir: dir,
		Configs: configs, Journal: kept,
	}
	for steps := 1; len(configs.All()) < pods; steps++ {
		before := len(configs.All())
		if err := c.Step(t.Context()); err != nil {
			if _, again := errors.AsType[loop.After](err); !again {
				t.Fatal(err)
			}
		}
		if n := len(configs.All()) - before; n > portion || n == 0 {
			t.Fatalf("step %d published %d", steps, n)
		}
	}
	if slices.Min(configs.seen) != pods {
		t.Errorf("a configuration was published after %d of %d markers", slices.Min(configs.seen), pods)
	}
	if c.journaling.Busy() {
		t.Error("the list is kept before a minute has passed")
	}
}

func TestAMarkerThatSomebodyRemovedIsWrittenAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.pod("shop", "a")
		s.start()
		if err := os.RemoveAll(s.dir); err != nil {
			t.Fatal(err)
		}
		s.after(period)
		s.want("a minute later", map[string]string{"shop_a": "native"})
	})
}

func TestADirectoryThatCannotBeWrittenIsAnErrorThatIsOver(t *testing.T) {
	play(t, func(s *stage) {
		parent := filepath.Dir(filepath.Dir(s.dir))
		if err := os.WriteFile(filepath.Join(parent, "zedkube"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s.pod("shop", "a", on("eve-kube-app/ni-line-1"))
		s.start()
		s.after(time.Minute)
		if n := s.said("markers"); n != 1 {
			t.Errorf("said %d times", n)
		}
		if err := os.Remove(filepath.Join(parent, "zedkube")); err != nil {
			t.Fatal(err)
		}
		s.after(2 * time.Minute)
		s.want("then", map[string]string{"shop_a": "native"})
	})
}

func TestTheMarkersOfAClusterThatThisDeviceHasLeftAreForgotten(t *testing.T) {
	play(t, func(s *stage) {
		config := types.EdgeNodeClusterConfig{ClusterID: types.UUIDandVersion{UUID: uuid.New()}}
		s.pod("shop", "a")
		for _, state := range []types.Membership{types.MembershipMember, types.MembershipDoubtful, types.MembershipLeaving} {
			_ = s.membership.Publish(types.Global, types.ClusterMembership{State: state, Config: &config})
			s.start()
			s.after(journalAfter)
			s.silent() // it is cut off
			s.after(time.Hour)
			if kept, _ := s.journal.Get(types.Global); kept.Cluster != config.ClusterID.UUID || len(kept.Markers) != 1 {
				t.Errorf("while it is %s, kept are %v", state, kept)
			}
			s.stop()
			s.complete()
		}
		s.silent()
		s.start()
		_ = s.membership.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeft})
		synctest.Wait()
		if kept, ok := s.journal.Get(types.Global); ok {
			t.Errorf("it has left, and kept are %v", kept)
		}
		s.complete() // on its own
		s.after(journalAfter)
		if kept, _ := s.journal.Get(types.Global); kept.Cluster != uuid.Nil || len(kept.Markers) != 1 {
			t.Errorf("on its own, kept are %v", kept)
		}
	})
}
