package names

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestABurstOfPodsIsOneRestartOfCoreDNS(t *testing.T) {
	play(t, func(s *stage) {
		for i := range 300 {
			s.agents[fmt.Sprint("n", i%3+1)].runs(fmt.Sprint("pod-", i), address(i))
			s.after(30 * time.Millisecond)
		}
		s.after(8 * time.Second)
		if len(s.published) > 0 {
			t.Error("CoreDNS was restarted in the burst")
		}
		s.after(time.Hour)
		if n := len(s.entries()); n != 300 || len(s.published) != 1 || s.edited > 6 {
			t.Errorf("%d addresses, %d restarts, %d writes", n, len(s.published), s.edited)
		}
		if n := strings.Count(s.text(), " pod-"); n != 600 { // each with its short name
			t.Errorf("%d names", n)
		}
	})
}

func TestChangesThatNeverEndArePublishedOnceAMinute(t *testing.T) {
	play(t, func(s *stage) {
		for i := range 600 {
			s.agents["n1"].runs(fmt.Sprint("pod-", i%50), address(i))
			s.after(time.Second)
		}
		if n := len(s.published); n < 8 || n > 11 {
			t.Errorf("%d restarts in ten minutes", n)
		}
	})
}

func TestNamesFollowWorkloads(t *testing.T) {
	play(t, func(s *stage) {
		n1, n2 := s.agents["n1"], s.agents["n2"]
		n1.runs("web", "10.55.0.7")
		n2.runs("db", "10.55.0.8")
		s.after(time.Minute)
		s.want("two workloads", map[string]string{"web": "n1", "db": "n2"})
		// web moves: n2 has it before n1 has let go of it, and both have it for a while.
		n2.runs("web", "10.55.0.9")
		s.after(time.Hour)
		s.want("one that moves", map[string]string{"web": "n2", "db": "n2"})
		if s.edited > 4 {
			t.Errorf("two nodes that have a workload wrote %d times", s.edited)
		}
		n1.stops("web")
		s.after(time.Hour)
		s.want("one that has moved", map[string]string{"web": "n2", "db": "n2"})
		if want := "        10.55.0.9 web.shop.floor.internal web.internal\n"; !strings.Contains(s.text(), want) || len(s.published) != 2 {
			t.Errorf("%d restarts, for\n%s", len(s.published), s.text())
		}
		n2.stops("web")
		n2.stops("db")
		s.after(time.Hour)
		if _, there := s.configMaps.Get("eve-ni-floor-allocations"); there || s.text() != "" || len(s.published) != 3 {
			t.Errorf("after the last workload: ConfigMap %v, %d restarts, %q", there, len(s.published), s.text())
		}
	})
}

func TestNothingIsTouchedWhereOrchestrationIsNotNative(t *testing.T) {
	play(t, func(s *stage) {
		n1 := s.agents["n1"]
		n1.runs("web", "10.55.0.7")
		s.after(time.Hour)
		before := s.text()
		for _, a := range s.agents {
			_ = a.member.Publish(types.Global, membership(types.ClusterTypeReplicatedStorage))
		}
		n1.stops("web")
		n1.runs("db", "10.55.0.8")
		s.after(time.Hour)
		s.want("what was there stays", map[string]string{"web": "n1"})
		if s.text() != before || before == "" || s.edited != 1 || len(s.published) != 1 {
			t.Errorf("%d writes, %d restarts", s.edited, len(s.published))
		}
		native := membership(types.ClusterTypeReplicatedStorage)
		native.Config.EnableNativeK8SOrchestration = true
		_ = n1.member.Publish(types.Global, native)
		s.after(time.Hour)
		s.want("native again", map[string]string{"db": "n1"})
	})
}

func TestOnlyTheLeaderPublishesAndTheNextOneRestartsNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.agents["n1"].leads(false)
		s.agents["n2"].runs("web", "10.55.0.7")
		s.after(time.Hour)
		if len(s.published) > 0 {
			t.Error("one that does not lead published names")
		}
		s.agents["n2"].leads(true)
		s.after(time.Hour)
		s.agents["n2"].leads(false)
		s.agents["n3"].leads(true)
		s.after(time.Hour)
		if len(s.published) != 1 {
			t.Errorf("%d restarts", len(s.published))
		}
	})
}

