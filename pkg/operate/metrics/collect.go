package metrics

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/types"
)

type collector struct{ *Metrics }

// Describe implements prometheus.Collector. It names nothing: what is known of a
// node changes.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	now, s := time.Now(), sink(out)
	s.gauge("zedkube_build_info", "1, with the version of the agent.", 1, "version", text(c.Version))
	if threads, err := os.ReadDir("/proc/self/task"); err == nil {
		s.gauge("zedkube_process_threads", "Threads of the agent in the kernel.", float64(len(threads)))
	}
	c.components(s, now)
	c.bus(s)
	c.api(s, now)
	c.lease(s, now)
	c.cordon(s)
	c.ready(s)
	o := c.Overview(now)
	problems(s, o.Problems)
	cluster(s, o)
	if p, ok := c.Progress.Get(types.Global); ok {
		drain(s, p, now)
	}
	if h, ok := c.Health.Get(types.Global); ok {
		report(s, h, now)
	}
	object, known := c.Object.Get(types.Global)
	if k, ok := c.Conditions.Get(types.Global); ok {
		conditions(s, k, object.Status.Components.CDI, now)
	}
	if known {
		oneHot(s, "zedkube_cluster_phase", "1 for the phase of the cluster as this node sees it.", object.Status.Phase, clusterPhases)
		s.gauge("zedkube_component_update_failed", "1 if the last update of a component of Kubernetes failed: no later one is updated.", boolValue(object.Status.Of(types.ComponentsUpdated).Reason == types.ComponentUpdateFailed))
	}
	if l, ok := c.Lifecycle.Get(types.Global); ok {
		oneHot(s, "zedkube_k3s_lifecycle_phase", "1 for the phase of a change of k3s on this node.", l.Phase, lifecyclePhases)
	}
	if l, ok := c.Lifecycle.Get(types.Global); ok {
		s.gauge("zedkube_certificate_renewal_failed", "1 where the last restart of k3s for its certificates did not renew them.", boolValue(l.Restart.Failed != ""))
		s.gauge("zedkube_k3s_override_failed", "1 where k3s did not come up with the override that the setting asks for.", boolValue(l.Override.Failed.To != ""))
	}
}

func (c collector) components(s sink, now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(c.Pulses)) {
		n := c.Pulses[name].Counts()
		s.counter("zedkube_component_steps_total", "Steps of a component.", float64(n.Steps), "component", name)
		s.counter("zedkube_component_step_errors_total", "Steps of a component that failed.", float64(n.Failed), "component", name)
		s.counter("zedkube_component_step_seconds_total", "Time in steps of a component.", n.Took.Seconds(), "component", name)
		s.gauge("zedkube_component_step_longest_seconds", "The longest step of a component since the start.", n.Longest.Seconds(), "component", name)
		s.gauge("zedkube_component_stuck", "1 if a component no longer completes steps; the watchdog is then no longer fed.", boolValue(c.Pulses[name].Stuck(now)), "component", name)
	}
}

// bus is what became of the topics, whose names are the program's own.
func (c collector) bus(s sink) {
	for _, t := range c.Bus.Stats() {
		direction := "out"
		if t.Subscribed {
			direction = "in"
		}
		s.counter("zedkube_pubsub_messages_total", "Updates and deletes: sent to subscribers (out), or received (in).", float64(t.Messages), "topic", t.Topic, "direction", direction)
		s.counter("zedkube_pubsub_refused_total", "Values of our own that could not be published (out), or received values that are invalid (in).", float64(t.Refused), "topic", t.Topic, "direction", direction)
		if !t.Subscribed {
			s.counter("zedkube_pubsub_dropped_total", "Subscribers that were disconnected because they accepted nothing for five minutes.", float64(t.Dropped), "topic", t.Topic)
			s.gauge("zedkube_pubsub_subscribers", "Subscribers that are connected.", float64(t.Clients), "topic", t.Topic)
		}
	}
}

func (c collector) api(s sink, now time.Time) {
	a, ok := c.API.Get(types.Global)
	if !ok {
		return // it has not been asked yet
	}
	s.gauge("zedkube_api_up", "1 while the API server answers.", boolValue(a.Answers()))
	s.gauge("zedkube_api_silent_seconds", "For how long the API server has not answered; 0 while it answers.", since(now, a.SilentSince))
	s.gauge("zedkube_api_synced", "1 while the tables of nodes and pods are complete.", boolValue(a.Synced))
}

