package metrics

import (
	"maps"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