func TestNothingIsTakenBackBeforeZedrouterHasSpoken(t *testing.T) {
	play(t, func(s *stage) {
		s.agents["n2"].runs("web", "10.55.0.7")
		s.after(time.Hour)
		s.agents["n2"].end()
		a := s.start("n2", false)
		a.apps.silent.Store(true)
		s.after(time.Hour)
		s.want("an agent that has just started", map[string]string{"web": "n2"})
		a.apps.silent.Store(false)
		s.after(time.Hour)
		s.want("without workloads", map[string]string{})
	})
}

func TestAddressesOfARemovedNodeGoAfterTenMinutes(t *testing.T) {
	play(t, func(s *stage) {
		s.agents["n1"].runs("web", "10.55.0.7")
		s.agents["n3"].runs("db", "10.55.0.8")
		s.after(time.Hour)
		s.agents["n3"].end()
		_ = s.nodes.Unpublish("n3")
		s.after(9 * time.Minute)
		s.join("n3") // it joins again
		s.after(time.Minute)
		_ = s.nodes.Unpublish("n3")
		_ = s.tables.Publish(types.TableNodes, types.TableStatus{})
		s.after(time.Hour)
		s.want("while the table of nodes is not complete", map[string]string{"web": "n1", "db": "n3"})
		s.agents["n1"].leads(false)
		_ = s.tables.Publish(types.TableNodes, types.TableStatus{Complete: true})
		s.after(time.Hour)
		s.want("without a leader", map[string]string{"web": "n1", "db": "n3"})
		s.join("n3")
		s.agents["n1"].leads(true)
		s.after(time.Minute)
		_ = s.nodes.Unpublish("n3")
		s.after(9 * time.Minute)
		s.want("after nine minutes", map[string]string{"web": "n1", "db": "n3"})
		s.after(2 * time.Minute)
		s.want("after eleven minutes", map[string]string{"web": "n1"})
	})
}

func TestANetworkThatIsMadeAgainUnderItsNameTakesItsConfigMapOver(t *testing.T) {
	play(t, func(s *stage) {
		n1, n2 := s.agents["n1"], s.agents["n2"]
		n1.runs("web", "10.55.0.7")
		n2.runs("db", "10.55.0.8")
		s.after(time.Hour)
		again := app("shop", "web", "10.66.0.7", "floor made again")
		_ = n1.networks.Unpublish(netID("floor").String())
		_ = n1.networks.Publish(netID("floor made again").String(), types.NetworkInstanceStatus{DisplayName: "floor"})
		_ = n1.apps.Publish(appID("web"), again)
		s.after(time.Hour)
		s.want("while another node has the former one", map[string]string{"db": "n2"})
		if n := n1.logged("has workloads on other nodes"); n != 1 {
			t.Errorf("reported %d times", n)
		}
		n2.stops("db")
		s.after(time.Hour)
		s.want("then", map[string]string{"web": "n1"})
		if row, _ := s.configMaps.Get("eve-ni-floor-allocations"); row.Network != netID("floor made again").String() {
			t.Errorf("it is of network %s", row.Network)
		}
		// One that was left empty, with the former UUID.
		n1.stops("web")
		s.after(time.Hour)
		_ = s.configMaps.Publish("eve-ni-floor-allocations", types.NetworkAllocations{Network: netID("floor").String()})
		_ = n1.apps.Publish(appID("web"), again)
		s.after(time.Hour)
		if row, _ := s.configMaps.Get("eve-ni-floor-allocations"); row.Network != netID("floor made again").String() || len(row.Entries) != 1 {
			t.Errorf("an empty one: %+v", row)
		}
	})
}

func TestWhatIsLeftOutIsReportedOnceAndTheRestIsPublished(t *testing.T) {
	play(t, func(s *stage) {
		n1 := s.agents["n1"]
		for name, network := range map[string]string{"a": "twice", "b": "twice", "c": "Office"} {
			_ = n1.networks.Publish(netID(name).String(), types.NetworkInstanceStatus{DisplayName: network})
		}
		n1.runs("web", "10.55.0.7")
		n1.runs("Label_Printer\n{", "10.55.0.8")
		_ = n1.apps.Publish(appID("x"), app("shop", "x", "10.55.0.9", "a", "c", "floor", "never heard of"))
		s.after(time.Hour)
		s.want("what is valid", map[string]string{"web": "n1", "x": "n1"})
		if n := len(s.configMaps.All()); n != 1 {
			t.Errorf("%d ConfigMaps", n)
		}
		n1.log.Reset()
		n1.runs("Label_Printer\n{", "10.55.0.8")
		n1.runs("Label_Scanner", "10.55.0.10")
		s.after(time.Hour)
		for _, text := range []string{"Label_Printer", "Label_Scanner", "several network instances have that name", "Office"} {
			if n := n1.logged(text); n != 1 {
				t.Errorf("%s: reported %d times", text, n)
			}
		}
		n1.log.Reset()
		n1.runs("web", "10.55.0.11")
		s.after(time.Hour)
		if n := n1.logged("left out"); n > 0 {
			t.Errorf("the same is reported %d times more", n)
		}
	})
}

