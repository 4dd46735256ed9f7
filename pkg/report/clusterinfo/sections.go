package clusterinfo

import (
	"cmp"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

// made says from which tables each section is made. Storage stays true without
// the snapshots, but for AllocatedBytes.
func made() map[string][]string {
	return map[string][]string{
		types.SectionNodes:      {types.TableNodes},
		types.SectionAppPods:    {types.TableAppPods},
		types.SectionAppVMIs:    {types.TableVMIs},
		types.SectionNamespaces: {types.TablePodCounts, types.TableAppPods}, // the counts leave those out
		types.SectionStorage: {
			types.TableClaims, types.TableLonghornVolumes, types.TableLonghornEngines, types.TableLonghornReplicas,
		},
		types.SectionAllocated:     {types.TableLonghornSnapshots},
		types.SectionStorageHealth: {types.TableLonghornDaemons, types.TableLonghornNodes},
	}
}

// view is how well the tables of one section are seen.
type view struct {
	stale  time.Time // zero while all of them are whole
	why    string
	absent bool // the cluster lacks what it is about
}

func (v view) whole() bool { return v.stale.IsZero() }

// sources is how well each section can be made now.
func sources(f facts) map[string]view {
	out := map[string]view{}
	for name, tables := range made() {
		v := view{absent: true}
		for _, table := range tables {
			t, kept := f.tables[table]
			if !kept {
				t = types.TableStatus{Since: f.since, Why: "the list of " + table + " has not been requested yet"}
			}
			if !t.Whole && (v.stale.IsZero() || t.Since.Before(v.stale)) {
				v.stale, v.why = t.Since.UTC(), t.Why
			}
			// Claims are Kubernetes' own and always there.
			v.absent = v.absent && (t.Whole && t.Absent || table == types.TableClaims || table == types.TableLonghornDaemons)
		}
		out[name] = v
	}
	return out
}

// steady leaves whole only the tables that have been so all the time: where this
// node no longer leads, their rows go after what was said of them.
func steady(before, after map[string]types.TableStatus) {
	for name, was := range before {
		switch now, kept := after[name]; {
		case kept && now.Since.Equal(was.Since):
		case kept && !now.Whole:
			before[name] = now
		default:
			delete(before, name)
		}
	}
}

func whole(views map[string]view) bool {
	for _, v := range views {
		if !v.whole() {
			return false
		}
	}
	return true
}

// sections tells of each section of the report, and of those of other reports,
// by name.
func sections(f facts, views map[string]view, m memory) []types.ReportSection {
	out := slices.Clone(f.others)
	for name, v := range views {
		s := types.ReportSection{Name: name, StaleSince: v.stale, Why: v.why, Absent: v.absent}
		switch name {
		case types.SectionNodes:
			of(&s, m.nodes)
		case types.SectionAppPods:
			of(&s, m.pods)
		case types.SectionAppVMIs:
			of(&s, m.vmis)
		case types.SectionStorage:
			of(&s, m.volumes)
		case types.SectionNamespaces:
			of(&s, m.namespaces)
		case types.SectionStorageHealth:
			s.Known, s.Updated = m.health.known, m.health.since
		case types.SectionAllocated:
			s.Known = v.whole() && m.volumes.known
			if v.whole() && !m.volumes.known { // there is nothing yet that could have them
				s.StaleSince, s.Why = views[types.SectionStorage].stale, views[types.SectionStorage].why
			}
		}
		out = append(out, s)
	}
	return sorted(out)
}

// unreported says of the sections of a report that is not made yet, whatever is
// seen by now, that they are none or of a former run.
func unreported(list []types.ReportSection, since time.Time, why string) {
	for i, s := range list {
		if _, ok := made()[s.Name]; !ok {
			continue
		}
		list[i].Known = false
		if s.StaleSince.IsZero() {
			list[i].StaleSince, list[i].Why = since, why
		}
	}
}

// stillLeft has sections that are as a former run left them be as old as that, and
// returns which those are.
func stillLeft(left map[string]time.Time, list []types.ReportSection) map[string]time.Time {
	still := map[string]time.Time{}
	for i, s := range list {
		since, was := left[s.Name]
		if !was || s.Known || s.StaleSince.IsZero() {
			continue
		}
		still[s.Name] = since
		if since.Before(s.StaleSince) {
			list[i].StaleSince = since
		}
	}
	return still
}

func of[T any](s *types.ReportSection, l list[T]) {
	s.Known, s.Updated, s.Total, s.Truncated, s.Without = l.known, l.updated, len(l.all), l.left(), l.without
}

func sorted(list []types.ReportSection) []types.ReportSection {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b types.ReportSection) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
