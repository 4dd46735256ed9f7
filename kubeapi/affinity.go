package kubeapi

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/types"
)

// preferredWeight is that of EVE's term of a preferred affinity.
const preferredWeight = 100

// namesHost tells an expression that asks for host names from all others, which
// are none of ours.
func namesHost(e corev1.NodeSelectorRequirement) bool {
	return e.Key == corev1.LabelHostname && e.Operator == corev1.NodeSelectorOpIn
}

// setAffinityOf sums up the affinity of a template. It is required where every
// one of the required terms, of which a node has to meet one, asks for the host.
func setAffinityOf(a *corev1.Affinity) types.SetAffinity {
	if a == nil {
		return types.SetAffinity{}
	}
	row := types.SetAffinity{Other: a.PodAffinity != nil || a.PodAntiAffinity != nil}
	if a.NodeAffinity == nil {
		return row
	}
	var hosts []string
	look := func(t corev1.NodeSelectorTerm) (named bool) {
		for _, e := range t.MatchExpressions {
			if namesHost(e) {
				hosts, named = append(hosts, e.Values...), true
			} else {
				row.Other = true
			}
		}
		row.Other = row.Other || len(t.MatchFields) > 0
		return named
	}
	required, unbound := false, false
	if r := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		for _, t := range r.NodeSelectorTerms {
			named := look(t)
			required, unbound = required || named, unbound || !named
		}
	}
	for _, p := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		look(p.Preference)
	}
	if hosts = sorted(hosts); len(hosts) == 1 && !(required && unbound) {
		row.Node, row.Required = hosts[0], required
	}
	return row
}

// withHost is a with one host name in place of all that it asked for: in every
// required term, or in one preferred term. All else stays as it is, but for
// terms that asked for nothing else. It changes nothing of a.
func withHost(a *corev1.NodeAffinity, node string, required bool) *corev1.NodeAffinity {
	host := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	var terms []corev1.NodeSelectorTerm
	out := &corev1.NodeAffinity{}
	if a != nil {
		if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
			for _, t := range r.NodeSelectorTerms {
				if t, left := withoutHosts(t); left {
					terms = append(terms, t)
				}
			}
		}
		for _, p := range a.PreferredDuringSchedulingIgnoredDuringExecution {
			if t, left := withoutHosts(p.Preference); left {
				out.PreferredDuringSchedulingIgnoredDuringExecution = append(out.PreferredDuringSchedulingIgnoredDuringExecution,
					corev1.PreferredSchedulingTerm{Weight: p.Weight, Preference: t})
			}
		}
	}
	if required {
		for i := range terms {
			terms[i].MatchExpressions = append(terms[i].MatchExpressions, host)
		}
		if terms == nil {
			terms = []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{host}}}
		}
	} else {
		out.PreferredDuringSchedulingIgnoredDuringExecution = append(out.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: preferredWeight, Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{host},
			}})
	}
	if terms != nil {
		out.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
	}
	return out
}

// withoutHosts is t as far as it asks for anything but host names; left says
// that it does.
func withoutHosts(t corev1.NodeSelectorTerm) (rest corev1.NodeSelectorTerm, left bool) {
	rest = *t.DeepCopy()
	rest.MatchExpressions = slices.DeleteFunc(rest.MatchExpressions, namesHost)
	return rest, len(rest.MatchExpressions) > 0 || len(rest.MatchFields) > 0
}
