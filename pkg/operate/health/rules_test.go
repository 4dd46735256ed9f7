package health

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// well is an overview of a member of which nothing is wrong.
func well() overview.Overview {
	told := overview.Source{File: "/f", At: ago(time.Minute)}
	return overview.Overview{
		ReadAt:  now,
		Node:    overview.Node{Source: told, Name: "node-2"},
		Agent:   overview.Agent{Runs: true, PID: 7, Seen: ago(time.Second)},
		API:     overview.API{Kubeconfig: told, Answers: types.ConditionTrue},
		Cluster: overview.Cluster{Source: overview.Source{At: ago(time.Hour)}, ID: "c", Interface: "eth1", Address: "10.0.0.2/24", AddressReady: true, Wanted: true, Membership: overview.Membership{Source: told, State: types.MembershipMember}},
		Drain:   overview.Drain{Source: told, Progress: &types.NodeDrainProgress{Phase: types.PhaseIdle, Since: ago(time.Hour)}},
		Lease:   overview.Lease{Source: overview.Source{At: ago(time.Hour)}, Leader: "node-1"},
		Report:  overview.Report{Source: told, Sections: []types.ReportSection{{Name: types.SectionServices, Known: true, Total: 3}}},
		Storage: overview.Storage{Source: told, Volumes: []overview.Volume{{Name: "v", Robustness: "Healthy", Replicas: 3, Online: 3, Healthy: 3, Here: true}}},
		Apps:    overview.Apps{Source: told, List: []overview.App{{Name: "cam", Activate: true, State: "RunningState", Since: ago(time.Hour)}}},
		Nodes:   overview.Nodes{Source: told, List: []overview.ClusterNode{{Name: "node-2", Own: true, Status: "Ready"}}},
		Conditions: overview.Conditions{Source: told, List: []types.NodeStateCondition{
			{Type: types.StateCordon, Status: types.ConditionTrue}, {Type: types.StateLeader, Status: types.ConditionUnknown},
		}},
		Disks: []overview.Disk{{Path: "/run", Size: 100 << 30, Free: 50 << 30}},
	}
}

