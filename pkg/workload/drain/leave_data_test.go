package drain

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// lastHere is a volume whose last healthy replica is on n1, detached as a drain
// leaves it; wholeElsewhere is the same with a whole one on n2.
func lastHere() types.Volume {
	v := vol("", map[string]string{"n1": ""})
	v.UID, v.State, v.Running = "uid-1", "detached", false
	v.Replicas[0].Running, v.Replicas[0].HealthyAt = false, wall0
	return v
}

func wholeElsewhere() types.Volume {
	v := lastHere()
	v.Replicas = append(v.Replicas, types.Replica{Name: "r2", Node: "n2", HealthyAt: wall0})
	return v
}

func TestNoDrainPolicyLetsALeaveTakeTheLastReplicaAlong(t *testing.T) {
	for _, policy := range []string{"", types.DrainPolicyAllowStopped, types.DrainPolicyAlwaysAllow, "block-if-contains-last-replica"} {
		t.Run("of Longhorn: "+policy, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				st := longhorn(lastHere())
				st.Policy = policy
				s.kube.SetStorage(st)
				defer s.run()()
				s.leaves()
				time.Sleep(time.Hour)
				s.left(false)
				s.phase(types.PhaseEmptying, "pvc-1")
				s.kube.SetStorage(longhorn(wholeElsewhere()))
				time.Sleep(time.Minute)
				s.left(true)
			})
		})
		t.Run("of the controller: "+policy, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				_ = s.settings.Publish(types.Global, types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{
					types.SettingNodeDrainPolicy: {ItemType: types.ConfigItemString, StrValue: policy},
				}})
				s.kube.SetStorage(longhorn(lastHere()))
				defer s.run()()
				s.leaves()
				time.Sleep(time.Hour)
				s.left(false)
			})
		})
	}
}

func TestAPolicyThatLetsTheDeviceRebootDoesNotLetItLeave(t *testing.T) {
	story(t, 1, func(s *stage) {
		st := longhorn(lastHere())
		st.Policy = types.DrainPolicyAlwaysAllow
		s.kube.SetStorage(st)
		s.request(&s.zedagent, deviceOp)
		defer s.run()()
		s.leaves()
		time.Sleep(time.Hour)
		s.is(types.DrainComplete, deviceOp)
		s.left(false)
		s.phase(types.PhaseComplete, "pvc-1")
	})
}

func (s *stage) gone(want bool) {
	s.t.Helper()
	if p, _ := s.progress.Get(types.Global); p.Left != want {
		s.t.Errorf("left: %v, want %v; %s: %s", p.Left, want, p.Phase, p.Reason)
	}
}

func TestADeadAPIEndsNoLeaveWhoseLastLookSawDataOnlyHere(t *testing.T) {
	for name, dies := range map[string]struct {
		storage types.Storage
		after   time.Duration // the API dies
		left    bool
	}{
		"data only here":                 {longhorn(lastHere()), time.Minute, false},
		"one is being rebuilt elsewhere": {longhorn(vol("n2", map[string]string{"n1": "RW", "n2": "WO"})), time.Minute, false},
		"no look before":                 {types.Storage{}, 0, false},
		"nothing that only this one has": {longhorn(wholeElsewhere()), time.Minute, true},
		"no volumes":                     {types.Storage{}, time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.hours(2)
				s.kube.Block(appZero, true)
				s.kube.SetStorage(dies.storage)
				defer s.run()()
				time.Sleep(time.Second)
				if dies.after == 0 {
					s.kube.SetFault(kubetest.Refused)
				}
				s.leaves()
				time.Sleep(dies.after)
				s.kube.SetFault(kubetest.Refused)
				time.Sleep(defaultSkipSilence - time.Second)
				s.gone(false)
				time.Sleep(4 * time.Hour) // longer than a drain may take, and the next one begins
				s.gone(dies.left)
			})
		})
	}
}

func TestADeviceMayGoDownWithADeadAPIAlthoughItsLeaveIsHeld(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.hours(2)
		s.kube.SetStorage(longhorn(lastHere()))
		s.kube.Block(appZero, true)
		defer s.run()()
		s.leaves()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		s.kube.SetFault(kubetest.Refused)
		time.Sleep(4 * time.Hour)
		s.is(types.DrainComplete, deviceOp)
		s.gone(false)
		s.kube.Block(appZero, false)
		s.kube.SetFault(kubetest.None)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(4 * time.Hour)
		s.gone(false)
		s.kube.SetStorage(longhorn(wholeElsewhere()))
		time.Sleep(2 * time.Hour)
		s.left(true)
	})
}

func TestANodeThatOthersDeletedKeepsItsMembershipWhileItHasTheOnlyData(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.SetStorage(longhorn(lastHere()))
		defer s.run()()
		time.Sleep(time.Second)
		_ = s.nodes.Unpublish("n1")
		s.leaves()
		time.Sleep(time.Hour)
		s.gone(false)
		s.kube.SetStorage(longhorn(wholeElsewhere()))
		time.Sleep(3 * time.Minute)
		s.gone(true)
	})
}

