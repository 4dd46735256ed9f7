package sriov

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

func TestThreeNodesShareOneConfigurationAndRestartTheirOwnPluginOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "n1", "n2", "n3")
		defer s.end()
		s.agents["n1"].give(at("eth5", 1, "0000:3b:0a.1"), at("eth5", 2, "0000:3b:0a.2"))
		s.agents["n2"].give(at("eth5", 1, "0000:af:02.1"), at("eth5", 3, "0000:3b:0a.1"))
		s.agents["n3"].give()
		s.start()
		s.pass(20 * time.Minute)
		s.settled("n1", "n2", "n3")
		data := s.cluster.SRIOV().Data
		if d := cmp.Diff([]string{"config.json", "node.n1.json", "node.n2.json", "node.n3.json"}, slices.Sorted(maps.Keys(data))); d != "" {
			t.Error(d)
		}
		if s.restarts() != 2 {
			t.Errorf("%d restarts of plug-ins for 2 nodes with functions", s.restarts())
		}
		s.quiet()

		other, _ := s.cluster.Plugin("n1")
		s.agents["n2"].give(at("eth5", 3, "0000:3b:0a.1"), at("eth5", 4, "0000:3b:0a.4"))
		s.pass(5 * time.Minute)
		s.settled("n1", "n2", "n3")
		if now, _ := s.cluster.Plugin("n1"); now.UID != other.UID || s.restarts() < 3 {
			t.Errorf("after a change of n2 the plug-in of n1 is %+v, %d restarts in all", now, s.restarts())
		}
		s.agents["n1"].give()
		s.pass(5 * time.Minute)
		s.settled("n1", "n2", "n3")
		s.quiet()
	})
}

func TestNothingIsWrittenInAClusterWithoutFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "n1", "n2")
		defer s.end()
		s.agents["n1"].give() // domainmgr of n2 has not said anything yet
		s.start()
		s.quiet()
		if s.cluster.SRIOV().Version != "" || len(s.cluster.Calls("sriovconfig")) > 16 {
			t.Errorf("there is %+v after %d reads", s.cluster.SRIOV(), len(s.cluster.Calls("sriovconfig")))
		}
	})
}

func TestAPluginThatStartsByItselfIsMarkedAndLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "n1")
		defer s.end()
		a := s.agents["n1"]
		a.give(three()...)
		s.start()
		s.pass(5 * time.Minute)
		before := s.restarts()
		s.cluster.StartPlugin("n1")
		s.pass(time.Minute)
		a.stop()
		s.cluster.StartPlugin("n1") // while nobody looks
		s.pass(time.Minute)
		a.start()
		s.pass(20 * time.Minute)
		s.settled("n1")
		if pod, _ := s.cluster.Plugin("n1"); s.restarts() != before || pod.Part == "" {
			t.Errorf("%d restarts, it is %+v", s.restarts()-before, pod)
		}
	})
}

func TestAFunctionThatGetsItsDriverLaterIsOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "n1")
		defer s.end()
		a := s.agents["n1"]
		late := at("eth5", 1, "0000:3b:0a.1")
		a.give(late.place())
		s.start()
		s.pass(5 * time.Minute)
		if s.settled("n1"); s.restarts() != 0 {
			t.Errorf("%d restarts for nothing to offer", s.restarts())
		}
		a.has = []vf{late}
		a.host.link(devicePath(late.Address)+"driver", "../../drivers/vfio-pci") // domainmgr says nothing of it
		s.pass(5 * time.Minute)
		if s.settled("n1"); s.restarts() != 1 {
			t.Errorf("%d restarts", s.restarts())
		}
	})
}

// The plug-in's pod, with its mark, survives a reboot; what it offers, and that a
// function is bound, does not.
func TestAfterARebootThePluginOffersWhatIsBoundAfterItsContainerStarted(t *testing.T) {
	for name, boots := range map[string]func(a *agent){
		"domainmgr names it a minute later": func(a *agent) {
			a.start()
			a.stage.pass(time.Minute)
			a.give(three()...)
		},
		"sysfs shows it ten minutes later": func(a *agent) {
			_ = a.adapters.Publish(types.Global, types.AssignableAdapters{Initialized: true, IoBundleList: bundles(three())})
			a.start()
			a.stage.pass(10 * time.Minute)
			a.give(three()...)
		},
		"domainmgr has bound it before the agent starts": func(a *agent) {
			a.stage.pass(time.Minute)
			a.give(three()...)
			a.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, "n1")
				defer s.end()
				a := s.agents["n1"]
				a.give(three()...)
				s.start()
				s.pass(20 * time.Minute)
				s.settled("n1")
				before := s.restarts()
				a.reboot()
				s.pass(time.Second)
				boots(a)
				s.pass(5 * time.Minute)
				s.settled("n1")
				if n := s.restarts() - before; n != 1 {
					t.Errorf("%d restarts after a reboot", n)
				}
				a.stop()
				a.start() // in the same boot
				s.pass(time.Minute)
				s.quiet()
			})
		})
	}
}

