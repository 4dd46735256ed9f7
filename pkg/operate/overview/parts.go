package overview

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/forcefile"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

// kept reads a persistent value, or the one before it where it is gone or
// damaged.
func kept[T any](r *reader, topic string) (T, Source) {
	file := global(filepath.Join(types.PathKeptTopics, self, topic))
	v, t := one[T](r, file)
	if t.Known() {
		return v, t
	}
	if before, at, err := ReadFile[T](r.path(file + ".bak")); err == nil {
		return before, Source{File: file + ".bak", At: UTC(at)}
	}
	return v, t
}

func (r *reader) node() {
	info, t := one[types.EdgeNodeInfo](r, global(plain("zedagent", "EdgeNodeInfo")))
	n := Node{Source: t}
	if t.Known() {
		n.Name, n.UUID, n.DeviceName = info.NodeName(), id(info.DeviceID), info.DeviceName
	}
	raw, _, err := content(r.path(types.PathHypervisor))
	if kind := strings.TrimSpace(string(raw)); err == nil && !types.HypervisorRunsKubernetes(kind) {
		n.NoCluster = "This device's hypervisor is " + kind + ", which does not run Kubernetes."
	}
	r.o.Node = n
}

// id is a UUID for people, "" for none.
func id(u uuid.UUID) string {
	if u == uuid.Nil {
		return ""
	}
	return u.String()
}

func (r *reader) cluster() {
	s, t := one[types.EdgeNodeClusterStatus](r, global(plain(self, "EdgeNodeClusterStatus")))
	c := Cluster{Source: t}
	if t.Known() {
		c.Name, c.ID, c.Interface = s.ClusterName, id(s.ClusterID.UUID), s.ClusterInterface
		if s.ClusterIPPrefix != nil && len(s.ClusterIPPrefix.IP) > 0 {
			c.Address = s.ClusterIPPrefix.String()
		}
		c.AddressReady, c.Role = s.ClusterIPIsReady, role(s)
		if len(s.JoinServerIP) > 0 && !s.JoinServerIP.IsUnspecified() {
			c.JoinServer = s.JoinServerIP.String()
		}
		c.Error, c.ErrorSince = s.Error.Error, s.Error.ErrorTime
		c.LBError, c.LBErrorSince = s.LBConfigError.Error, s.LBConfigError.ErrorTime
	}
	cfg, source := one[types.EdgeNodeClusterConfig](r, global(plain("zedagent", "EdgeNodeClusterConfig")))
	c.Wanted = source.Known() && cfg.Valid && cfg.Lack() == ""
	m, source := kept[types.ClusterMembership](r, "ClusterMembership")
	c.Membership = Membership{Source: source, State: m.State, Reason: m.Reason, InvalidSince: m.InvalidSince, ByOperator: m.ByOperator}
	if m.Config != nil && m.Config.ClusterType != types.ClusterTypeNone {
		c.Type = m.Config.ClusterType.String()
	}
	members, source := one[types.ClusterMembers](r, global(plain(self, "ClusterMembers")))
	c.Members = Members{Source: source, Stale: first(members.Stale), TieBreaker: members.TieBreaker, Hindered: members.Why, Repairing: members.Repairing}
	for _, u := range first(members.Masters) {
		c.Members.Masters = append(c.Members.Masters, u.String())
	}
	r.o.Cluster = c
}

func role(s types.EdgeNodeClusterStatus) string {
	switch {
	case s.BootstrapNode:
		return "bootstrap"
	case s.IsWorkerNode:
		return "worker"
	}
	return "server"
}

func (r *reader) drain() {
	p, t := one[types.NodeDrainProgress](r, global(plain(self, "NodeDrainProgress")))
	d := Drain{Source: t, Forced: forceFiles(r.root, p.Journal.Spent)}
	if t.Known() {
		p.Journal = types.NodeDrainJournal{} // for the agent alone
		p.Blockers, p.Volumes, p.Stranded = first(p.Blockers), first(p.Volumes), first(p.Stranded)
		d.Progress = &p
	}
	if s, source := one[types.NodeDrainStatus](r, global(plain(self, "NodeDrainStatus"))); source.Known() {
		d.Status, d.RequestedBy = s.Status.String(), s.RequestedBy.String()
	}
	if req, source := one[types.NodeDrainRequest](r, global(plain(commands, "NodeDrainRequest"))); source.Known() {
		d.Request = &req
	}
	if source, there := r.present(types.PathFaultMarker); there {
		d.Held = &source
	}
	r.o.Drain = d
}