func TestProblems(t *testing.T) {
	condition := func(of types.NodeStateType, status types.ConditionStatus, expires time.Time) func(*overview.Overview) {
		return func(o *overview.Overview) {
			o.Conditions.List = []types.NodeStateCondition{{Type: of, Status: status, Since: ago(time.Hour), Message: "M.", ExpiresAt: expires}}
		}
	}
	authority := func(ca, k3sCA time.Duration) func(*overview.Overview) {
		return func(o *overview.Overview) {
			for name, left := range map[string]time.Duration{"client": time.Hour, "CA": ca, "k3s-CA": k3sCA} {
				o.Conditions.Certificates = append(o.Conditions.Certificates, types.NodeCertificate{Name: name, NotAfter: o.ReadAt.Add(left)})
			}
		}
	}
	repair := func(phase types.RepairPhase, for_ time.Duration, reason string) func(*overview.Overview) {
		return func(o *overview.Overview) {
			a := &o.Apps.List[0]
			a.State, a.Since = "NotRunningState", ago(for_)
			a.Repair = &types.AppRepairStatus{Phase: phase, Since: ago(for_), Reason: reason}
		}
	}
	notMounted := func(phase types.RepairPhase) func(*overview.Overview) {
		return func(o *overview.Overview) {
			o.Storage.NotMounted = &types.MountRecovery{Phase: phase, Since: ago(time.Minute), Reason: "r"}
			repair(phase, time.Hour, "r")(o) // which is said once
			o.Apps.List[0].State, o.Apps.List[0].Repair.Act = "NotRunningState", types.ActRestart
			o.Apps.List[0].Since = ago(time.Second)
		}
	}
	tests := []struct {
		name   string
		change func(*overview.Overview)
		want   []string // Severity, Name and About
	}{
		{"nothing is wrong", func(*overview.Overview) {}, nil},
		{"the agent is dead", func(o *overview.Overview) { o.Agent = overview.Agent{Why: "process 7 is gone"} }, []string{"bad AgentDead"}},
		{"the agent hangs", func(o *overview.Overview) { o.Agent.Runs, o.Agent.Hung = false, true }, []string{"bad AgentHung"}},
		{"what a dead agent said last of the leader is no news", func(o *overview.Overview) {
			o.Agent.Runs = false
			condition(types.StateVersion, types.ConditionFalse, time.Time{})(o)
		}, []string{"bad AgentDead"}},
		{"there is no kubeconfig", func(o *overview.Overview) { o.API = overview.API{Answers: types.ConditionFalse} }, []string{"bad NoKubeconfig"}},
		{"a copy has no kubeconfig", func(o *overview.Overview) { o.Copied, o.API = true, overview.API{} }, nil},
		{"a device without Kubernetes needs none", func(o *overview.Overview) {
			o.Node.NoCluster, o.API = "kvm", overview.API{Answers: types.ConditionFalse}
		}, nil},
		{"the API server is silent", func(o *overview.Overview) { o.API.Answers, o.API.Since = types.ConditionFalse, ago(time.Minute) }, []string{"bad APISilent"}},
		{"silence explains a stale report", func(o *overview.Overview) {
			o.API.Answers = types.ConditionFalse
			o.Report.Sections[0].StaleSince = ago(time.Hour)
		}, []string{"bad APISilent"}},
		{"a device that is in no cluster, and is to be in none", func(o *overview.Overview) { o.Cluster.Wanted, o.Cluster.Membership.State = false, types.MembershipLeft }, nil},
		{"a device that is in no cluster, and should be", func(o *overview.Overview) { o.Cluster.Membership.State = types.MembershipNever }, []string{"warn NotAMember"}},
		{"the membership is doubtful", func(o *overview.Overview) { o.Cluster.Membership.State = types.MembershipDoubtful }, []string{"bad MembershipDoubtful"}},
		{"the node leaves", func(o *overview.Overview) { o.Cluster.Membership.State = types.MembershipLeaving }, []string{"warn Leaving"}},
		{"the token cannot be decrypted", func(o *overview.Overview) { o.Cluster.Error = "no certificate" }, []string{"bad ClusterConfigBad"}},
		{"the balancer's addresses overlap", func(o *overview.Overview) { o.Cluster.LBError = "overlaps" }, []string{"warn ClusterConfigBad"}},
		{"the address is not ready for long", func(o *overview.Overview) { o.Cluster.AddressReady = false }, []string{"bad AddressNotReady"}},
		{"the address is not ready yet", func(o *overview.Overview) { o.Cluster.AddressReady, o.Cluster.At = false, ago(time.Minute) }, nil},
		{"a node is not Ready", func(o *overview.Overview) { o.Nodes.List[0].Status = "NotReady" }, []string{"bad NodeNotReady node-2"}},
		{"a node is out of reach", func(o *overview.Overview) { o.Nodes.List[0].Status = "NotReachable" }, []string{"bad NodeNotReady node-2"}},
		{"a member that is not named yet", func(o *overview.Overview) {
			o.Cluster.Members.Stale = []types.StaleMember{{Node: "node-9", Why: "w", Joins: true}}
		}, []string{"warn MembersStale node-9"}},
		{"a stale member", func(o *overview.Overview) { o.Cluster.Members.Stale = []types.StaleMember{{Node: "node-9", Why: "w"}} }, []string{"warn MembersStale node-9"}},
		{"the drain has failed", func(o *overview.Overview) { o.Drain.Progress.Phase = types.PhaseNotEmpty }, []string{"bad DrainFailed"}},
		{"a pod is never gone", func(o *overview.Overview) {
			o.Drain.Progress.Phase = types.PhaseEmptying
			o.Drain.Progress.Blockers = []types.DrainBlocker{{Pod: "a/slow", Outlook: types.OutlookSlow}, {Pod: "a/never", Outlook: types.OutlookNever}}
		}, []string{"bad DrainNever a/never"}},
		{"what was in the way of a drain that is over", func(o *overview.Overview) {
			o.Drain.Progress.Phase = types.PhaseComplete
			o.Drain.Progress.Blockers = []types.DrainBlocker{{Pod: "a/never", Outlook: types.OutlookNever}}
		}, nil},
		{"a volume is never detached, and is the last", func(o *overview.Overview) {
			o.Storage.Volumes, o.Drain.Progress.Phase = nil, types.PhaseEmptying
			o.Drain.Progress.Volumes = []types.DrainVolume{{Name: "v", Outlook: types.OutlookNever, LastHere: true}}
		}, []string{"bad DrainNever v", "bad LastReplica v"}},
		{"a drain waits for its turn for long", func(o *overview.Overview) {
			o.Drain.Progress.Phase, o.Drain.Progress.Started = types.PhaseGates, ago(2*time.Hour)
		}, []string{"warn DrainWaits"}},
		{"a drain waits for its turn", func(o *overview.Overview) {
			o.Drain.Progress.Phase, o.Drain.Progress.Started = types.PhaseGates, ago(time.Minute)
		}, nil},
		{"cordoned by somebody else, by the condition", condition(types.StateCordon, types.ConditionFalse, time.Time{}), []string{"warn CordonForeign"}},
		{"cordoned by somebody else, by the drain", func(o *overview.Overview) { o.Conditions, o.Drain.Progress.Cordon = overview.Conditions{}, "operator" }, []string{"warn CordonForeign"}},
		{"kept for long", func(o *overview.Overview) {
			o.Drain.Progress.Cordon, o.Drain.Progress.Since = "kept", ago(25*time.Hour)
		}, []string{"warn CordonOld"}},
		{"kept since now", func(o *overview.Overview) { o.Drain.Progress.Cordon = "kept" }, nil},
		{"empty for long", func(o *overview.Overview) {
			o.Drain.Progress.Cordon, o.Drain.Progress.Phase, o.Drain.Progress.Ended = "zedkube", types.PhaseComplete, ago(25*time.Hour)
		}, []string{"warn CordonOld"}},
		{"a force file", func(o *overview.Overview) { o.Drain.Forced = forceFile("/tmp/f") }, []string{"warn ForceFile /tmp/f"}},
		{"the tests' marker", func(o *overview.Overview) { o.Drain.Held = &overview.Source{File: "/tmp/m"} }, []string{"warn FaultMarker /tmp/m"}},
		{"no leader, by the condition", condition(types.StateLeader, types.ConditionFalse, time.Time{}), []string{"bad Leaderless"}},
		{"no leader, by the election", func(o *overview.Overview) { o.Conditions, o.Lease.Leader = overview.Conditions{}, "" }, []string{"bad Leaderless"}},
		{"no leader yet", func(o *overview.Overview) {
			o.Conditions, o.Lease.Leader, o.Lease.At = overview.Conditions{}, "", ago(time.Second)
		}, nil},
		{"the condition is not known", condition(types.StateLeader, types.ConditionUnknown, time.Time{}), nil},
		{"a section is stale", func(o *overview.Overview) { o.Report.Sections[0].StaleSince = ago(time.Hour) }, []string{"warn ReportStale"}},
		{"a section is stale since a moment", func(o *overview.Overview) { o.Report.Sections[0].StaleSince = ago(time.Second) }, nil},
		{"a section that only the leader makes", func(o *overview.Overview) {
			o.Report.Sections = []types.ReportSection{{Name: types.SectionNodes, StaleSince: ago(time.Hour)}}
		}, nil},
		{"a report is cut", func(o *overview.Overview) { o.Report.Sections[0].Truncated = 5 }, []string{"warn ReportTruncated UserService"}},
		{"an override of k3s that is accepted", func(o *overview.Overview) { o.Override = &types.K3sOverrideStatus{Accepted: true} }, nil},
		{"an override of k3s that is refused", func(o *overview.Overview) {
			o.Override = &types.K3sOverrideStatus{Refused: []types.K3sOverrideNote{{Option: "token", Why: "w"}}, Warnings: []types.K3sOverrideNote{{Option: "disable", Why: "w"}}}
		}, []string{"warn K3sOverride"}},
		{"an override of k3s that replaces a list", func(o *overview.Overview) {
			o.Override = &types.K3sOverrideStatus{Accepted: true, Warnings: []types.K3sOverrideNote{{Option: "disable", Why: "w"}}}
		}, []string{"warn K3sOverride"}},
		{"a change of k3s waits", lifecycle(types.LifecycleWaits), nil},
		{"an override of k3s failed", func(o *overview.Overview) {
			o.Override = &types.K3sOverrideStatus{Accepted: true}
			o.Change = &types.KubeLifecycle{Override: types.K3sOverrideTurn{Failed: types.K3sFailure{To: "a", Why: "No."}}}
		}, []string{"bad K3sOverride"}},
		{"a change of k3s is stuck", lifecycle(types.LifecycleStuck), []string{"bad K3sChange"}},
		{"a change of k3s was taken back", lifecycle(types.LifecycleFailed), []string{"warn K3sChange"}},
		{"what a dead agent said last of a change is no news", func(o *overview.Overview) {
			o.Agent.Runs = false
			lifecycle(types.LifecycleStuck)(o)
		}, []string{"bad AgentDead"}},
		{"an update of a component failed", container(types.ClusterDegraded, types.ComponentsUpdated, types.ComponentUpdateFailed), []string{"warn KubeContainer ComponentsUpdated"}},
		{"a component is updated", container(types.ClusterUpgrading, types.ComponentsUpdated, "Updating"), nil},
		{"the kube container has an error, and k3s runs", container(types.ClusterDegraded, types.KubeContainerReady, types.KubeContainerError), []string{"warn KubeContainer KubeContainerReady"}},
		{"the kube container has an error, and k3s does not run", container(types.ClusterFailed, types.KubeContainerReady, types.KubeContainerError), []string{"bad KubeContainer KubeContainerReady"}},
		{"the kube container is starting", container(types.ClusterDegraded, types.KubeContainerReady, "Initializing"), nil},
		{"the last replica is here", func(o *overview.Overview) {
			o.Storage.Volumes[0].Healthy, o.Storage.Volumes[0].Robustness = 1, "Degraded"
		}, []string{"bad LastReplica v"}},
		{"the last replica is elsewhere", func(o *overview.Overview) {
			o.Storage.Volumes[0].Healthy, o.Storage.Volumes[0].Robustness, o.Storage.Volumes[0].Here = 1, "Degraded", false
		}, []string{"warn VolumeDegraded v"}},
		{"a volume that should have one replica", func(o *overview.Overview) { o.Storage.Volumes[0].Healthy, o.Storage.Volumes[0].Replicas = 1, 1 }, nil},
		{"no replica is left", func(o *overview.Overview) { o.Storage.Volumes[0].Robustness = "Faulted" }, []string{"bad VolumeFaulted v"}},
		{"Longhorn does not work", func(o *overview.Overview) { o.Storage.Health = "Failed" }, []string{"bad StorageUnhealthy"}},
		{"a reservation is not reached", func(o *overview.Overview) {
			o.Storage.Settings = []overview.StorageSetting{{Name: "DiskReservation", StorageLevel: types.StorageLevel{Kept: true, Why: "w", Since: ago(time.Hour)}}}
		}, []string{"warn LonghornSetting DiskReservation"}},
		{"a setting that another node keeps", func(o *overview.Overview) {
			o.Storage.Settings = []overview.StorageSetting{{Name: "DrainPolicy", StorageLevel: types.StorageLevel{Why: "w", Since: ago(time.Hour)}}}
		}, nil},
		{"volumes are not mounted", notMounted(types.RepairWaits), []string{"warn VolumesNotMounted"}},
		{"k3s restarts for it", notMounted(types.RepairActs), []string{"warn VolumesNotMounted"}},
		{"k3s cannot be restarted for it", notMounted(types.RepairRefused), []string{"bad VolumesNotMounted"}},
		{"restarts of k3s did not help", notMounted(types.RepairGaveUp), []string{"bad VolumesNotMounted"}},
		{"an application is down", repair(types.RepairWaits, time.Hour, "w"), []string{"bad AppDown cam"}},
		{"an application is down while workloads are disabled", func(o *overview.Overview) {
			repair(types.RepairWaits, time.Hour, "w")(o)
			o.Workloads = types.WorkloadsStatus{Phase: types.WorkloadsDisabled, Since: ago(time.Hour)}
		}, nil},
		{"an application is down, and workloads were just enabled", func(o *overview.Overview) {
			repair(types.RepairWaits, time.Hour, "w")(o)
			o.Workloads = types.WorkloadsStatus{Phase: types.WorkloadsEnabled, Since: ago(time.Minute)}
		}, nil},
		{"an application is down, and workloads were enabled long ago", func(o *overview.Overview) {
			repair(types.RepairWaits, time.Hour, "w")(o)
			o.Workloads = types.WorkloadsStatus{Phase: types.WorkloadsEnabled, Since: ago(time.Hour)}
		}, []string{"bad AppDown cam"}},
		{"an application starts", repair(types.RepairWaits, time.Minute, "w"), nil},
		{"an application is switched off", func(o *overview.Overview) {
			repair(types.RepairWell, time.Hour, "")(o)
			o.Apps.List[0].Activate = false
		}, nil},
		{"a repair is refused", repair(types.RepairRefused, time.Second, "w"), []string{"bad AppRepairRefused cam"}},
		{"a repair was given up", repair(types.RepairGaveUp, time.Hour, "w"), []string{"bad AppRepairGaveUp cam"}},
		{"no node takes it", repair(types.RepairWaits, time.Hour, "The scheduler finds no node for it: 0/3"), []string{"bad AppNotPlaceable cam"}},
		{"it runs and waits to come home", func(o *overview.Overview) {
			repair(types.RepairWaits, time.Hour, "w")(o)
			o.Apps.List[0].State = "RunningState"
		}, []string{"warn AppWaits cam"}},
		{"it ends again and again", func(o *overview.Overview) { o.Apps.List[0].Pods = []types.KubePodInfo{{Reason: "CrashLoopBackOff"}} }, []string{"bad AppRestarts cam"}},
		{"the cluster is out of view", func(o *overview.Overview) { o.Apps.List[0].State = "APIUnreachable" }, nil},
		{"a certificate ends soon", condition(types.StateClientCertificate, types.ConditionFalse, ago(-24*time.Hour)), []string{"warn CertificateEnds ClientCertificateValid"}},
		{"a certificate has ended", condition(types.StateCACertificate, types.ConditionFalse, ago(time.Hour)), []string{"bad CertificateEnds CACertificateValid"}},
		{"an authority expires in less than two years", authority(8*365*24*time.Hour, 2*365*24*time.Hour), []string{"warn AuthorityExpires k3s-CA"}},
		{"an authority expires in half a year", authority(180*24*time.Hour, 8*365*24*time.Hour), []string{"warn AuthorityExpires CA"}},
		{"an authority expires in more than two years", authority(2*365*24*time.Hour+time.Second, 8*365*24*time.Hour), nil},
		{"an authority expires, says an agent that is dead", func(o *overview.Overview) {
			authority(time.Hour, time.Hour)(o)
			o.Agent.Runs = false
		}, []string{"bad AgentDead"}},
		{"the clock is off", condition(types.StateClock, types.ConditionFalse, time.Time{}), []string{"bad ClockOff ClockInStep"}},
		{"another version", condition(types.StateVersion, types.ConditionFalse, time.Time{}), []string{"warn VersionUnexpected VersionAsExpected"}},
		{"other labels", condition(types.StateLabels, types.ConditionFalse, time.Time{}), []string{"warn LabelsChanged LabelsAsExpected"}},
		{"a permission is missing", condition(types.StatePermissions, types.ConditionFalse, time.Time{}), []string{"warn PermissionMissing PermissionsGranted"}},
		{"other members", condition(types.StateMembers, types.ConditionFalse, time.Time{}), []string{"warn MembersDiffer MembersAsConfigured"}},
		{"a disk is nearly full", func(o *overview.Overview) { o.Disks[0].Free = 4 << 30 }, []string{"warn DiskFull /run"}},
		{"a disk is full", func(o *overview.Overview) { o.Disks[0].Free = 1 << 20 }, []string{"bad DiskFull /run"}},
		{"a small disk is not full for its size", func(o *overview.Overview) { o.Disks[0] = overview.Disk{Path: "/run", Size: 100 << 20, Free: 40 << 20} }, nil},
		{"a file cannot be read", func(o *overview.Overview) { o.Unreadable = []overview.Source{{File: "/f", Why: "w"}} }, []string{"warn Unreadable /f"}},
		{"the worst comes first", func(o *overview.Overview) {
			o.Drain.Forced, o.Apps.List[0].Repair = forceFile("/f"), &types.AppRepairStatus{Phase: types.RepairGaveUp}
		}, []string{"bad AppRepairGaveUp cam", "warn ForceFile /f"}},
	}
	seen := map[string]bool{}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := well()
			test.change(&o)
			var got []string
			for _, p := range Problems(o) {
				line := string(p.Severity) + " " + p.Rule
				if p.Subject != "" {
					line += " " + p.Subject
				}
				got = append(got, line)
				seen[p.Rule] = true
				if p.Evidence == "" || p.Remedy == "" && p.Rule != "DrainNever" && p.Rule != "LastReplica" || p.Anchor == "" {
					t.Errorf("%s lacks a sentence, a remedy or an anchor: %+v", p.Rule, p)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("problems, want -, got +:\n%s", diff)
			}
		})
	}
	for _, r := range rules() {
		if !seen[r.name] {
			t.Errorf("no row finds a problem %s", r.name)
		}
	}
}