// plant is the cluster of the consents.
var plant = uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")

// consents is the membership's decision with an operator's consent.
func (s *stage) consents(change ...func(*types.LeaveConsent)) {
	w := types.LeaveConsent{Given: time.Now(), Uptime: time.Since(s.booted), BootID: s.bootID, Cluster: plant, Volumes: []types.LeaveVolume{{UID: "uid-1", Name: "pvc-1"}}}
	for _, c := range change {
		c(&w)
	}
	m, ok := s.member.Get(types.Global)
	if !ok || m.State != types.MembershipLeaving {
		_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true})
		m = types.ClusterMembership{
			State: types.MembershipLeaving, InvalidSince: time.Now(), Reason: "removed",
			Config: &types.EdgeNodeClusterConfig{Initialized: true, Valid: true, ClusterID: types.UUIDandVersion{UUID: plant}},
		}
	}
	m.Consent = &w
	_ = s.member.Publish(types.Global, m)
}

func (s *stage) consentEnds() {
	m, _ := s.member.Get(types.Global)
	m.Consent = nil
	_ = s.member.Publish(types.Global, m)
}

func TestAConsentLetsTheNamedVolumesGo(t *testing.T) {
	second := lastHere()
	second.UID, second.Name = "uid-2", "pvc-2"
	nameless := lastHere()
	nameless.UID = ""
	ends := func(w *types.LeaveConsent) { w.Ends = true }
	for name, row := range map[string]struct {
		volumes []types.Volume
		consent func(*types.LeaveConsent)
		left    bool
	}{
		"the one volume":                    {[]types.Volume{lastHere()}, ends, true},
		"one of two":                        {[]types.Volume{lastHere(), second}, ends, false},
		"another of the same name":          {[]types.Volume{second}, ends, false},
		"a volume without a UID":            {[]types.Volume{nameless}, func(w *types.LeaveConsent) { w.Volumes[0].UID = "" }, false},
		"of another boot":                   {[]types.Volume{lastHere()}, func(w *types.LeaveConsent) { w.BootID = "boot-0" }, false},
		"without a boot":                    {[]types.Volume{lastHere()}, func(w *types.LeaveConsent) { w.BootID = "" }, false},
		"for another cluster":               {[]types.Volume{lastHere()}, func(w *types.LeaveConsent) { w.Cluster = uuid.New() }, false},
		"for no cluster":                    {[]types.Volume{lastHere()}, func(w *types.LeaveConsent) { w.Cluster = uuid.Nil }, false},
		"older than a day":                  {[]types.Volume{lastHere()}, func(w *types.LeaveConsent) { w.Uptime -= 24 * time.Hour }, false},
		"of the future":                     {[]types.Volume{lastHere()}, func(w *types.LeaveConsent) { w.Uptime += 3 * time.Hour }, false},
		"given when the list was not known": {[]types.Volume{lastHere()}, func(w *types.LeaveConsent) { w.Volumes, w.Unknown = nil, true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.SetStorage(longhorn(row.volumes...))
				s.booted = time.Now().Add(-48 * time.Hour)
				defer s.run()()
				s.consents(row.consent)
				time.Sleep(time.Hour)
				s.gone(row.left)
			})
		})
		t.Run(name+", with a dead API", func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.Block(appZero, true)
				s.kube.SetStorage(longhorn(row.volumes...))
				s.booted = time.Now().Add(-48 * time.Hour)
				defer s.run()()
				s.leaves()
				time.Sleep(time.Minute)
				s.kube.SetFault(kubetest.Hung)
				s.consents(row.consent)
				if m, _ := s.member.Get(types.Global); m.Config == nil {
					m.Config = &types.EdgeNodeClusterConfig{Initialized: true, Valid: true, ClusterID: types.UUIDandVersion{UUID: plant}}
					_ = s.member.Publish(types.Global, m)
				}
				time.Sleep(time.Hour)
				s.gone(row.left)
			})
		})
	}
}

func TestAVolumeThatTheConsentDoesNotNameHoldsTheLeaveAgain(t *testing.T) {
	story(t, 1, func(s *stage) {
		second := wholeElsewhere()
		second.UID, second.Name = "uid-2", "pvc-2"
		s.kube.SetStorage(longhorn(lastHere(), second))
		s.kube.Block(appZero, true)
		defer s.run()()
		s.consents()
		time.Sleep(time.Minute)
		second.Replicas = second.Replicas[:1] // its replica here is only now the last
		s.kube.SetStorage(longhorn(lastHere(), second))
		s.kube.Block(appZero, false)
		time.Sleep(time.Hour)
		s.left(false)
		s.phase(types.PhaseEmptying, "pvc-2")
		s.consents(func(w *types.LeaveConsent) {
			w.Volumes = append(w.Volumes, types.LeaveVolume{UID: "uid-2", Name: "pvc-2"})
		})
		time.Sleep(time.Minute)
		s.left(true)
	})
}