// ForceFiles are the force files that are present below root, and which of them count.
func ForceFiles(root string) []ForceFile {
	r := reader{root: root, left: maxRead}
	p, _ := one[types.NodeDrainProgress](&r, global(plain(self, "NodeDrainProgress")))
	return forceFiles(root, p.Journal.Spent)
}

// forceFiles reads them as the agent does; spent are those that have had their effect.
func forceFiles(root string, spent map[string]string) (list []ForceFile) {
	r := reader{root: root}
	for _, file := range []string{types.PathForceDrain, types.PathForceDrain2} {
		source, there := r.present(file)
		if !there {
			continue
		}
		f := ForceFile{Source: source}
		switch said, err := forcefile.Read(r.path(file)); {
		case errors.Is(err, fs.ErrNotExist):
			f.Ignored = "it is empty"
		case err != nil:
			f.Ignored = strings.TrimPrefix(strings.ReplaceAll(err.Error(), r.path(file), file), "force file "+file+": ")
		case spent[r.path(file)] == said.Mark:
			f.Ignored = "it has had its effect, and could not be removed"
		default:
			f.Says = said.Status.String()
		}
		list = append(list, f)
	}
	return list
}

func (r *reader) lease() {
	l, t := one[types.KubeLeaderElectInfo](r, global(plain(self, "KubeLeaderElectInfo")))
	r.o.Lease = Lease{
		Source: t, Leader: l.LeaderIdentity, Mine: l.IsStatsLeader, Takes: l.InLeaderElection, Running: l.ElectionRunning, Since: l.LeaderSince,
	}
	if l.LeaderIdentity == "" {
		r.o.Lease.Since = l.LatestChange
	}
}

// maxListed bounds a list of one file: a cluster has a thousand nodes and ten
// thousand pods at most.
const maxListed = 20_000

func first[T any](list []T) []T { return list[:min(len(list), maxListed)] }

func (r *reader) report() {
	h, t := one[types.KubeReportHealth](r, global(plain(self, "KubeReportHealth")))
	r.o.Report = Report{Source: t, Reports: h.Reports, Sections: first(h.Sections)}
	r.info, r.o.Report.Info = one[types.KubeClusterInfo](r, global(plain(self, "KubeClusterInfo")))
	r.info.Nodes, r.info.AppPods, r.info.AppVMIs = first(r.info.Nodes), first(r.info.AppPods), first(r.info.AppVMIs)
	r.info.Storage.Volumes = first(r.info.Storage.Volumes)
	r.o.Nodes.Source = r.o.Report.Info
	if r.o.Report.Info.Known() {
		r.o.Nodes.From = FromReport
		r.o.Nodes.List = reported(r.info.Nodes, r.o)
	}
}

func (r *reader) conditions() {
	c, t := kept[types.KubeNodeConditions](r, "KubeNodeConditions")
	r.o.Conditions = Conditions{
		Source: t, List: first(c.Conditions), Kubernetes: c.Kubernetes, KubeVirt: c.KubeVirt, Longhorn: c.Longhorn, CNI: c.CNI,
		InstalledAt: c.InstalledAt, Certificates: first(c.Certificates),
	}
}

// object adds what EVE's kube container says of itself and of its updates.
func (r *reader) object() {
	o, t := kept[types.ClusterObject](r, "ClusterObject")
	r.o.Cluster.Object = Object{Source: t, Phase: o.Status.Phase, Since: UTC(o.Status.Since), Why: o.Status.Description}
	for _, kind := range []types.ClusterConditionType{types.KubeContainerReady, types.ComponentsUpdated} {
		if c := o.Status.Of(kind); c.Type != "" {
			r.o.Cluster.Object.Conditions = append(r.o.Cluster.Object.Conditions, c)
		}
	}
	r.o.Conditions.CDI = o.Status.Components.CDI
	if l, source := one[types.KubeLifecycle](r, global(plain(self, "KubeLifecycle"))); source.Known() {
		r.o.Change = &l
	}
}

func (r *reader) override() {
	if s, source := one[types.K3sOverrideStatus](r, global(plain(self, "K3sOverrideStatus"))); source.Known() {
		r.o.Override = &s
	}
}