func TestCoreDNSIsLeftAloneWhereItWouldNotStart(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.server.Publish("coredns-custom", types.DNSServer{Clash: "site.server"})
		s.agents["n1"].runs("web", "10.55.0.7")
		s.after(time.Hour)
		if len(s.published) > 0 || s.agents["n1"].logged("site.server") != 1 {
			t.Error("names were published beside another zone internal, or nobody was informed")
		}
		_ = s.server.Publish("coredns-custom", types.DNSServer{})
		_ = s.rollout.Unpublish("coredns")
		s.after(time.Hour)
		if len(s.published) > 0 || s.agents["n1"].logged("there is no Deployment") != 1 {
			t.Error("names were published without CoreDNS, or nobody was informed")
		}
		_ = s.rollout.Publish("coredns", types.DNSRollout{})
		_ = s.tables.Publish(types.TableDNSServer, types.TableStatus{})
		s.after(time.Hour)
		if len(s.published) > 0 {
			t.Error("names were published while what is there is not known")
		}
		_ = s.tables.Publish(types.TableDNSServer, types.TableStatus{Complete: true})
		s.after(time.Hour)
		if len(s.published) != 1 {
			t.Errorf("%d restarts", len(s.published))
		}
	})
}

func TestWhatOthersChangeIsCorrected(t *testing.T) {
	play(t, func(s *stage) {
		s.agents["n2"].runs("web", "10.55.0.7")
		s.after(time.Hour)
		_ = s.configMaps.Unpublish("eve-ni-floor-allocations")
		_ = s.server.Publish("coredns-custom", types.DNSServer{Text: "broken"})
		s.after(time.Hour)
		s.want("a deleted ConfigMap", map[string]string{"web": "n2"})
		if strings.Contains(s.text(), "broken") {
			t.Error("CoreDNS' configuration stays as it is")
		}
	})
}

func TestAFailedWriteIsRepeated(t *testing.T) {
	play(t, func(s *stage) {
		s.fail(errAPI)
		s.agents["n1"].runs("web", "10.55.0.7")
		s.after(10 * time.Minute)
		s.fail(nil)
		s.after(2 * time.Minute)
		s.want("afterwards", map[string]string{"web": "n1"})
		s.fail(errAPI)
		s.agents["n1"].runs("db", "10.55.0.8")
		s.after(10 * time.Minute)
		s.fail(nil)
		s.after(3 * time.Minute)
		if len(s.published) != 2 || s.agents["n1"].logged("step failed") != 2 {
			t.Errorf("%d restarts, %d errors logged", len(s.published), s.agents["n1"].logged("step failed"))
		}
	})
}

func TestVirtualMachinesHaveNamesToo(t *testing.T) {
	play(t, func(s *stage) {
		_ = s.agents["n1"].apps.Publish(appID("vm"), app("", "press", "fd00:55::7", "floor"))
		s.agents["n1"].places("vm", types.AppKubeRunning, true)
		s.after(time.Hour)
		if want := "        fd00:55::7 press.eve-kube-app.floor.internal press.internal\n"; !strings.Contains(s.text(), want) {
			t.Errorf("the names are\n%s", s.text())
		}
		row, _ := s.configMaps.Get("eve-ni-floor-allocations")
		want := types.Allocation{
			AppUUID: appID("vm"), AppName: "press", Namespace: "eve-kube-app", NIUUID: netID("floor").String(), NIDisplayName: "floor",
			NodeName: "n1", MACs: []string{"02:16:00:00:00:01"}, IPv6: []string{"fd00:55::7"},
		}
		if got := slices.Collect(maps.Values(row.Entries)); len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want) {
			t.Errorf("written: %+v", got)
		}
	})
}

