// Package health judges this node and its cluster, by one registry of rules on what
// lies on the device (package overview), and by checks that ask more: files,
// sockets, the API server, other nodes. What cannot be known is unknown, not bad.
package health

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// Headings of docs/operations.md, docs/runbook.md and docs/files.md.
const (
	anchorAgent       = "When the agent is not running"
	anchorAPI         = "When the API server is unreachable"
	anchorJoining     = "Joining a cluster"
	anchorLeaving     = "Leaving a cluster"
	anchorMembers     = "Members and the tie-breaker"
	anchorDrain       = "What blocks the drain"
	anchorPhases      = "The phases: NodeDrainProgress"
	anchorCordon      = "Whose cordon"
	anchorForce       = "The force file"
	anchorMarker      = "The fault marker"
	anchorLeader      = "Who reports for the cluster"
	anchorReport      = "The cluster's report"
	anchorStorage     = "Volumes"
	anchorLonghorn    = "Longhorn's settings"
	anchorApps        = "Applications"
	anchorMounts      = "Volumes that are not mounted"
	anchorOverride    = "The settings of k3s"
	anchorVersion     = "The version of k3s"
	anchorObject      = "The cluster as one object"
	anchorOutside     = "Certificates and outside changes"
	anchorCA          = "Rotating the CA"
	anchorPermissions = "What zedkube may do in the cluster"
	anchorFiles       = "Files that cannot be read, full disks"
)

// How long something may last before it is a problem.
const (
	startPatience  = 3 * time.Minute  // an application starts, moves
	repairPatience = 5 * time.Minute  // problems that resolve themselves have done so by then
	leaderPatience = time.Minute      // another one follows within 35 s
	staleSection   = 2 * time.Minute  // one lost watch is no news
	longGates      = time.Hour        // for another node's turn
	longSetting    = 10 * time.Minute // between two tries, at most
)

const maxEach = 20 // bounds the problems of one name: beyond it they are counted

type find func(o seen, tell func(types.Finding))

type rule struct {
	name   string
	anchor string
	find   find
}

// rules are in the order in which problems of the same severity are told: what
// explains others comes first.
func rules() []rule {
	return slices.Concat([]rule{
		{"AgentDead", anchorAgent, findAgentDead},
		{"AgentHung", anchorAgent, findAgentHung},
		{"NoKubeconfig", anchorAPI, findNoKubeconfig},
		{"APISilent", anchorAPI, findAPISilent},
		{"NotAMember", anchorJoining, findNotAMember},
		{"MembershipDoubtful", anchorLeaving, findMembershipDoubtful},
		{"Leaving", anchorLeaving, findLeaving},
		{"ClusterConfigBad", anchorJoining, findClusterConfigBad},
		{"AddressNotReady", anchorJoining, findAddressNotReady},
		{"NodeNotReady", anchorAPI, findNodes},
		{"MembersStale", anchorMembers, findMembersStale},
		{"DrainFailed", anchorPhases, findDrainFailed},
		{"DrainNever", anchorDrain, findNever},
		{"DrainWaits", anchorDrain, findDrainWaits},
		{"CordonForeign", anchorCordon, findCordonForeign},
		{"CordonOld", anchorCordon, findCordonOld},
		{"ForceFile", anchorForce, findForceFile},
		{"FaultMarker", anchorMarker, findFaultMarker},
		{"Leaderless", anchorLeader, findLeaderless},
		{"ReportStale", anchorReport, findStale},
		{"ReportTruncated", anchorReport, findReportTruncated},
		{"LastReplica", anchorStorage, findLastReplica},
		{"VolumeFaulted", anchorStorage, findVolumeFaulted},
		{"VolumeDegraded", anchorStorage, findVolumeDegraded},
		{"StorageUnhealthy", anchorStorage, findStorageUnhealthy},
		{"LonghornSetting", anchorLonghorn, findLonghornSetting},
		{"VolumesNotMounted", anchorMounts, findNotMounted},
		{"AppRepairRefused", anchorApps, findAppRepair(types.RepairRefused, "is not running, and must not fail over automatically",
			"Bring back the node named there; zedkube apps %s shows what was seen.")},
		{"AppRepairGaveUp", anchorApps, findAppRepair(types.RepairGaveUp, "does not start, and repairs have failed",
			"zedkube apps %s shows what was seen and done; then the launcher pod's Events.")},
		{"AppNotPlaceable", anchorApps, findAppNotPlaceable},
		{"AppDown", anchorApps, findAppDown},
		{"AppWaits", anchorApps, findAppWaits},
		{"AppRestarts", anchorApps, findAppRestarts},
	}, conditionRules(), []rule{
		{"AuthorityExpires", anchorCA, findAuthority},
		{"K3sChange", anchorVersion, findK3sChange},
		{"KubeContainer", anchorObject, findKubeContainer},
		{"K3sOverride", anchorOverride, findK3sOverride},
		{"DiskFull", anchorFiles, findDiskFull},
		{"Unreadable", anchorFiles, findUnreadable},
	})
}

