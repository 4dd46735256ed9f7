package clusterobject

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

type facts struct {
	now time.Time // wall clock, UTC

	membership  types.ClusterMembership
	known       bool // membership is known
	cluster     types.EdgeNodeClusterStatus
	info        types.EdgeNodeInfo
	kubeInit    types.KubeInitStatus
	hasKubeInit bool
	update      types.KubeClusterUpdateStatus
	k3s         types.K3sVersionStatus
	lifecycle   types.KubeLifecycle
	override    types.K3sOverrideStatus
	conditions  types.KubeNodeConditions
	asked       bool // an operator asks that this node leave
	progress    types.NodeDrainProgress
	journal     types.NodeDrainJournal
	peers       types.ClusterPeers
	without     types.WithoutCluster
	workloads   types.WorkloadsStatus

	nodes   map[string]types.Node
	own     types.Node
	apps    map[string]bool // that run on it
	seen    bool            // own is there
	api     types.APIStatus
	watched bool   // api is known
	cdi     string // its version, "" for unknown
	dialled dialled
	version string // of zedkube

	published types.ClusterObject
	said      types.ClusterObjectStatus // the conditions that were judged so far
}

// listed reports that nodes are what they are now.
func (f facts) listed() bool { return f.watched && f.api.Answers() && f.api.Synced }

// silent reports that the API server does not answer.
func (f facts) silent() bool { return f.watched && !f.api.Answers() }

// decide makes the object. What cannot be seen now stays as it was last seen.
func decide(f facts) types.ClusterObject {
	o := types.ClusterObject{
		APIVersion: types.ClusterAPIVersion, Kind: types.ClusterKind,
		Metadata: types.ClusterMetadata{Name: f.info.NodeName()}, Spec: spec(f),
	}
	if c := f.membership.Config; f.membership.Belongs() && c != nil {
		o.Metadata = types.ClusterMetadata{Name: cmp.Or(c.ClusterName, o.Metadata.Name), UID: c.ClusterID.UUID.String()}
		if was := f.published.Metadata.UID; was != "" && was != o.Metadata.UID {
			f.published.Status = moved(f)
		}
	}
	o.Status = f.published.Status
	s := &o.Status
	n := f.conditions
	s.KubernetesVersion = cmp.Or(n.Kubernetes, s.KubernetesVersion)
	kubelet := ""
	if f.seen {
		kubelet = f.own.KubeletVersion
	}
	s.Components = types.ClusterComponents{
		Kubelet: cmp.Or(kubelet, f.k3s.Running, s.Components.Kubelet), KubeVirt: n.KubeVirt, Longhorn: n.Longhorn, CNI: n.CNI,
		CDI: cmp.Or(f.cdi, s.Components.CDI), Zedkube: f.version,
	}
	s.Conditions = judged(f)
	s.AtStake = nil
	phase, why := phaseOf(f, *s)
	if phase == types.ClusterLeaving || f.without.State == types.WithoutLooking {
		s.AtStake = atStake(f)
	}
	if s.Phase != phase || s.Since.IsZero() {
		s.Phase, s.Since = phase, f.now
	}
	s.Description = why
	return o
}

// moved is what was seen of a member of one cluster that is configured for another: nothing that
// was said of its membership is true of the new one.
func moved(f facts) types.ClusterObjectStatus {
	s := f.published.Status
	s.AtStake = nil
	s.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c types.ClusterCondition) bool {
		return slices.Contains(memberConditions, c.Type)
	})
	s.Conditions = append(s.Conditions, types.ClusterCondition{
		Type: types.ClusterJoined, Status: types.ConditionUnknown, LastTransitionTime: f.now,
		Reason: reasonMoved, Message: "This device is configured for another cluster than before, and has not been seen in it yet.",
	})
	return s
}