func (c collector) lease(s sink, now time.Time) {
	if l, ok := c.Leader.Get(types.Global); ok {
		s.gauge("zedkube_lease_in_election", "1 if this node may report for the cluster.", boolValue(l.InLeaderElection))
		s.gauge("zedkube_lease_held", "1 while this node reports for the cluster.", boolValue(l.IsStatsLeader))
		s.gauge("zedkube_lease_leader_known", "1 while it is known which node reports.", boolValue(l.LeaderIdentity != ""))
	}
	if l, ok := c.Leases.Get(c.Lease); ok && !l.Renewed.IsZero() {
		s.gauge("zedkube_lease_renewal_age_seconds", "Time since the node that reports renewed its Lease, by its clock and ours.", since(now, l.Renewed))
	}
}

func (c collector) cordon(s sink) {
	info, _ := c.Info.Get(types.Global)
	node, ok := types.OwnNode(c.Nodes.All(), info)
	if !ok {
		return
	}
	by := ""
	if node.Unschedulable {
		progress, _ := c.Progress.Get(types.Global)
		if by = oneOf(progress.Cordon, cordons); progress.Cordon == types.CordonedDisabled {
			by = types.CordonWorkloads
		}
	}
	for _, who := range append(slices.Clone(cordons), other) {
		s.gauge("zedkube_node_cordoned", "1 while this node is cordoned, by who cordoned it: operator is anyone other than zedkube, other is not named by NodeDrainProgress.", boolValue(who == by), "by", who)
	}
}

// sink takes numbers as they are found.
type sink chan<- prometheus.Metric

// gauge puts one value of a metric that goes up and down. Labels are pairs of a
// name and a value.
func (s sink) gauge(name, help string, value float64, labels ...string) {
	s.put(prometheus.GaugeValue, name, help, value, labels)
}

// oneHot puts 1 for the phase that it is, and 0 for every other one.
func oneHot[T ~string](s sink, name, help string, is T, phases []T) {
	at := oneOf(is, phases)
	for _, phase := range append(slices.Clone(phases), other) {
		s.gauge(name, help, boolValue(at == string(phase)), "phase", string(phase))
	}
}

// counter puts one value of a metric that only grows.
func (s sink) counter(name, help string, value float64, labels ...string) {
	s.put(prometheus.CounterValue, name, help, value, labels)
}

func (s sink) put(kind prometheus.ValueType, name, help string, value float64, labels []string) {
	var names, values []string
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	desc := prometheus.NewDesc(name, help, names, nil)
	metric, err := prometheus.NewConstMetric(desc, kind, value, values...)
	if err != nil {
		metric = prometheus.NewInvalidMetric(desc, err)
	}
	s <- metric
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// since is how long ago a time was, in seconds; 0 for no time, and for one to
// come, as another clock may have it.
func since(now, then time.Time) float64 {
	if then.IsZero() {
		return 0
	}
	return max(0, now.Sub(then).Seconds())
}

// other stands for every value that is not known beforehand, so that no name
// from outside becomes a series of its own.
const other = "other"

// What labels may say, beside other. What is missing here is counted all the
// same, under other.
var (
	verbs  = []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	phases = []types.DrainPhase{
		types.PhaseIdle, types.PhaseGates, types.PhaseEmptying, types.PhaseComplete, types.PhaseNoCordon, types.PhaseNotEmpty,
	}
	clusterPhases = []types.ClusterPhase{
		types.ClusterNotInitialized, types.ClusterProvisioning, types.ClusterProvisioned, types.ClusterUpgrading, types.ClusterDisabled, types.ClusterDegraded, types.ClusterFailed, types.ClusterLeaving,
	}
	lifecyclePhases = []types.KubeLifecyclePhase{
		types.LifecycleIdle, types.LifecycleRefused, types.LifecycleWaits, types.LifecycleChanges, types.LifecycleReturns, types.LifecycleFailed, types.LifecycleStuck,
	}
	outlooks = []types.DrainOutlook{types.OutlookSlow, types.OutlookNever}
	cordons  = []string{"zedkube", "operator", "tie-breaker", "kept", types.CordonWorkloads}
	sections = []string{
		types.SectionNodes, types.SectionAppPods, types.SectionAppVMIs, types.SectionStorage, types.SectionNamespaces,
		types.SectionAllocated, types.SectionStorageHealth, types.SectionServices, types.SectionIngresses, types.SectionLBPool,
	}
	statuses     = []types.ConditionStatus{types.ConditionTrue, types.ConditionFalse, types.ConditionUnknown}
	certificates = []string{"client", "CA", "server", "k3s", "k3s-CA"}
	outcomes     = []types.OperationOutcome{types.OperationOK, types.OperationRefused, types.OperationFailed, types.OperationUnanswered}
	// operationVerbs are the first words of what is audited.
	operationVerbs = []string{
		"annotate", "ask", "begin", "bind", "cancel", "change", "check", "consent", "cordon", "create", "delete", "disable", "drain", "enable", "end", "ensure", "evict", "fence", "force", "force-delete",
		"forget", "free", "hold", "install", "issue", "join", "keep", "label", "leave", "detach", "note", "patch", "refuse", "remove", "release", "renew", "repair", "request", "reserve",
		"restart", "restore", "return", "revoke", "run", "scale", "set", "stage", "stamp", "taint", "take", "test", "uncordon", "undo", "unfence", "unkeep", "unlock", "untaint", "update", "want",
		"withdraw", "witness", "write",
	}
)

const maxText = 64 // bytes of a version in a label

// oneOf is value where it is known, else other.
func oneOf[T ~string](value T, known []T) string {
	if slices.Contains(known, value) {
		return string(value)
	}
	return other
}

// codeLabel is the status itself where an API server is known to send it, and
// its class where only something strange would.
func codeLabel(code int) string {
	switch code {
	case 200, 201, 202, 400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 429, 500, 502, 503, 504:
		return strconv.Itoa(code)
	case 0:
		return "none"
	}
	if code >= 100 && code < 600 {
		return strconv.Itoa(code/100) + "xx"
	}
	return other
}

// text is what a version says, as a label may: of which there is one series, so
// that whatever it says stays one.
func text(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "")
	}
	return s
}

