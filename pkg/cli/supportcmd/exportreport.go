package supportcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// clusterSections are those of KubeReportHealth that the cluster's message is
// made of.
var clusterSections = []string{
	types.SectionNodes, types.SectionAppPods, types.SectionAppVMIs, types.SectionStorage, types.SectionNamespaces,
	types.SectionAllocated, types.SectionStorageHealth,
}

// metricsOld is how old what the cluster uses may be: it is looked at once a
// minute.
const metricsOld = 3 * time.Minute

// cluster is the report on the whole cluster.
func (e *exporter) cluster() exported {
	x := exported{name: messageCluster}
	report, written, err := device.ReadRecord[types.KubeClusterInfo](e.paths.TopicFile(device.Self, "KubeClusterInfo"))
	if err != nil {
		x.missing, x.inOrder = e.notReported(err)
		return x
	}
	at := e.alive(&x, written)
	health, _, err := device.ReadRecord[types.KubeReportHealth](e.paths.TopicFile(device.Self, "KubeReportHealth"))
	switch {
	case err != nil:
		x.doubts = append(x.doubts, "how far the report can be trusted is not known: "+err.Error())
		at = earlier(at, written)
	case !health.Reports:
		x.doubts = append(x.doubts, "this node no longer reports for the cluster")
		at = earlier(at, written)
	default:
		for _, s := range health.Sections {
			at = earlier(at, doubtSection(&x, s, e.now))
		}
	}
	x.message = e.from(at).Cluster(report)
	return x
}

// doubtSection says what in a section is old or not whole, and since when; a
// zero time for never.
func doubtSection(x *exported, s types.ReportSection, now time.Time) (since time.Time) {
	if !slices.Contains(clusterSections, s.Name) {
		return time.Time{}
	}
	doubt := func(format string, args ...any) { x.doubts = append(x.doubts, fmt.Sprintf(format, args...)) }
	switch {
	case !s.Known:
		doubt("section %s has not been seen since the agent started: %s", s.Name, s.Why)
	case !s.StaleSince.IsZero():
		doubt("section %s has not been up to date since %s: %s", s.Name, terminal.Stamp(s.StaleSince, now), s.Why)
	}
	if s.Truncated > 0 {
		doubt("%d of %d entries of section %s are left out, because the report would be too large", s.Truncated, s.Total, s.Name)
	}
	if s.Without != "" {
		doubt("the entries of section %s lack %s, because the report would be too large", s.Name, s.Without)
	}
	return s.StaleSince
}

// notReported says why a topic that only the reporting node has cannot be
// read, and whether that is as it should be.
func (e *exporter) notReported(err error) (why string, inOrder bool) {
	if !errors.Is(err, fs.ErrNotExist) {
		return err.Error(), false
	}
	leader, _, err := device.ReadRecord[types.KubeLeaderElectInfo](e.paths.TopicFile(device.Self, "KubeLeaderElectInfo"))
	said := ""
	if !e.agent.Runs {
		said = "; the agent is NOT running: " + e.agent.Why
	}
	switch {
	case err != nil:
		return "who reports for the cluster is not known: " + err.Error() + said, false
	case leader.IsStatsLeader:
		return "this node reports for the cluster and has not published it yet" + said, false
	case leader.LeaderIdentity == "":
		return "no node reports for the cluster yet" + said, false
	}
	return "this node does not report for the cluster: node " + leader.LeaderIdentity + " does" + said, e.agent.Runs
}

// metrics is what the kubelets measure.
func (e *exporter) metrics() exported {
	x := exported{name: messageMetrics}
	m, written, err := device.ReadRecord[types.KubeClusterMetrics](e.paths.TopicFile(device.Self, "KubeClusterMetrics"))
	if err != nil {
		x.missing, x.inOrder = e.notReported(err)
		return x
	}
	e.alive(&x, written)
	newest := doubtNodes(&x, m.Nodes, e.now)
	if e.agent.Runs && !newest.IsZero() && e.now.Sub(newest) > metricsOld {
		x.doubts = append(x.doubts, "nothing has been measured since "+terminal.Stamp(newest, e.now))
	}
	if m.Truncated > 0 {
		x.doubts = append(x.doubts, fmt.Sprintf("%d entries are left out, because the report would be too large", m.Truncated))
	}
	if n := unmeasured(m); n > 0 {
		x.notes = append(x.notes, fmt.Sprintf("%d values are not measured; the message can only say 0 for them", n))
	}
	if newest.IsZero() {
		newest = written
	}
	x.message = e.from(newest).Metrics(m)
	return x
}

// doubtNodes says which nodes could not be measured, and when one was last.
func doubtNodes(x *exported, nodes []types.ClusterNodeMetrics, now time.Time) (newest time.Time) {
	for _, n := range nodes {
		switch {
		case n.At.IsZero():
			x.doubts = append(x.doubts, fmt.Sprintf("node %s has not been measured: %s", n.Name, n.Stale))
		case n.Stale != "":
			x.doubts = append(x.doubts, fmt.Sprintf("node %s was last measured at %s: %s", n.Name, terminal.Stamp(n.At, now), n.Stale))
		}
		if n.At.After(newest) {
			newest = n.At
		}
	}
	return newest
}

// unmeasured counts the values that are absent.
func unmeasured(m types.KubeClusterMetrics) (n int) {
	count := func(values ...*uint64) {
		for _, v := range values {
			if v == nil {
				n++
			}
		}
	}
	for _, node := range m.Nodes {
		count(node.CPU, node.Memory)
	}
	for _, app := range slices.Concat(m.Apps, m.VMIs) {
		count(app.CPU, app.Memory)
	}
	return n
}

// earlier is the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