func TestANodeThatLeavesTakesItsPartAndAttachmentsAlongAndNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "n1", "n2")
		defer s.end()
		s.agents["n1"].give(at("eth5", 1, "0000:3b:0a.1"))
		s.agents["n2"].give(at("eth7", 1, "0000:af:02.1"))
		for _, r := range []string{"eve.network/eth5_vf1", "eve.network/eth7_vf1", "eve.network/eth9_vf1", "intel.com/nics"} {
			s.cluster.SetNetwork(strings.ReplaceAll(r, "/", "-"), r)
		}
		s.start()
		s.pass(15 * time.Minute)
		has := func(want ...string) {
			t.Helper()
			if d := cmp.Diff(want, slices.Sorted(maps.Keys(s.cluster.Networks()))); d != "" {
				t.Error(d)
			}
		}
		has("eve.network-eth5_vf1", "eve.network-eth7_vf1", "intel.com-nics")
		s.agents["n2"].stop()
		_ = s.nodes.Unpublish("n2")
		s.pass(30 * time.Minute)
		has("eve.network-eth5_vf1", "intel.com-nics")
		if _, left := s.cluster.SRIOV().Data["node.n2.json"]; left {
			t.Error("the part of the node that left is still there")
		}
		s.settled("n1")
	})
}

// eve overwrites the configuration as EVE's own zedkube does, where it differs.
func (a *agent) eve() {
	want := merge(a.has, nil)
	if a.stage.cluster.SRIOV().Data[configKey] == want {
		return
	}
	a.stage.cluster.EditSRIOV(func(data map[string]string) map[string]string {
		if data == nil {
			data = map[string]string{}
		}
		data[configKey] = want
		return data
	})
	a.stage.cluster.StartPlugin(a.name)
}

func TestBesideAnEVEThatOverwritesEveryPluginOffersItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "n1", "n2", "n3")
		defer s.end()
		s.agents["n1"].give(at("eth5", 1, "0000:3b:0a.1"))
		s.agents["n2"].give(at("eth5", 1, "0000:af:02.1"))
		s.agents["n3"].give(at("eth5", 1, "0000:5e:02.1"), at("eth6", 1, "0000:60:02.1"))
		s.cluster.SetNetwork("theirs", "eve.network/eth6_vf9") // its part is not known
		s.agents["n3"].eve()
		s.agents["n1"].start()
		s.agents["n2"].start()
		for range 6 * 60 {
			s.pass(time.Minute)
			s.agents["n3"].eve()
		}
		s.pass(2 * time.Second)
		s.settled("n1", "n2", "n3")
		// Two nodes whose pauses grow to an hour within two.
		if writes := len(s.cluster.Calls("setsriovconfig")); writes > 40 {
			t.Errorf("%d writes within six hours", writes)
		}
		if len(s.cluster.Networks()) != 1 {
			t.Error("an attachment of a node without part was removed")
		}
		restarts := s.restarts()
		if restarts > 8 {
			t.Errorf("%d restarts of plug-ins", restarts)
		}
		// Then it is ours.
		s.agents["n3"].start()
		s.pass(3 * time.Hour)
		s.settled("n1", "n2", "n3")
		if len(s.cluster.Networks()) != 0 {
			t.Error("the attachment of nobody is still there")
		}
		s.quiet()
	})
}

func TestASysfsThatHangsHoldsNothingUp(t *testing.T) {
	s := newStage(t, "n1")
	a := s.agents["n1"]
	a.give(three()...)
	release := a.host.hang(devicePath(three()[0].Address) + "vendor")
	a.start()
	begin := time.Now()
	a.stop()
	if took := time.Since(begin); took > 2*patience {
		t.Errorf("it ended after %v", took)
	}
	release()
}

func TestAFailingServerIsAskedAgainAndNothingIsLost(t *testing.T) {
	for _, verb := range []string{"sriovconfig", "setsriovconfig", "sriovplugins", "networks", "markplugin", "restartplugin"} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, "n1", "n2")
			defer s.end()
			s.agents["n1"].give(three()...)
			s.agents["n2"].give(at("eth5", 1, "0000:af:02.1"))
			s.cluster.FailVerb(verb, errors.New("no"))
			s.start()
			s.pass(10 * time.Minute)
			if calls := len(s.cluster.Calls(verb)); calls > 2*30 {
				t.Errorf("%s: %d calls while it fails", verb, calls)
			}
			s.cluster.FailVerb(verb, nil)
			s.pass(5 * time.Minute)
			s.settled("n1", "n2")
			s.quiet()
		})
	}
}

func TestALostAnswerCostsARestartAtMost(t *testing.T) {
	for _, verb := range []string{"setsriovconfig", "markplugin", "restartplugin"} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, "n1")
			defer s.end()
			s.agents["n1"].give(three()...)
			s.cluster.LoseAnswer(verb)
			s.start()
			s.pass(10 * time.Minute)
			s.settled("n1")
			if s.restarts() > 2 {
				t.Errorf("%s: %d restarts", verb, s.restarts())
			}
			s.quiet()
		})
	}
}

func TestAnotherDevicesNameIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "n1")
		defer s.end()
		s.agents["n1"].give(three()...)
		_ = s.agents["n1"].info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1"})
		s.start()
		s.pass(time.Hour)
		if calls := s.cluster.Calls(""); len(calls) > 0 {
			t.Error(fmt.Sprint(calls))
		}
	})
}
