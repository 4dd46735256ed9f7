package supportcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/report/evereport"
	"github.com/zedkube/zedkube/types"
)

type exporter struct {
	paths  device.Paths
	now    time.Time
	agent  device.AgentLife
	sender evereport.Sender
	info   types.EdgeNodeInfo
	doubts []string // of every message
	ask    func(ctx context.Context, p device.Paths) ([]types.Node, error)
	watch  bool // it looks again and again: the API server is not polled, and nothing is made of half of its files
}

func newExporter(p device.Paths, now time.Time) *exporter {
	e := &exporter{paths: p, now: now, agent: device.LifeOfAgent(p, now), ask: device.FreshNodes}
	var err error
	if e.info, err = device.OwnName(p); err != nil {
		e.doubts = append(e.doubts, "the device has no UUID: "+err.Error())
	}
	e.sender.Device, e.sender.At = e.info.DeviceID, now
	member, _, err := device.ReadRecord[types.ClusterMembership](p.PersistentFile(device.Self, "ClusterMembership"))
	switch {
	case err != nil:
		e.doubts = append(e.doubts, "the cluster's UUID is not known: "+err.Error())
	case member.Belongs() && member.Config != nil:
		e.sender.ClusterID = member.Config.ClusterID.UUID
	}
	return e
}

// all makes the messages of those names, each once; all kinds for no name.
func (e *exporter) all(ctx context.Context, names []string) ([]exported, error) {
	if len(names) == 0 {
		names = []string{messageCluster, messageUpdate, messageNode, messageApp, messageMetrics}
	}
	var all []exported
	for _, name := range names {
		switch name {
		case messageCluster:
			all = append(all, e.cluster())
		case messageUpdate:
			all = append(all, e.update())
		case messageNode:
			all = append(all, e.node(ctx))
		case messageMetrics:
			all = append(all, e.metrics())
		case messageApp:
			all = append(all, e.apps()...)
		default: // checkExport has seen that it parses
			all = append(all, e.app(uuid.MustParse(strings.TrimPrefix(name, messageApp+"/"))))
		}
		if ctx.Err() != nil {
			return nil, terminal.ExitWith(terminal.ExitUsage, errors.New("interrupted"))
		}
	}
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(x exported) bool {
		again := seen[x.name]
		seen[x.name] = true
		return again
	})
	for i := range all {
		if all[i].message != nil {
			all[i].doubts = append(slices.Clone(e.doubts), all[i].doubts...)
		}
	}
	return all, nil
}

// from is the sender as of at the latest, and never of a time to come.
func (e *exporter) from(at time.Time) evereport.Sender {
	s := e.sender
	if !at.IsZero() && at.Before(s.At) {
		s.At = at
	}
	return s
}

// alive doubts a message that an agent that does not run has left, and says as
// of when it is.
func (e *exporter) alive(x *exported, written time.Time) (at time.Time) {
	if e.agent.Runs {
		return e.now
	}
	x.doubts = append(x.doubts, "the agent is NOT running: "+e.agent.Why)
	if e.agent.Seen.After(written) {
		return e.agent.Seen
	}
	return written
}

// update is the last report of the kube container, which needs no agent.
func (e *exporter) update() exported {
	x := exported{name: messageUpdate}
	u, written, err := device.ReadRecord[types.KubeClusterUpdateStatus](e.paths.PersistentFile("zedagent", "KubeClusterUpdateStatus"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.missing, x.inOrder = "the kube container has reported no update", true
	case err != nil:
		x.missing = err.Error()
	default:
		x.message = e.from(written).Update(u)
	}
	return x
}

// node asks the API server how the cluster sees this device.
func (e *exporter) node(ctx context.Context) exported {
	x := exported{name: messageNode}
	if e.info.DeviceName == "" && e.info.DeviceID == uuid.Nil {
		x.missing = "it is not known which node this device is"
		return x
	}
	if e.watch {
		n, written, err := device.ReadRecord[types.ClusterNodeStatus](e.paths.TopicFile(device.Self, "ClusterNodeStatus"))
		if err != nil {
			x.missing = err.Error()
			return x
		}
		x.message = e.from(e.alive(&x, written)).Node(n.Status)
		return x
	}
	if _, err := os.Stat(e.paths.Kubeconfig); err != nil {
		x.missing = "the cluster cannot be queried: " + err.Error()
		return x
	}
	nodes, err := e.ask(ctx, e.paths)
	switch {
	case err == nil:
		own, wrong := device.OwnNode(nodes, e.info)
		if wrong != nil {
			x.notes = append(x.notes, wrong.Error())
		}
		x.message = e.sender.Node(types.OwnNodeStatus(true, own.Ready))
	case terminal.ExitCode(err) == terminal.ExitNotPublished && !errors.Is(err, types.ErrRefused):
		x.notes = append(x.notes, "the API server cannot be reached: "+err.Error())
		x.message = e.sender.Node(types.KubeNodeNotReachable)
	default:
		x.missing = "the cluster cannot be queried: " + err.Error()
	}
	return x
}

func (e *exporter) apps() []exported {
	files, err := filepath.Glob(filepath.Join(e.paths.RunDir(), device.Self, "ENClusterAppStatus", "*.json"))
	if err != nil {
		return []exported{{name: messageApp, missing: err.Error()}}
	}
	var all []exported
	for _, file := range files { // sorted by Glob
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		id, err := uuid.Parse(name)
		if err != nil {
			all = append(all, exported{name: messageApp + "/" + terminal.Clean(name), missing: file + " is not named after an application"})
			continue
		}
		all = append(all, e.app(id))
	}
	if len(all) == 0 {
		return []exported{{name: messageApp, missing: "no application has a status", inOrder: true}}
	}
	return all
}

func (e *exporter) app(id uuid.UUID) exported {
	x := exported{name: messageApp + "/" + id.String()}
	file := func(agent, topic string) string {
		return filepath.Join(e.paths.RunDir(), agent, topic, id.String()+".json")
	}
	a, written, err := device.ReadRecord[types.ENClusterAppStatus](file(device.Self, "ENClusterAppStatus"))
	if err != nil {
		x.missing = err.Error()
		return x
	}
	cfg, _, err := device.ReadRecord[types.AppInstanceConfig](file("zedagent", "AppInstanceConfig"))
	if e.watch && err != nil && !errors.Is(err, fs.ErrNotExist) {
		x.missing = err.Error()
		return x
	}
	if err != nil {
		x.doubts = append(x.doubts, "its name and version are not known: "+err.Error())
	}
	at := e.alive(&x, written)
	if a.AppKubeStatus == types.AppKubeUnknown || a.AppKubeStatus == types.AppKubeAPIUnreachable {
		x.doubts = append(x.doubts, fmt.Sprintf("whether it runs here is not known: %s", a.AppKubeStatus))
		at = earlier(at, written)
	}
	a.AppUUID = id
	x.message = e.from(at).App(a, cfg)
	return x
}

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