// spec is what is declared.
func spec(f facts) types.ClusterSpec {
	s := types.ClusterSpec{Version: short(f.k3s.Wanted), ClusterType: "k3s", Leave: f.asked, Disabled: f.workloads.Off(), APIServer: types.ClusterAPIServer{CertSANs: f.override.CertSANs}}
	c := f.membership.Config
	if !f.membership.Belongs() || c == nil {
		return s
	}
	s.Role, s.Storage = "server", c.ClusterType.String()
	switch {
	case c.BootstrapNode:
		s.Role = "bootstrap"
	case c.IsWorkerNode:
		s.Role = "worker"
	}
	s.Networking.Interface = c.ClusterInterface
	if c.ClusterIPPrefix != nil {
		s.Networking.Address = c.ClusterIPPrefix.String()
	}
	if len(c.JoinServerIP) > 0 {
		s.Networking.JoinServer = c.JoinServerIP.String()
	}
	for _, lb := range c.LBInterfaces[:min(len(c.LBInterfaces), maxRanges)] {
		s.Networking.LoadBalancers = append(s.Networking.LoadBalancers, types.ClusterLBRange{Interface: lb.Interface, Prefix: lb.IPPrefix})
	}
	return s
}

// phaseOf is where the cluster stands, and why.
func phaseOf(f facts, s types.ClusterObjectStatus) (types.ClusterPhase, string) {
	member, joined := f.membership.Belongs(), s.Of(types.ClusterJoined)
	container := s.Of(types.KubeContainerReady)
	failed := container.Reason == reasonError
	never := s.KubernetesVersion == "" && s.Components.Kubelet == "" // has a cluster been seen here
	starts := container.Type != "" && container.Status != types.ConditionTrue && !f.kubeInit.AllComponentsInitialized
	was := []types.ClusterPhase{types.ClusterProvisioned, types.ClusterUpgrading, types.ClusterDisabled, types.ClusterDegraded} // then it is no installation, but a boot
	switch m := f.kubeInit.Membership; {
	case f.membership.State == types.MembershipLeaving:
		return types.ClusterLeaving, because("This node is leaving its cluster", f.membership.Reason)
	case !member && (m == types.KubeMembershipLeaving || m == types.KubeMembershipRestoring):
		return types.ClusterLeaving, "The kube container makes this device a single node again. " + container.Message
	case member && joined.Status != types.ConditionTrue && f.cluster.Error.Error != "":
		return types.ClusterFailed, because("This node cannot join", f.cluster.Error.Error)
	case failed && (f.silent() || !f.watched && f.published.Status.Phase == types.ClusterFailed || member && joined.Status != types.ConditionTrue):
		return types.ClusterFailed, container.Message
	case member && joined.Status != types.ConditionTrue:
		return types.ClusterProvisioning, firstNotTrue(s, types.ClusterDeclared, types.ClusterAddressReady, types.ClusterPeersReachable, types.ClusterJoined)
	case never && !f.hasKubeInit:
		return types.ClusterNotInitialized, s.Of(types.ControlPlaneReady).Message
	case never, starts && !slices.Contains(was, f.published.Status.Phase):
		return types.ClusterProvisioning, cmp.Or(container.Message, s.Of(types.ControlPlaneReady).Message)
	}
	if why := upgrading(f); why != "" {
		return types.ClusterUpgrading, why
	}
	if why := disabled(f.workloads); why != "" {
		return types.ClusterDisabled, why
	}
	if why := firstNotTrue(s, types.ControlPlaneReady, types.NodeReady, types.ClusterReady, types.ComponentsUpdated, types.KubeContainerReady); why != "" {
		return types.ClusterDegraded, why
	}
	if f.lifecycle.Phase == types.LifecycleStuck {
		return types.ClusterDegraded, sentence(f.lifecycle.Reason)
	}
	if declared := s.Of(types.ClusterDeclared); member && declared.Status != types.ConditionTrue {
		return types.ClusterDegraded, declared.Message
	}
	return types.ClusterProvisioned, s.Of(types.ClusterReady).Message
}

// upgrading says what is being updated, "" for nothing.
func upgrading(f facts) string {
	switch p := f.lifecycle.Phase; {
	case f.lifecycle.Kind == types.K3sRestart, f.lifecycle.Kind == types.K3sOverride: // it stays as it is
	case p == types.LifecycleChanges, p == types.LifecycleReturns: // each for 30 minutes at most
		return sentence(f.lifecycle.Reason)
	case f.updating() && !f.silent(): // components are updated through the API server
		return updateMessage(f)
	}
	if !f.listed() {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(f.nodes)) {
		switch n := f.nodes[name]; {
		case name == f.own.Name, !n.ChangesK3s():
		case n.K3s.Step == types.K3sStepReturn:
			return sentence("Node " + name + " returns from k3s " + n.K3s.To)
		case n.K3s.To != n.KubeletVersion: // a restart leaves it as it is
			return sentence("Node " + name + " changes k3s from " + n.KubeletVersion + " to " + n.K3s.To)
		}
	}
	return ""
}