func TestAConsentEndsWithItsRequest(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.SetStorage(longhorn(lastHere()))
		s.kube.Block(appZero, true)
		defer s.run()()
		s.consents()
		time.Sleep(time.Minute)
		s.consentEnds()
		s.kube.Block(appZero, false)
		time.Sleep(2 * time.Hour)
		s.left(false)
	})
}

func TestAConsentToAnUnknownListIsGoodWhileNothingWasLookedAt(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		time.Sleep(time.Second)
		s.kube.SetFault(kubetest.Refused)
		s.consents(func(w *types.LeaveConsent) { w.Volumes, w.Unknown = nil, true })
		time.Sleep(time.Hour)
		s.gone(true)
	})
}

func TestALookSurvivesARestartAndNoReboot(t *testing.T) {
	for boot, left := range map[string]bool{"boot-1": true, "boot-2": false} {
		t.Run(boot, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				s.kube.Block(appZero, true)
				s.kube.SetStorage(longhorn(wholeElsewhere()))
				stop := s.run()
				s.leaves()
				time.Sleep(time.Minute)
				s.kube.SetFault(kubetest.Refused)
				time.Sleep(time.Second)
				stop()
				s.bootID = boot
				defer s.run()()
				time.Sleep(time.Hour)
				s.gone(left)
			})
		})
	}
}

func TestALookOfAnEarlierLeaveSaysNothingOfALaterOne(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		s.kube.SetStorage(longhorn(wholeElsewhere()))
		defer s.run()()
		s.leaves()
		time.Sleep(time.Minute)
		s.back()
		time.Sleep(time.Minute)
		s.kube.SetFault(kubetest.Refused)
		s.leaves()
		time.Sleep(time.Hour)
		s.gone(false)
	})
}

// lastOne leaves n1 as the only node, whose Node k3s keeps: it is etcd's last member.
func (s *stage) lastOne() *finalized {
	_ = s.nodes.Unpublish("n2")
	_ = s.nodes.Unpublish("n3")
	kept := &finalized{Cluster: s.kube}
	s.via = kept
	return kept
}

func TestTheLastNodeLeavesByConsentWithOrWithoutVolumes(t *testing.T) {
	for name, storage := range map[string]types.Storage{"without volumes": {}, "with a volume": longhorn(lastHere())} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				kept := s.lastOne()
				s.hours(2)
				s.kube.SetStorage(storage)
				s.kube.Block(appZero, true) // nothing can go anywhere
				defer s.run()()
				s.leaves()
				time.Sleep(4 * time.Hour) // longer than a drain may take, and the next one begins
				s.gone(false)
				if n := kept.deletions.Load(); n > 0 {
					t.Errorf("%d deletions without a consent", n)
				}
				s.back()
				time.Sleep(time.Minute)
				s.consents(func(w *types.LeaveConsent) { w.Ends = true })
				time.Sleep(time.Minute)
				s.gone(true)
				time.Sleep(time.Hour)
				if n := kept.deletions.Load(); n > 0 {
					t.Errorf("%d deletions of a Node that k3s keeps", n)
				}
			})
		})
	}
}

func TestTheLastNodeWithAVolumeThatTheConsentDoesNotNameStays(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.lastOne()
		v := lastHere()
		v.UID = "uid-9"
		s.kube.SetStorage(longhorn(v))
		defer s.run()()
		s.consents(func(w *types.LeaveConsent) { w.Ends = true })
		time.Sleep(time.Hour)
		s.gone(false)
		s.phase(types.PhaseComplete, "pvc-1")
	})
}

func TestTheLastServerOfWorkersNeedsAConsentToo(t *testing.T) {
	story(t, 1, func(s *stage) {
		for _, name := range []string{"n2", "n3"} {
			s.kube.ChangeNode(name, func(n *types.Node) { n.Etcd = false })
		}
		defer s.run()()
		s.leaves()
		time.Sleep(time.Hour)
		s.left(false)
		s.phase(types.PhaseComplete, "the cluster ceases to exist with this node")
	})
}

func TestANodeThatJoinsWhileTheLastOneIsAboutToEndTheClusterTakesItsPods(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.lastOne()
		v := lastHere()
		v.UID = "uid-9"
		s.kube.SetStorage(longhorn(v))
		s.via = nil
		defer s.run()()
		s.consents(func(w *types.LeaveConsent) { w.Ends = true })
		time.Sleep(time.Hour)
		s.gone(false)
		s.peers(types.ConditionTrue)
		time.Sleep(time.Minute) // a look that began before has ended
		s.kube.SetStorage(longhorn(wholeElsewhere()))
		time.Sleep(5 * time.Minute)
		s.left(true)
		if n := len(s.kube.Calls("evict")); n == 0 {
			t.Error("its pods were not evicted")
		}
	})
}