func TestAConfigMapThatIsNotOursDoesNotHurryTheOthers(t *testing.T) {
	play(t, func(s *stage) {
		n1 := s.agents["n1"]
		s.foreign = "eve-ni-roof-allocations"
		_ = n1.networks.Publish(netID("roof").String(), types.NetworkInstanceStatus{DisplayName: "roof"})
		_ = n1.apps.Publish(appID("x"), app("shop", "x", "10.66.0.7", "roof"))
		s.after(time.Hour)
		for i := range 90 {
			n1.runs(fmt.Sprint("pod-", i), address(i))
			s.after(100 * time.Millisecond)
		}
		s.after(time.Hour)
		if n := len(s.entries()); n != 90 || s.edited > 2 || n1.logged("it is not EVE's") != 1 {
			t.Errorf("%d addresses, %d writes, logged %d times", n, s.edited, n1.logged("it is not EVE's"))
		}
	})
}

func TestABurstOfPodsWithoutNamesIsNoFloodInTheLog(t *testing.T) {
	play(t, func(s *stage) {
		n1 := s.agents["n1"]
		for i := range 300 {
			n1.runs(fmt.Sprint("Pod_", i), address(i))
			s.after(100 * time.Millisecond)
		}
		s.after(time.Hour)
		if n := n1.logged("left out"); n != 2 || n1.logged("and 295 more") != 1 {
			t.Errorf("%d lines", n)
		}
	})
}

func TestANodeThatWasMissingBeforeNativeOrchestrationEndedHasItsTenMinutesAgain(t *testing.T) {
	play(t, func(s *stage) {
		n1 := s.agents["n1"]
		s.agents["n3"].runs("db", "10.55.0.8")
		s.after(time.Hour)
		s.agents["n3"].end()
		_ = s.nodes.Unpublish("n3")
		s.after(5 * time.Minute)
		_ = n1.member.Publish(types.Global, membership(types.ClusterTypeReplicatedStorage))
		s.after(time.Hour)
		_ = n1.member.Publish(types.Global, membership(types.ClusterTypeK3sBase))
		s.after(time.Minute)
		s.want("native again", map[string]string{"db": "n3"})
	})
}

// TestAWorkloadThatReturnsHasItsNameAgain has web move from n1 to n2, and back with the address
// that it had there, as n2 loses power: its Node and its entry stay.
func TestAWorkloadThatReturnsHasItsNameAgain(t *testing.T) {
	play(t, func(s *stage) {
		n1, n2 := s.agents["n1"], s.agents["n2"]
		n1.runs("web", "10.55.0.7")
		s.after(time.Minute)
		n2.runs("web", "10.55.0.9")
		s.after(time.Minute)
		n1.stops("web")
		s.after(time.Minute)
		s.want("it has moved", map[string]string{"web": "n2"})
		n2.end()
		s.after(time.Minute)
		n1.runs("web", "10.55.0.7")
		s.after(time.Hour)
		s.want("it is back", map[string]string{"web": "n1"})
		if want := "        10.55.0.7 web.shop.floor.internal web.internal\n"; !strings.Contains(s.text(), want) {
			t.Errorf("CoreDNS says\n%s", s.text())
		}
	})
}

// TestAHealthyCopyKeepsTheName while another one is in error now and then.
func TestAHealthyCopyKeepsTheName(t *testing.T) {
	play(t, func(s *stage) {
		n1, n2 := s.agents["n1"], s.agents["n2"]
		n1.runs("web", "10.55.0.7")
		s.after(time.Minute)
		n2.runs("web", "10.55.0.9")
		s.after(time.Minute)
		edited := s.edited
		for range 3 {
			ill := app("shop", "web", "10.55.0.7", "floor")
			ill.Error = "no address"
			_ = n1.apps.Publish(appID("web"), ill)
			s.after(30 * time.Second)
			n1.runs("web", "10.55.0.7")
			s.after(30 * time.Second)
		}
		s.want("it is not taken", map[string]string{"web": "n2"})
		if s.edited != edited {
			t.Errorf("%d writes", s.edited-edited)
		}
	})
}

func TestTwoNodesThatAreUnknownDoNotTakeANameInTurns(t *testing.T) {
	play(t, func(s *stage) {
		s.agents["n3"].end()
		for _, node := range []string{"n1", "n2"} {
			s.agents[node].runs("web", "10.55.0.7")
			s.after(time.Minute)
		}
		for _, node := range []string{"n1", "n2"} {
			_ = s.nodes.Publish(node, types.Node{Name: node, UID: "uid-" + node, UUID: device(node).String(), Ready: types.ConditionUnknown})
		}
		edited := s.edited
		s.after(time.Hour)
		if n := s.edited - edited; n > 1 {
			t.Errorf("%d writes", n)
		}
	})
}

