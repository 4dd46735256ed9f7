package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// findStale tells of sections that stand still; where the API server is silent
// that says it all.
func findStale(o seen, tell func(types.Finding)) {
	if !o.fresh() || o.apiSilent() {
		return
	}
	var names []string
	var first types.ReportSection
	for _, s := range o.Report.Sections {
		if _, own := madeHere[s.Name]; s.Absent || !o.older(s.StaleSince, staleSection) || !own && !o.Report.Reports {
			continue
		}
		names = append(names, s.Name)
		if first.StaleSince.IsZero() || s.StaleSince.Before(first.StaleSince) {
			first = s
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	tell(warn("A permission or a kind named there is missing, or Kubernetes answers with errors.",
		"Sections of the report are stale: %s%s", strings.Join(names[:min(len(names), maxEach)], ", "), because(first.Why)).Of("", first.StaleSince))
}

// madeHere are the sections that every node makes, whether it reports or not.
var madeHere = map[string]struct{}{types.SectionServices: {}, types.SectionIngresses: {}, types.SectionLBPool: {}}

func findReportTruncated(o seen, tell func(types.Finding)) {
	for _, s := range o.Report.Sections {
		if s.Truncated > 0 {
			tell(warn("kubectl shows the rest.", "The report leaves out %d of %d entries of %s: they do not fit.", s.Truncated, s.Total, s.Name).Of(s.Name, s.Updated))
		}
	}
}

func findLeaderless(o seen, tell func(types.Finding)) {
	why, at := "", o.Lease.Since
	if c, ok := o.Conditions.Of(types.StateLeader); ok && o.fresh() {
		if c.Status != types.ConditionFalse {
			return
		}
		why, at = c.Message, c.Since
	} else if !o.Lease.Known() || o.Lease.Leader != "" || !o.belongs() || !o.older(o.Lease.At, leaderPatience) {
		return
	}
	tell(bad("Can any node reach both the controller and the API server? Repairs continue without a leader.", "No node reports for the cluster%s", because(why)).Of("", at))
}

func judgeLease(o seen) types.Finding {
	l := o.Lease
	at := ""
	if !l.Since.IsZero() {
		at = " since " + l.Since.UTC().Format(time.RFC3339)
	}
	if !o.fresh() {
		return unknown("The agent is not running: who reports is not known.")
	}
	if f, is := o.first(findLeaderless); is {
		return f
	}
	switch {
	case !l.Known():
		return unknown("The agent has not published who reports.")
	case l.Leader == "" && !l.Running:
		return unknown("This node does not take part in the election and knows no holder.")
	case l.Leader == "":
		return warn("a new one is elected within half a minute", "No node reports for the cluster%s.", at)
	case l.Mine:
		return ok("This node reports%s.", at)
	}
	return ok("Node %s reports%s.", l.Leader, at)
}

func rebuild(v overview.Volume) string {
	if v.Rebuilding == 0 {
		return ""
	}
	return fmt.Sprintf(", one is being rebuilt, %d %%", v.Rebuilding)
}

func findLastReplica(o seen, tell func(types.Finding)) {
	for _, v := range o.Storage.Volumes {
		if v.LastHere() {
			tell(bad("Keep this node up until another replica is healthy; make sure that Longhorn has space on another node.",
				"Volume %s has its last healthy replica on this node%s.", v.Name, rebuild(v)).Of(v.Name, time.Time{}))
		}
	}
	if p := o.Drain.Progress; p != nil && len(o.Storage.Volumes) == 0 {
		for _, v := range p.Volumes {
			if v.LastHere {
				tell(bad(v.Remedy, "Volume %s has its last healthy replica on this node%s", v.Name, because(v.Why)).Of(v.Name, v.Since))
			}
		}
	}
}

func findVolumeFaulted(o seen, tell func(types.Finding)) {
	for _, v := range o.Storage.Volumes {
		if v.Robustness == types.StorageVolumeRobustnessFaulted.String() {
			tell(bad("Bring back the nodes that have its replicas.", "Volume %s has no healthy replica: its data is unavailable.", v.Name).Of(v.Name, time.Time{}))
		}
	}
}

func findVolumeDegraded(o seen, tell func(types.Finding)) {
	for _, v := range o.Storage.Volumes {
		if v.Robustness == types.StorageVolumeRobustnessDegraded.String() && !v.LastHere() {
			tell(warn("Wait for the rebuild; if there is none, make sure that Longhorn has space on another node.",
				"Volume %s has %d of %d replicas healthy%s.", v.Name, v.Online, v.Replicas, rebuild(v)).Of(v.Name, time.Time{}))
		}
	}
}

func findStorageUnhealthy(o seen, tell func(types.Finding)) {
	if o.Storage.Health == types.ServiceStatusFailed.String() {
		tell(bad("kubectl -n longhorn-system get pods", "Longhorn is not working.").Of("", o.Storage.Since))
	}
}

func findLonghornSetting(o seen, tell func(types.Finding)) {
	for _, s := range o.Storage.Settings {
		if s.Kept && s.Why != "" && o.older(s.Since, longSetting) {
			tell(warn("Fix what it names, or change the setting at the controller.",
				"Longhorn's %s differs from the device's settings%s", s.Name, because(s.Why)).Of(s.Name, s.Since))
		}
	}
}

func findK3sOverride(o seen, tell func(types.Finding)) {
	s := o.Override
	if s == nil {
		return
	}
	what, notes := "is refused, and k3s goes on with the last one that was accepted", s.Refused
	switch {
	case s.Accepted:
		what, notes = "is accepted, and probably has a mistake", s.Warnings
	case s.InForce == "", s.InForce == types.K3sNoOverride:
		what = "is refused, and k3s goes on without one"
	case s.InForce == s.Sum:
		what = "is refused; k3s goes on with it all the same, since it was in force before it was checked"
	}
	if o.Change != nil && o.Change.Override.Failed.To != "" {
		tell(bad("Change the setting k3s.config.override at the controller, or: zedkube k3s retry", "An override of k3s failed%s", because(o.Change.Override.Failed.Why)).Of("", o.Change.Override.Failed.At))
	}
	if len(notes) > 0 {
		tell(warn("Change the setting at the controller. Every reason is in: zedkube topics zedkube/K3sOverrideStatus/global",
			"The setting k3s.config.override %s%s", what, because(notes.String())).Of("", s.Since))
	}
}

// findAuthority finds the first authority of k3s to expire, two years before: its rotation takes planning.
func findAuthority(o seen, tell func(types.Finding)) {
	first := types.NodeCertificate{NotAfter: o.ReadAt.Add(types.AuthorityDueWithin + 1)}
	for _, c := range o.Conditions.Certificates {
		if (c.Name == "CA" || c.Name == "k3s-CA") && c.NotAfter.Before(first.NotAfter) {
			first = c
		}
	}
	if first.Name != "" && o.fresh() {
		tell(warn(renewCA, "An authority of k3s expires on %s, and k3s never renews it", first.NotAfter.Format(time.DateOnly)).Of(first.Name, time.Time{}))
	}
}

// findK3sChange finds a change of k3s that does not go on by itself. That one waits, or is
// refused, is a condition.
func findK3sChange(o seen, tell func(types.Finding)) {
	const see = "See zedkube topics zedkube/KubeLifecycle."
	switch c := o.Change; {
	case c == nil || !o.fresh():
	case c.Phase == types.LifecycleStuck:
		tell(bad(see, "The change of k3s is stuck%s", because(c.Reason)).Of("", c.Since))
	case c.Phase == types.LifecycleFailed:
		tell(warn("Find the cause, then change the setting k3s.version, or: zedkube k3s release "+c.To, "k3s did not change, and runs %s again%s", c.From, because(c.Reason)).Of("", c.Since))
	}
}

// findKubeContainer finds what EVE's kube container says of itself and of its updates.
func findKubeContainer(o seen, tell func(types.Finding)) {
	for _, c := range o.Cluster.Object.Conditions {
		switch {
		case !o.fresh():
		case c.Reason == types.ComponentUpdateFailed:
			tell(warn("Look into the log of the kube container. An EVE with another KubeVersion tries again.", "%s", c.Message).Of(string(c.Type), c.LastTransitionTime))
		case c.Reason == types.KubeContainerError && o.Cluster.Object.Phase == types.ClusterFailed:
			tell(bad("Look into the log of the kube container.", "%s", c.Message).Of(string(c.Type), c.LastTransitionTime))
		case c.Reason == types.KubeContainerError:
			tell(warn("Look into the log of the kube container.", "%s", c.Message).Of(string(c.Type), c.LastTransitionTime))
		}
	}
}

// conditionRules tell of conditions that are False, but those that other rules
// use for what they find.
func conditionRules() []rule {
	of := func(name string, severity types.Severity, what, remedy string, states ...types.NodeStateType) rule {
		return rule{name, anchorOutside, func(o seen, tell func(types.Finding)) {
			for _, t := range states {
				c, ok := o.Conditions.Of(t)
				if !ok || c.Status != types.ConditionFalse || !o.fresh() {
					continue
				}
				f := types.Finding{Severity: severity, Evidence: what + because(cmp.Or(c.Message, c.Reason)), Remedy: remedy}
				if c.ExpiresAt.After(o.ReadAt) {
					f.Severity = types.SeverityWarn
				}
				if t == types.StateCACertificate {
					f.Remedy = renewCA
				}
				tell(f.Of(string(t), c.Since))
			}
		}}
	}
	permissions := of("PermissionMissing", types.SeverityWarn, "zedkube lacks a permission in the cluster", "kubectl apply -f deploy/rbac.yaml, as an administrator.", types.StatePermissions)
	permissions.anchor = anchorPermissions
	return []rule{
		permissions,
		of("CertificateEnds", types.SeverityBad, "A certificate expires soon or has expired", renewCertificate,
			types.StateClientCertificate, types.StateCACertificate, types.StateServerCertificate, types.StateK3sCertificates),
		of("ClockOff", types.SeverityBad, "The clock of this device differs from the cluster's", "Look at the device's NTP servers: Leases, certificates and etcd depend on it.", types.StateClock),
		of("VersionUnexpected", types.SeverityWarn, "Kubernetes does not run the expected version", "Is an update in progress? zedkube nodes shows the version of each node.", types.StateVersion),
		of("LabelsChanged", types.SeverityWarn, "Labels of this node differ from those that EVE sets", "Restore them; the message names them.", types.StateLabels),
		of("MembersDiffer", types.SeverityWarn, "The cluster's members differ from the controller's configuration", "It resolves by itself; zedkube status shows what prevents it.", types.StateMembers),
	}
}

// judgeConditions repeats what no other check looks at.
func judgeConditions(o seen) types.Finding {
	if !o.Conditions.Known() {
		return unknown("The agent has published none.")
	}
	all := ok("The agent knows of no problem.")
	if !o.fresh() {
		all = unknown("The agent is not running: it knew of no problem when it last ran.")
	}
	var wrong []string
	for _, x := range o.Conditions.List {
		if x.Status == types.ConditionFalse {
			wrong = append(wrong, fmt.Sprintf("%s since %s: %s", x.Type, x.Since.UTC().Format(time.RFC3339), cmp.Or(x.Message, x.Reason)))
		}
	}
	if len(wrong) > 0 {
		return warn("zedkube status says what to do about each", "%s", strings.Join(wrong, " "))
	}
	return all
}

const noNode = "The scheduler finds no node" // how a repair begins to say that the scheduler finds no node

func repairing(a overview.App, in types.RepairPhase) bool {
	return a.Repair != nil && a.Repair.Phase == in
}

func reason(a overview.App) string {
	if a.Repair == nil {
		return ""
	}
	return a.Repair.Reason
}

// unplaced reports that the scheduler finds no node, and since when.
func unplaced(a overview.App) (time.Time, bool) {
	for _, p := range a.Pods {
		if p.Status == types.KubePodPending && p.Reason == "Unschedulable" {
			return p.CreationTimestamp.Time(), true
		}
	}
	if a.Down() && strings.HasPrefix(reason(a), noNode) {
		return a.Repair.Since, true
	}
	return time.Time{}, false
}

func findNotMounted(o seen, tell func(types.Finding)) {
	switch m := o.Storage.NotMounted; {
	case m == nil:
	case m.Phase == types.RepairRefused || m.Phase == types.RepairGaveUp:
		tell(bad("Restart k3s, or reboot the device: zedkube drain request, then reboot.", "%s", m.Reason).Of("", m.Since))
	default:
		tell(warn("Nothing yet: the message says what it waits for.", "%s", m.Reason).Of("", m.Since))
	}
}

// findAppRepair looks for applications whose repair has ended in that phase. The remedy
// names the application's UUID.
func findAppRepair(in types.RepairPhase, what, remedy string) find {
	return func(o seen, tell func(types.Finding)) {
		for _, a := range o.Apps.List {
			if repairing(a, in) && a.Repair.Act != types.ActRestart { // of which findNotMounted tells
				tell(bad(fmt.Sprintf(remedy, a.UUID), "Application %s %s%s", a.Name, what, because(a.Repair.Reason)).Of(a.Name, a.Repair.Since))
			}
		}
	}
}

func findAppNotPlaceable(o seen, tell func(types.Finding)) {
	for _, a := range o.Apps.List {
		if at, ok := unplaced(a); ok && a.Activate && o.older(at, startPatience) {
			tell(bad("Free resources, or bring back the node that it must run on: kubectl -n eve-kube-app describe pod.",
				"No node can run application %s%s", a.Name, because(reason(a))).Of(a.Name, at))
		}
	}
}

// findAppDown looks for applications that should run. None should while workloads are disabled,
// and when they are enabled again each has to start.
func findAppDown(o seen, tell func(types.Finding)) {
	if age, known := o.Age(o.Workloads.Since); o.Workloads.Off() || known && age < startPatience {
		return
	}
	for _, a := range o.Apps.List {
		_, explained := unplaced(a)
		explained = explained || repairing(a, types.RepairRefused) || repairing(a, types.RepairGaveUp)
		if a.Down() && o.older(a.Since, startPatience) && !explained {
			tell(bad("zedkube apps "+a.UUID+" shows what is known about it.", "Application %s is not running%s", a.Name, because(reason(a))).Of(a.Name, a.Since))
		}
	}
}

func findAppWaits(o seen, tell func(types.Finding)) {
	for _, a := range o.Apps.List {
		if repairing(a, types.RepairWaits) && !a.Down() && o.older(a.Repair.Since, repairPatience) {
			tell(warn("Nothing yet: the message says what it waits for.", "Application %s waits%s", a.Name, because(a.Repair.Reason)).Of(a.Name, a.Repair.Since))
		}
	}
}

func findAppRestarts(o seen, tell func(types.Finding)) {
	for _, a := range o.Apps.List {
		for _, p := range a.Pods {
			if p.Reason == "CrashLoopBackOff" {
				tell(bad("zedkube logs "+a.UUID+" --previous", "Application %s crashes repeatedly: %s.", a.Name, phrase.Counted(int(p.RestartCount), "restart")).Of(a.Name, p.RestartTimestamp.Time()))
				break
			}
		}
	}
}
