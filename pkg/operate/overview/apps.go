package overview

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// appConfig is an application as zedagent has it, with the ports that are
// mapped to it, which no component needs.
type appConfig struct {
	types.AppInstanceConfig
	AppNetAdapterList []struct {
		ACLs []struct {
			Matches []struct{ Type, Value string }
			Actions []struct {
				PortMap    bool
				TargetPort int
			}
		}
	}
}

func (r *reader) apps() {
	configs := many[appConfig](r, "zedagent", "AppInstanceConfig")
	statuses := byApp(r, "ENClusterAppStatus", func(s types.ENClusterAppStatus) uuid.UUID { return s.AppUUID })
	repairs := byApp(r, "AppRepairStatus", func(s types.AppRepairStatus) uuid.UUID { return s.AppUUID })
	consoles := byApp(r, "AppConsoleStatus", func(s types.AppConsoleStatus) uuid.UUID { return s.AppUUID })
	r.o.Workloads, _ = kept[types.WorkloadsStatus](r, "WorkloadsStatus")
	r.o.Apps.File = plain("zedagent", "AppInstanceConfig")
	for _, row := range configs {
		if row.source.At.After(r.o.Apps.At) {
			r.o.Apps.At = row.source.At
		}
		c := row.v
		u := c.UUIDandVersion.UUID
		a := App{
			Name: c.DisplayName, UUID: u.String(), KubeName: c.KubeName(), VM: c.IsVMI(), Activate: c.Activate,
			Designated: c.IsDesignatedNodeID, Affinity: c.AffinityType.String(), Ports: c.ports(),
		}
		for _, ref := range c.VolumeRefConfigList {
			a.VolumeIDs = append(a.VolumeIDs, ref.VolumeID.String())
		}
		if s, ok := statuses[u]; ok {
			a.State, a.StateAt, a.Here = s.v.AppKubeStatus.String(), s.source.At, s.v.ScheduledOnThisNode
		}
		if s, ok := repairs[u]; ok {
			a.Repair, a.Node, a.Since = &s.v, s.v.Node, s.v.Run.Since
			// What is not seen now is not drawn as if it were.
			if n := s.v.Run.Restarts; a.State != types.AppKubeUnknown.String() && a.State != types.AppKubeAPIUnreachable.String() && s.v.Run.Pod != "" {
				a.Restarts = new(uint32(min(max(n, 0), math.MaxInt32)))
			} else if s.v.Run.Pod != "" {
				a.Since = time.Time{}
			}
		}
		if s, ok := consoles[u]; ok {
			a.Console = &s.v
		}
		r.reportOn(&a, c.AppInstanceConfig)
		if a.Node == "" && a.Here {
			a.Node = r.o.Node.Name
		}
		if a.Since.IsZero() {
			a.Since = a.StateAt
		}
		r.o.Apps.List = append(r.o.Apps.List, a)
	}
	slices.SortStableFunc(r.o.Apps.List, func(a, b App) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.UUID, b.UUID)) })
}

// Down reports that an application should run, and runs nowhere. While the
// cluster is not fully known, that is unknown.
func (a App) Down() bool {
	return a.Activate && (a.State == types.AppKubeNotRunning.String() || a.State == types.AppKubeNotInCluster.String())
}

// byApp are the values of a topic of ours by application.
func byApp[T any](r *reader, topic string, of func(T) uuid.UUID) map[uuid.UUID]row[T] {
	m := map[uuid.UUID]row[T]{}
	for _, row := range many[T](r, self, topic) {
		m[of(row.v)] = row
	}
	return m
}

// reportOn adds what the report on the cluster knows of an application, on the
// node that reports.
func (r *reader) reportOn(a *App, c types.AppInstanceConfig) {
	if !r.o.Report.Info.Known() {
		return
	}
	restarts := uint32(0)
	for _, p := range r.info.AppPods {
		if !belongs(p.Name, c.KubeName(), podSuffix) {
			continue
		}
		a.Pods = append(a.Pods, p)
		restarts += p.RestartCount
		if a.Node == "" && p.Status == types.KubePodRunning {
			a.Node = p.NodeName
		}
	}
	for _, v := range r.info.AppVMIs {
		if !belongs(v.Name, c.KubeName(), vmiSuffix) {
			continue
		}
		a.VMIs = append(a.VMIs, v)
		if a.Node == "" && v.Status == types.KubeVMIRunning {
			a.Node = v.NodeName
		}
	}
	if len(a.Pods) > 0 {
		a.Restarts = &restarts
	}
}

// How much longer than its set's the name of a pod or of a machine is
// (docs/wire.md, "Names of app objects").
const (
	podSuffix = len("-abcde")
	vmiSuffix = len("abcde")
)

// belongs reports that name is that of a set with a suffix: app-1 is not app-10.
func belongs(name, set string, suffix int) bool {
	return strings.HasPrefix(name, set) && len(name) == len(set)+suffix
}

const maxPorts = 64 // bounds what is shown of an application's ports

// ports are the ports of the device that lead to the application: from->to, and
// the protocol.
func (c appConfig) ports() (list []string) {
	for _, adapter := range c.AppNetAdapterList {
		for _, acl := range adapter.ACLs {
			from, protocol := "", "any"
			for _, m := range acl.Matches {
				switch m.Type {
				case "lport":
					from = m.Value
				case "protocol":
					protocol = m.Value
				}
			}
			for _, action := range acl.Actions {
				if action.PortMap && len(list) < maxPorts {
					list = append(list, from+"->"+strconv.Itoa(action.TargetPort)+"/"+protocol)
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (r *reader) storage() {
	s, t := one[types.KubeStorageStatus](r, global(plain(self, "KubeStorageStatus")))
	r.o.Storage = Storage{Source: t}
	if t.Known() {
		r.o.Storage.Settings = []StorageSetting{
			{"DiskReservation", s.DiskReservation}, {"SnapshotJob", s.SnapshotJob}, {"DrainPolicy", s.DrainPolicy},
		}
	}
	if m, t := kept[types.MountRecovery](r, "MountRecovery"); t.Known() && m.Reason != "" {
		r.o.Storage.NotMounted = &m
	}
	if !r.o.Report.Info.Known() {
		return
	}
	r.o.Storage.Health, r.o.Storage.Since = r.info.Storage.Health.String(), UTC(r.info.Storage.TransitionTime)
}