func TestProblemsOfOneKindAreBounded(t *testing.T) {
	o := well()
	o.Nodes.List = slices.Repeat([]overview.ClusterNode{{Name: "n", Status: "NotReady"}}, 1000)
	got := Problems(o)
	if len(got) != maxEach+1 || got[maxEach].Evidence != "980 more of the same kind are not shown." {
		t.Errorf("%d problems, the last %+v", len(got), got[len(got)-1])
	}
}

func TestRemediesDoNoHarm(t *testing.T) {
	for _, test := range []struct {
		of   types.NodeStateType
		says string
	}{
		{types.StateCordon, "ask them first, then: zedkube uncordon"},
		{types.StateCACertificate, "rotate-ca --path=DIR"},
		{types.StateClientCertificate, "k3s renews its certificates when it starts"},
		{types.StateServerCertificate, "k3s renews its certificates when it starts"},
		{types.StateK3sCertificates, "k3s renews its certificates when it starts"},
	} {
		o := well()
		o.Conditions.List = []types.NodeStateCondition{{Type: test.of, Status: types.ConditionFalse, Since: ago(time.Hour), Message: "M."}}
		if got := Problems(o); len(got) != 1 || !strings.Contains(got[0].Remedy, test.says) {
			t.Errorf("%s: it does not say %q: %+v", test.of, test.says, got)
		}
	}
}