// disabled says how far the workloads of the cluster are disabled or enabled again, "" while
// they are enabled.
func disabled(w types.WorkloadsStatus) string {
	what := map[types.WorkloadsPhase]string{
		types.WorkloadsDisabling: "are being disabled", types.WorkloadsDisabled: "are disabled", types.WorkloadsEnabling: "are being enabled again",
	}[w.Phase]
	if what == "" {
		return ""
	}
	if w.By != "" {
		what += ", as asked for on " + short(w.By)
	}
	what = because("The workloads of the cluster "+what, w.Reason)
	if len(w.Waits) > 0 {
		what += " " + sentence(w.Waits[0])
	}
	return what
}

// firstNotTrue is the message of the first of these conditions that is False, or of the
// first that is Unknown; "" for none.
func firstNotTrue(s types.ClusterObjectStatus, all ...types.ClusterConditionType) string {
	for _, status := range []types.ConditionStatus{types.ConditionFalse, types.ConditionUnknown} {
		for _, t := range all {
			if c := s.Of(t); c.Status == status {
				return c.Message
			}
		}
	}
	return ""
}

// atStake is what the leave may take along: of what the drain looked at, or of what this
// node remembers where it has not looked yet.
func atStake(f facts) *types.ClusterAtStake {
	m := f.membership
	alone := m.Without != nil || f.without.State == types.WithoutLooking // it leaves without the cluster
	a := &types.ClusterAtStake{ByOperator: m.ByOperator || alone, EndsCluster: alone, Volumes: []types.ClusterVolume{}, WithoutCluster: sentence(f.without.Reason)}
	if f.progress.Phase != "" {
		a.Drain = string(f.progress.Phase) + ": " + sentence(f.progress.Reason)
	}
	consent := m.Consent
	if m.Without != nil {
		consent = cmp.Or(consent, m.Without.Consent)
	}
	if consent != nil {
		a.ConsentGiven, a.EndsCluster = consent.Given, alone || consent.Ends
	}
	if a.Applications = len(f.apps); f.published.Status.AtStake != nil && !f.listed() {
		a.Applications = f.published.Status.AtStake.Applications
	}
	if f.listed() && f.seen {
		ends, _ := types.LastOf(slices.Collect(maps.Values(f.nodes)), f.own.Name)
		a.EndsCluster = a.EndsCluster || ends
	}
	var volumes []types.LeaveVolume
	switch look, config := f.journal.Look, m.Config; {
	case look != nil:
		volumes, a.OmittedVolumes, a.VolumesAsOf = look.Volumes, look.Omitted, look.At
	case config != nil && f.peers.Cluster == config.ClusterID.UUID && !f.peers.VolumesAt.IsZero():
		volumes, a.OmittedVolumes, a.VolumesAsOf = f.peers.Volumes, f.peers.Omitted, f.peers.VolumesAt
	}
	a.OmittedVolumes += max(0, len(volumes)-maxVolumes)
	for _, v := range volumes[:min(len(volumes), maxVolumes)] {
		a.Volumes = append(a.Volumes, types.ClusterVolume(v))
	}
	return a
}

// A topic's value has at most 64 KiB, base64 included, which bounds what is shown.
const (
	maxText    = 300 // bytes of a text from outside
	maxVolumes = 50
	maxRanges  = 20
)

// short is a text from outside, no longer than a sentence.
func short(text string) string {
	return phrase.Cut(strings.TrimRight(strings.ToValidUTF8(text, "?"), ". \n"), maxText)
}

// sentence is short with its full stop; "" for nothing.
func sentence(text string) string {
	if text = short(text); text == "" {
		return ""
	}
	return text + "."
}

// because is a statement with its reason, as far as there is one.
func because(what, reason string) string {
	if reason = sentence(reason); reason != "" {
		return what + ": " + reason
	}
	return what + "."
}