// api concludes how well the API server is reached: from how the own Node is seen, and where
// that is not known from what the agent could not learn. A list that is refused makes sections stale, too.
func (r *reader) api() {
	a := API{Answers: types.ConditionUnknown}
	a.Kubeconfig, _ = r.present(types.PathKubeconfig)
	own, _ := one[types.ClusterNodeStatus](r, global(plain(self, "ClusterNodeStatus")))
	unusable := slices.ContainsFunc(r.o.Conditions.List, func(c types.NodeStateCondition) bool { return c.Reason == "NoKubeconfig" }) // own stays as it was then
	stale, fresh := time.Time{}, false
	why := ""
	for _, s := range r.o.Report.Sections {
		if !slices.Contains([]string{types.SectionServices, types.SectionIngresses, types.SectionLBPool}, s.Name) { // every node has these
			continue
		}
		if s.StaleSince.IsZero() {
			fresh = fresh || s.Known
			continue
		}
		if stale.IsZero() || s.StaleSince.Before(stale) {
			stale, why = s.StaleSince, s.Why
		}
	}
	switch {
	case a.Kubeconfig.At.IsZero() && !r.o.Copied: // it is a secret: a copy has none
		a.Answers, a.Why = types.ConditionFalse, "there is no kubeconfig"
	case !r.o.Agent.Runs:
		a.Why = "the agent is not running"
	case fresh, !unusable && (own.Status == types.KubeNodeReady || own.Status == types.KubeNodeNotReady):
		a.Answers = types.ConditionTrue
	case own.Status == types.KubeNodeNotReachable:
		a.Answers, a.Since, a.Why = types.ConditionFalse, UTC(own.Since), why
	case !stale.IsZero():
		a.Answers, a.Since, a.Why = types.ConditionFalse, UTC(stale), why
	}
	r.o.API = a
}

// DisksOf are the file systems that the agent writes to, below root; err says which
// of them cannot be looked at.
func DisksOf(root string) (disks []Disk, err error) {
	for _, path := range []string{"/run", "/persist"} {
		var s syscall.Statfs_t
		if serr := syscall.Statfs((&reader{root: root}).path(path), &s); serr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", path, serr))
		}
		if s.Blocks == 0 {
			continue
		}
		size := uint64(max(s.Bsize, 0))
		disks = append(disks, Disk{Path: path, Size: s.Blocks * size, Free: s.Bavail * size, Files: s.Files, FreeFiles: s.Ffree})
	}
	return disks, err
}

// SilentAgent is how old an agent's last heartbeat may be: it has one
// every ten seconds.
const SilentAgent = time.Minute

// AgentOf tells a running agent from the leftovers of one, by its pid file and its
// touch file, which only a working agent renews. In a copy the latter counts alone:
// the process ran on another device.
func AgentOf(pidFile, touchFile string, copied bool, now time.Time) Agent {
	a := Agent{}
	if info, err := os.Stat(touchFile); err == nil {
		a.Seen = UTC(info.ModTime())
	}
	never := "the copy contains no heartbeat of it"
	if !copied {
		if a.PID, a.Why = process(pidFile); a.Why != "" {
			return a
		}
		never = "it has had no heartbeat yet"
	}
	switch {
	case a.Seen.IsZero():
		a.Why = never
	case now.Sub(a.Seen) > SilentAgent:
		a.Why, a.Hung = "its last heartbeat was "+since(a.Seen, now), !copied
	default:
		a.Runs = true
	}
	return a
}

// process is the one that a pid file names, 0 for none; why says that it does not run.
func process(pidFile string) (pid int, why string) {
	raw, err := safefile.Read(pidFile, safefile.Small)
	if err != nil {
		return 0, "it has no pid file " + pidFile
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || pid <= 0 {
		return 0, "its pid file " + pidFile + " contains no number"
	}
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		why = fmt.Sprintf("process %d is gone", pid)
	}
	return pid, why
}

func since(at, now time.Time) string {
	return at.UTC().Format("2006-01-02 15:04:05Z") + ", " + Span(now.Sub(at), " seconds", " minutes", " hours", " days") + " ago"
}

// Span is a duration for people, in one of four units as they are to be written.
func Span(d time.Duration, seconds, minutes, hours, days string) string {
	d = d.Abs()
	switch {
	case d < 2*time.Minute:
		return fmt.Sprint(int64(d/time.Second), seconds)
	case d < 2*time.Hour:
		return fmt.Sprint(int64(d/time.Minute), minutes)
	case d < 48*time.Hour:
		return fmt.Sprint(int64(d/time.Hour), hours)
	}
	return fmt.Sprint(int64(d/(24*time.Hour)), days)
}