func TestANameDoesNotStayWithACopyOnALostNode(t *testing.T) {
	play(t, func(s *stage) {
		ready := func(is types.ConditionStatus) {
			_ = s.nodes.Publish("n2", types.Node{Name: "n2", UID: "uid-n2", UUID: device("n2").String(), Ready: is})
			s.after(time.Hour)
		}
		for _, node := range []string{"n1", "n3", "n2"} {
			s.agents[node].runs("web", "10.55.0.7")
			s.after(time.Minute)
		}
		ready(types.ConditionFalse)
		s.want("its node answers", map[string]string{"web": "n2"})
		edited := s.edited
		ready(types.ConditionUnknown)
		if now := s.entries()["web"]; now == "n2" || s.edited != edited+1 {
			t.Errorf("it is on %s after %d writes", now, s.edited-edited)
		}
		ready(types.ConditionTrue)
		if now := s.entries()["web"]; now == "n2" || s.edited != edited+1 {
			t.Errorf("it is on %s after %d writes, with all nodes back", now, s.edited-edited)
		}
	})
}

// TestTheDesignatedNodeHasNoNameOfWhatRunsElsewhere has n2, the designated node of press, reboot: press
// is on n1 since, and n2's zedrouter sets it up all the same.
func TestTheDesignatedNodeHasNoNameOfWhatRunsElsewhere(t *testing.T) {
	play(t, func(s *stage) {
		n1, n2 := s.agents["n1"], s.agents["n2"]
		n2.places("press", types.AppKubeRunning, true)
		n2.activates("press", "10.55.0.7")
		s.after(time.Hour)
		s.want("on its designated node", map[string]string{"press": "n2"})
		n2.end()
		n1.places("press", types.AppKubeRunning, true)
		n1.activates("press", "10.55.0.9")
		s.after(time.Hour)
		s.want("it has moved", map[string]string{"press": "n1"})
		n2 = s.start("n2", false)
		n2.activates("press", "10.55.0.7")
		s.after(time.Hour)
		s.want("n2 is back, and has not published where press runs", map[string]string{"press": "n1"})
		edited := s.edited
		for _, is := range []types.AppKubeStatus{types.AppKubeUnknown, types.AppKubeRunning, types.AppKubeNotRunning, types.AppKubeAPIUnreachable, types.AppKubeRunning} {
			n2.places("press", is, false)
			s.after(time.Hour)
			s.want(fmt.Sprint("on n2 it is ", is), map[string]string{"press": "n1"})
		}
		if want := "        10.55.0.9 press.eve-kube-app.floor.internal press.internal\n"; !strings.Contains(s.text(), want) || s.edited != edited {
			t.Errorf("%d writes, and CoreDNS says\n%s", s.edited-edited, s.text())
		}
		n2.places("press", types.AppKubeNotRunning, true)
		s.after(time.Minute)
		s.want("it goes back, and n1 does not know yet", map[string]string{"press": "n2"})
		n1.places("press", types.AppKubeRunning, false)
		s.after(time.Minute)
		n1.stops("press")
		s.after(time.Hour)
		s.want("it is back", map[string]string{"press": "n2"})
		if want := "        10.55.0.7 press.eve-kube-app.floor.internal press.internal\n"; !strings.Contains(s.text(), want) || s.edited != edited+1 {
			t.Errorf("%d writes, and CoreDNS says\n%s", s.edited-edited, s.text())
		}
	})
}