// watched is a collector whose panic is an error of the gathering. The library
// calls collectors in goroutines of its own, and would show who asks the stack.
type watched struct{ prometheus.Collector }

// Collect implements prometheus.Collector.
func (c watched) Collect(out chan<- prometheus.Metric) {
	if fault := boundedhttp.Catch(func() { c.Collector.Collect(out) }); fault != nil {
		out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(fault), fault)
	}
}

// raising hears of what went wrong in the gathering, in the goroutine that asked
// for it, and panics there where a collector did.
type raising struct{}

// Println implements promhttp.Logger.
func (raising) Println(what ...any) {
	for _, w := range what {
		err, ok := w.(error)
		if !ok {
			continue
		}
		all := prometheus.MultiError{err}
		_ = errors.As(err, &all)
		for _, one := range all {
			if fault := (*boundedhttp.Fault)(nil); errors.As(one, &fault) {
				fault.Raise()
			}
		}
	}
}

func drain(s sink, p types.NodeDrainProgress, now time.Time) {
	oneHot(s, "zedkube_drain_phase", "1 for the current phase of this node's drain.", p.Phase, phases)
	seconds := 0.0
	if p.Ended.IsZero() {
		seconds = since(now, p.Started)
	}
	s.gauge("zedkube_drain_seconds", "Time since the current drain was requested; 0 for none.", seconds)
	s.gauge("zedkube_drain_pods_left", "Pods that the drain has yet to remove.", float64(p.Pods.Waiting+p.Pods.Terminating))
	s.gauge("zedkube_drain_pods_evicted", "Pods that the drain has removed.", float64(p.Pods.Evicted))
	blockers, volumes := map[string]int{}, map[string]int{}
	for _, b := range p.Blockers {
		blockers[oneOf(b.Outlook, outlooks)]++
	}
	for _, v := range p.Volumes {
		volumes[oneOf(v.Outlook, outlooks)]++
	}
	blockers[other] += p.BlockersOmitted
	volumes[other] += p.VolumesOmitted
	for _, outlook := range []string{string(types.OutlookSlow), string(types.OutlookNever), other} {
		s.gauge("zedkube_drain_blockers", "Pods that block the drain: slow resolves by itself, never does not, other is unknown.", float64(blockers[outlook]), "outlook", outlook)
		s.gauge("zedkube_drain_volumes", "Volumes that block the drain: slow resolves by itself, never does not, other is unknown.", float64(volumes[outlook]), "outlook", outlook)
	}
}