// Read reads the files below root, "" for the device itself, and says what is wrong.
func Read(root string, now time.Time) overview.Overview {
	return Judged(func(now time.Time) overview.Overview { return overview.Read(root, now) })(now)
}

// Judged is a look that also says what is wrong.
func Judged(look func(now time.Time) overview.Overview) func(now time.Time) overview.Overview {
	return func(now time.Time) overview.Overview {
		o := look(now)
		o.Problems = Problems(o)
		return o
	}
}

// Problems says what is wrong, the worst first.
func Problems(o overview.Overview) []types.Finding {
	found := []types.Finding{}
	for _, r := range rules() {
		var same []types.Finding
		r.find(seen{o}, func(f types.Finding) {
			f.Rule, f.Anchor, f.Since = r.name, r.anchor, overview.UTC(f.Since)
			same = append(same, f)
		})
		if more := len(same) - maxEach; more > 0 {
			hidden := same[len(same)-1].Of("", time.Time{})
			hidden.Evidence = fmt.Sprintf("%d more of the same kind are not shown.", more)
			if more == 1 {
				hidden.Evidence = "1 more of the same kind is not shown."
			}
			same = append(same[:maxEach], hidden)
		}
		found = append(found, same...)
	}
	slices.SortStableFunc(found, func(a, b types.Finding) int { return cmp.Compare(b.Severity.Rank(), a.Severity.Rank()) })
	return found
}

// seen is what the files say, as the rules look at it.
type seen struct{ overview.Overview }

// belongs reports that this device is to be treated as a member of a cluster.
func (o seen) belongs() bool {
	return types.ClusterMembership{State: o.Cluster.Membership.State}.Belongs()
}

// older reports that at is known and at least d ago.
func (o seen) older(at time.Time, d time.Duration) bool {
	age, known := o.Age(at)
	return known && age >= d
}

// clustered reports that Kubernetes is expected here.
func (o seen) clustered() bool { return o.Node.NoCluster == "" }

// fresh reports that what the agent says counts: what a dead one said last is
// no news.
func (o seen) fresh() bool { return o.Agent.Runs }

const maxNamed = 5 // bounds how much one sentence names

// first is what the rules find as one finding, as severe as the worst of them;
// false where they find nothing.
func (o seen) first(finds ...find) (f types.Finding, is bool) {
	var texts []string
	for _, look := range finds {
		look(o, func(one types.Finding) {
			if one.Severity.Rank() > f.Severity.Rank() {
				f = one
			}
			texts = append(texts, one.Evidence+since(one.Since))
		})
	}
	if n := len(texts) - maxNamed; n > 0 {
		texts = append(texts[:maxNamed], fmt.Sprintf("%d more.", n))
	}
	f.Evidence = strings.Join(texts, " ")
	return f, len(texts) > 0
}

func ok(format string, args ...any) types.Finding {
	return types.Finding{Severity: types.SeverityOK, Evidence: fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) types.Finding {
	return types.Finding{Severity: types.SeverityUnknown, Evidence: fmt.Sprintf(format, args...)}
}

func warn(remedy, format string, args ...any) types.Finding {
	return types.Finding{Severity: types.SeverityWarn, Evidence: fmt.Sprintf(format, args...), Remedy: remedy}
}

func bad(remedy, format string, args ...any) types.Finding {
	return types.Finding{Severity: types.SeverityBad, Evidence: fmt.Sprintf(format, args...), Remedy: remedy}
}

func worse(a, b types.Finding) types.Finding {
	if b.Severity.Rank() > a.Severity.Rank() {
		return b
	}
	return a
}

// because adds to a statement why it is so, where that is known.
func because(why string) string {
	if why = strings.TrimRight(strings.TrimSpace(why), "."); why == "" {
		return "."
	}
	return ": " + why + "."
}

func since(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return " Since " + at.UTC().Format(time.RFC3339) + "."
}

func span(d time.Duration) string { return overview.Span(d, "s", "m", "h", "d") }

// lasting is for how long something has been so, for the end of a statement; "" where
// it is not known since when.
func lasting(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return " for " + span(now.Sub(since))
}

func bytesText(n uint64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatUint(n, 10) + " B"
	}
	f := float64(n)
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if f /= unit; f < unit || u == "TiB" {
			return fmt.Sprintf("%.1f %s", f, u)
		}
	}
	return ""
}
