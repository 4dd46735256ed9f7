package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zedkube/zedkube/types"
)

// drain is where the drain of this node stands.
func drain(s sink, p types.NodeDrainProgress, now time.Time) {
	at := oneOf(p.Phase, phases)
	for _, phase := range phases {
		s.gauge("zedkube_drain_phase", "1 for the current phase of this node's drain.", boolValue(at == string(phase)), "phase", string(phase))
	}
	s.gauge("zedkube_drain_phase", "1 for the current phase of this node's drain.", boolValue(at == other), "phase", other)
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

// report is how far what this node reports can be trusted.
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
		s.gauge("zedkube_report_section_known", "1 where a section of the report has been complete at least once.", boolValue(known[name]), "section", name)
		s.gauge("zedkube_report_section_omitted", "Entries left out of a section because the report would be too large.", float64(omitted[name]), "section", name)
	}
	s.gauge("zedkube_report_stale_seconds", "The longest of the sections' stale times.", worst)
	if !changed.IsZero() {
		s.gauge("zedkube_report_age_seconds", "Time since anything in the report last changed: long in a cluster where nothing happens.", since(now, changed))
	}
}

// conditions is how this node stands in its cluster.
func conditions(s sink, k types.KubeNodeConditions, now time.Time) {
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
	s.gauge("zedkube_cluster_installed", "1 where this node is in an installed cluster.", boolValue(installed))
	if installed {
		s.gauge("zedkube_cluster_install_time_seconds", "When the cluster was installed, in Unix time, by its clock.", float64(k.InstalledAt.Unix()))
	}
	s.gauge("zedkube_cluster_info", "1, with the versions of the cluster's parts; empty where unknown.", 1,
		"kubernetes", text(k.Kubernetes), "kubevirt", text(k.KubeVirt), "longhorn", text(k.Longhorn), "cni", text(k.CNI))
	left := map[string]float64{}
	for _, c := range k.Certificates {
		name, days := oneOf(c.Name, certificates), c.NotAfter.Sub(now).Hours()/24
		if least, seen := left[name]; !seen || days < least {
			left[name] = days
		}
	}
	for name, days := range left {
		s.gauge("zedkube_certificate_days_left", "Days until a certificate of the connection to the API server expires; negative afterwards.", days, "certificate", name)
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