func TestWhatIsSaidOfAnOverrideOfK3s(t *testing.T) {
	refused := types.K3sOverrideNotes{{Why: "it is not YAML"}, {Option: "line 3", Why: "w"}}
	for want, s := range map[string]types.K3sOverrideStatus{
		"is refused, and k3s goes on with the last one that was accepted: it is not YAML; line 3: w.": {Sum: "a", InForce: "b", Refused: refused},
		"is refused, and k3s goes on without one: it is not YAML":                                     {Refused: refused},
		"is refused, and k3s goes on without one: it is not YAML; line 3: w.":                         {Sum: "a", InForce: types.K3sNoOverride, Refused: refused},
		"is refused; k3s goes on with it all the same, since":                                         {Sum: "a", InForce: "a", Refused: refused},
		"is accepted, and probably has a mistake: disable: w.":                                        {Sum: "a", InForce: "a", Accepted: true, Warnings: types.K3sOverrideNotes{{Option: "disable", Why: "w"}}},
	} {
		o := well()
		s.Since = ago(time.Hour)
		o.Override = &s
		if p := Problems(o); len(p) != 1 || !strings.Contains(p[0].Evidence, want) || !p[0].Since.Equal(s.Since) {
			t.Errorf("%+v, want %q", p, want)
		}
	}
}

func lifecycle(phase types.KubeLifecyclePhase) func(*overview.Overview) {
	return func(o *overview.Overview) {
		o.Change = &types.KubeLifecycle{Phase: phase, From: "v1.34.2+k3s1", To: "v1.34.4+k3s1", Reason: "A reason."}
	}
}

// container is a condition of EVE's kube container.
func container(phase types.ClusterPhase, of types.ClusterConditionType, reason string) func(*overview.Overview) {
	return func(o *overview.Overview) {
		o.Cluster.Object.Phase = phase
		o.Cluster.Object.Conditions = []types.ClusterCondition{{Type: of, Status: types.ConditionFalse, Reason: reason, Message: "A message."}}
	}
}

func forceFile(path string) []overview.ForceFile {
	return []overview.ForceFile{{Source: overview.Source{File: path}, Says: "COMPLETE"}}
}