// TestAnEntryStaysWhileItIsNotKnownWhereItsApplicationRuns lets n2 write another entry of the same
// ConfigMap meanwhile.
func TestAnEntryStaysWhileItIsNotKnownWhereItsApplicationRuns(t *testing.T) {
	play(t, func(s *stage) {
		n2 := s.agents["n2"]
		n2.places("press", types.AppKubeRunning, true)
		n2.activates("press", "10.55.0.7")
		s.after(time.Hour)
		n2.end()
		n2 = s.start("n2", false)
		n2.activates("press", "10.55.0.8")
		n2.runs("web", "10.55.0.10")
		s.after(time.Hour)
		s.want("nothing is published yet", map[string]string{"press": "n2", "web": "n2"})
		for _, is := range []types.AppKubeStatus{types.AppKubeUnknown, types.AppKubeAPIUnreachable} {
			n2.places("press", is, false)
			s.after(time.Hour)
			s.want(is.String(), map[string]string{"press": "n2", "web": "n2"})
		}
		if want := "        10.55.0.7 press.eve-kube-app.floor.internal press.internal\n"; !strings.Contains(s.text(), want) {
			t.Errorf("CoreDNS says\n%s", s.text())
		}
		n2.places("press", types.AppKubeRunning, true)
		s.after(time.Hour)
		if want := "        10.55.0.8 press.eve-kube-app.floor.internal press.internal\n"; !strings.Contains(s.text(), want) {
			t.Errorf("it runs here: CoreDNS says\n%s", s.text())
		}
		n2.places("press", types.AppKubeNotInCluster, false)
		s.after(time.Hour)
		s.want("it runs nowhere", map[string]string{"web": "n2"})
		n2.places("press", types.AppKubeRunning, true)
		s.after(time.Hour)
		s.want("it runs again", map[string]string{"press": "n2", "web": "n2"})
		_ = n2.statuses.Unpublish(appID("press"))
		n2.stops("press")
		s.after(time.Hour)
		s.want("it is deleted", map[string]string{"web": "n2"})
	})
}

// TestAnApplicationThatReturnsHasItsNameAgain is TestAWorkloadThatReturnsHasItsNameAgain for the
// designated node, whose zedrouter has it all the time.
func TestAnApplicationThatReturnsHasItsNameAgain(t *testing.T) {
	play(t, func(s *stage) {
		n1, n2 := s.agents["n1"], s.agents["n2"]
		n1.places("press", types.AppKubeRunning, true)
		n1.activates("press", "10.55.0.7")
		s.after(time.Minute)
		n2.places("press", types.AppKubeRunning, true)
		n2.activates("press", "10.55.0.9")
		s.after(time.Minute)
		n1.places("press", types.AppKubeRunning, false)
		s.after(time.Minute)
		s.want("it has moved", map[string]string{"press": "n2"})
		n2.end()
		s.after(time.Minute)
		n1.places("press", types.AppKubeRunning, true)
		s.after(time.Hour)
		s.want("it is back", map[string]string{"press": "n1"})
	})
}

// TestACopyWithoutAnAddressTakesNoName has addresses come from a DHCP server outside: zedrouter knows
// only the MAC address of a copy until it sees a lease.
func TestACopyWithoutAnAddressTakesNoName(t *testing.T) {
	play(t, func(s *stage) {
		n1, n2 := s.agents["n1"], s.agents["n2"]
		waits := func(a *agent, addresses ...string) {
			waiting := app("shop", "web", "", "floor")
			for _, address := range addresses {
				waiting.AppNetAdapterList[0].AssignedAddresses.IPv6Addrs = []types.AssignedAddr{{Address: net.ParseIP(address)}}
			}
			_ = a.apps.Publish(appID("web"), waiting)
			s.after(time.Hour)
		}
		says := func(what, address string) {
			t.Helper()
			if want := "        " + address + " web.shop.floor.internal web.internal\n"; !strings.Contains(s.text(), want) {
				t.Errorf("%s: CoreDNS says\n%s", what, s.text())
			}
		}
		n1.runs("web", "10.55.0.7")
		s.after(time.Hour)
		waits(n2)
		s.want("n2 has no address", map[string]string{"web": "n1"})
		waits(n2, "fe80::1")
		s.want("n2 has one that is not published", map[string]string{"web": "n1"})
		says("n2 has none", "10.55.0.7")
		_ = s.nodes.Publish("n1", types.Node{Name: "n1", UID: "uid-n1", UUID: device("n1").String(), Ready: types.ConditionUnknown})
		s.after(time.Hour)
		s.want("n1 is lost, and n2 has no address", map[string]string{"web": "n1"})
		s.join("n1")
		n2.runs("web", "10.55.0.9")
		s.after(time.Hour)
		s.want("n2 has an address", map[string]string{"web": "n2"})
		says("n2 has one", "10.55.0.9")
		edited := s.edited
		waits(n2)
		s.want("n2 has none again", map[string]string{"web": "n1"})
		says("n2 has none again", "10.55.0.7")
		if s.edited > edited+2 {
			t.Errorf("%d writes", s.edited-edited)
		}
	})
}