func report(s sink, h types.KubeReportHealth, now time.Time) {
	s.gauge("zedkube_report_reports", "1 while this node reports for the cluster.", boolValue(h.Reports))
	if !h.Reports {
		return
	}
	var changed time.Time
	stale := map[string]float64{}
	known := map[string]bool{}
	omitted := map[string]int{}
	for _, section := range h.Sections {
		name := oneOf(section.Name, sections)
		if section.Updated.After(changed) {
			changed = section.Updated
		}
		stale[name] = max(stale[name], since(now, section.StaleSince))
		was, seen := known[name]
		known[name] = section.Known && (was || !seen)
		omitted[name] += section.Truncated
	}
	worst := 0.0
	for name := range known {
		worst = max(worst, stale[name])
		s.gauge("zedkube_report_section_stale_seconds", "For how long a section of the report has been stale; 0 while it is current.", stale[name], "section", name)
		s.gauge("zedkube_report_section_known", "1 if a section of the report has been complete at least once.", boolValue(known[name]), "section", name)
		s.gauge("zedkube_report_section_omitted", "Entries left out of a section because the report would be too large.", float64(omitted[name]), "section", name)
	}
	s.gauge("zedkube_report_stale_seconds", "The longest of the sections' stale times.", worst)
	if !changed.IsZero() {
		s.gauge("zedkube_report_age_seconds", "Time since anything in the report last changed: long in a cluster where nothing happens.", since(now, changed))
	}
}

func conditions(s sink, k types.KubeNodeConditions, cdi string, now time.Time) {
	for _, of := range types.NodeStateTypes() {
		c, ok := k.Of(of)
		if !ok {
			continue
		}
		for _, status := range statuses {
			s.gauge("zedkube_condition", "1 for the status of a condition of this node; false is a problem.", boolValue(c.Status == status), "condition", string(of), "status", strings.ToLower(string(status)))
		}
		if !c.Since.IsZero() {
			s.gauge("zedkube_condition_transition_time_seconds", "When the status of a condition last changed, in Unix time.", float64(c.Since.Unix()), "condition", string(of))
		}
	}
	installed := !k.InstalledAt.IsZero()
	s.gauge("zedkube_cluster_installed", "1 if this node is in an installed cluster.", boolValue(installed))
	if installed {
		s.gauge("zedkube_cluster_install_time_seconds", "When the cluster was installed, in Unix time, by its clock.", float64(k.InstalledAt.Unix()))
	}
	s.gauge("zedkube_cluster_info", "1, with the versions of the cluster's parts; empty where unknown.", 1,
		"kubernetes", text(k.Kubernetes), "kubevirt", text(k.KubeVirt), "cdi", text(cdi), "longhorn", text(k.Longhorn), "cni", text(k.CNI))
	left := map[string]float64{}
	for _, c := range k.Certificates {
		name, seconds := oneOf(c.Name, certificates), c.NotAfter.Sub(now).Seconds()
		if least, seen := left[name]; !seen || seconds < least {
			left[name] = seconds
		}
	}
	for name, seconds := range left {
		s.gauge("zedkube_certificate_left_seconds", "Time until a certificate of k3s on this node, or of the connection to the API server, expires; negative afterwards.", seconds, "certificate", name)
		// Its former name, which alerts of operators have, for one release longer.
		s.gauge("zedkube_certificate_days_left", "Deprecated, see zedkube_certificate_left_seconds: the same in days.", seconds/(24*time.Hour).Seconds(), "certificate", name)
	}
}

// Operations counts what is done on its way to the record of it.
type Operations struct {
	*prometheus.CounterVec
	to types.OperationLog
}

// NewOperations counts from nothing what to records.
func NewOperations(to types.OperationLog) *Operations {
	return &Operations{to: to, CounterVec: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "zedkube_operations_total",
		Help: "Operations on the cluster and the device that have ended, by the first word of what was done and by outcome.",
	}, []string{"op", "outcome"})}
}

// Begin implements types.OperationLog.
func (o *Operations) Begin(of types.Operation) func(types.OperationOutcome, error) {
	end := o.to.Begin(of)
	word, _, _ := strings.Cut(of.Op, " ")
	return func(outcome types.OperationOutcome, err error) {
		o.WithLabelValues(oneOf(word, operationVerbs), oneOf(outcome, outcomes)).Inc()
		end(outcome, err)
	}
}
