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

// collector reads the tables when it is asked.
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
	if p, ok := c.Progress.Get(types.Global); ok {
		drain(s, p, now)
	}
	if h, ok := c.Health.Get(types.Global); ok {
		report(s, h, now)
	}
	if k, ok := c.Conditions.Get(types.Global); ok {
		conditions(s, k, now)
	}
}

// components is what the loops of the agent have done.
func (c collector) components(s sink, now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(c.Pulses)) {
		n := c.Pulses[name].Counts()
		s.counter("zedkube_component_steps_total", "Steps of a component.", float64(n.Steps), "component", name)
		s.counter("zedkube_component_step_errors_total", "Steps of a component that failed.", float64(n.Failed), "component", name)
		s.counter("zedkube_component_step_seconds_total", "Time in steps of a component.", n.Took.Seconds(), "component", name)
		s.gauge("zedkube_component_step_longest_seconds", "The longest step of a component since the start.", n.Longest.Seconds(), "component", name)
		s.gauge("zedkube_component_stuck", "1 where a component no longer steps, which stops the watchdog.", boolValue(c.Pulses[name].Stuck(now)), "component", name)
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

// api is how the API server is seen.
func (c collector) api(s sink, now time.Time) {
	a, ok := c.API.Get(types.Global)
	if !ok {
		return // it has not been asked yet
	}
	s.gauge("zedkube_api_up", "1 while the API server answers.", boolValue(a.Answers()))
	s.gauge("zedkube_api_silent_seconds", "For how long the API server has not answered; 0 while it answers.", since(now, a.SilentSince))
	s.gauge("zedkube_api_synced", "1 while the tables of nodes and pods are complete.", boolValue(a.Synced))
}

// lease is how this node stands to the election of the one that reports.
func (c collector) lease(s sink, now time.Time) {
	if l, ok := c.Leader.Get(types.Global); ok {
		s.gauge("zedkube_lease_in_election", "1 where this node may report for the cluster.", boolValue(l.InLeaderElection))
		s.gauge("zedkube_lease_held", "1 while this node reports for the cluster.", boolValue(l.IsStatsLeader))
		s.gauge("zedkube_lease_leader_known", "1 while it is known which node reports.", boolValue(l.LeaderIdentity != ""))
	}
	if l, ok := c.Leases.Get(c.Lease); ok && !l.Renewed.IsZero() {
		s.gauge("zedkube_lease_renewal_age_seconds", "Time since the node that reports renewed its Lease, by its clock and ours.", since(now, l.Renewed))
	}
}

// cordon is whether this node is schedulable, and who cordoned it.
func (c collector) cordon(s sink) {
	info, _ := c.Info.Get(types.Global)
	node, ok := types.OwnNode(c.Nodes.All(), info)
	if !ok {
		return
	}
	by := ""
	if node.Unschedulable {
		progress, _ := c.Progress.Get(types.Global)
		by = oneOf(progress.Cordon, cordons)
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
	outlooks = []types.DrainOutlook{types.OutlookSlow, types.OutlookNever}
	cordons  = []string{"zedkube", "operator", "tie-breaker", "kept"}
	sections = []string{
		types.SectionNodes, types.SectionAppPods, types.SectionAppVMIs, types.SectionStorage, types.SectionNamespaces,
		types.SectionAllocated, types.SectionStorageHealth, types.SectionServices, types.SectionIngresses, types.SectionLBPool,
	}
	statuses     = []types.ConditionStatus{types.ConditionTrue, types.ConditionFalse, types.ConditionUnknown}
	certificates = []string{"client", "CA", "server"}
	outcomes     = []types.OperationOutcome{types.OperationOK, types.OperationRefused, types.OperationFailed, types.OperationUnanswered}
	// operationVerbs are the first words of what is audited.
	operationVerbs = []string{
		"annotate", "ask", "bind", "cancel", "cordon", "create", "delete", "drain", "ensure", "evict", "fence", "force", "force-delete",
		"forget", "free", "keep", "label", "leave", "detach", "note", "patch", "remove", "release", "renew", "repair", "request", "reserve", "restart",
		"scale", "set", "stamp", "taint", "take", "uncordon", "unfence", "unkeep", "unlock", "untaint", "update", "withdraw", "witness", "write",
	}
)

// maxText bounds a version in a label, in bytes.
const maxText = 64

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
