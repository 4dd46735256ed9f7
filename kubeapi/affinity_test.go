package kubeapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/kubeapi/kubevirt"
	"github.com/zedkube/zedkube/types"
)

const (
	hostA  = `{"key":"kubernetes.io/hostname","operator":"In","values":["a"]}`
	hostB  = `{"key":"kubernetes.io/hostname","operator":"In","values":["b"]}`
	hostAB = `{"key":"kubernetes.io/hostname","operator":"In","values":["a","b"]}`
	notC   = `{"key":"kubernetes.io/hostname","operator":"NotIn","values":["c"]}`
	gpu    = `{"key":"gpu","operator":"Exists"}`
	zone   = `{"key":"zone","operator":"In","values":["z"]}`
)

func required(terms string) string {
	return `"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[` + terms + `]}`
}

func preferred(terms string) string {
	return `"preferredDuringSchedulingIgnoredDuringExecution":[` + terms + `]`
}

func term(expressions string) string { return `{"matchExpressions":[` + expressions + `]}` }

func weighs(weight, expressions string) string {
	return `{"weight":` + weight + `,"preference":` + term(expressions) + `}`
}

func TestTheAffinityOfATemplateInShort(t *testing.T) {
	for text, want := range map[string]types.SetAffinity{
		`{}`:                              {},
		`{` + required(term(hostA)) + `}`: {Node: "a", Required: true},
		`{` + preferred(weighs("100", hostA)) + `}`:                                       {Node: "a"},
		`{` + required(term(hostAB)) + `}`:                                                {},
		`{` + required(term(hostA)+","+term(hostB)) + `}`:                                 {},
		`{` + required(term(hostA)+","+term(gpu)) + `}`:                                   {Other: true},
		`{` + required(term(hostA+","+gpu)) + `}`:                                         {Node: "a", Required: true, Other: true},
		`{` + required(term(hostA+","+gpu)+","+term(hostA+","+zone)) + `}`:                {Node: "a", Required: true, Other: true},
		`{` + required(term(notC)) + `}`:                                                  {Other: true},
		`{` + required(term(gpu)) + `,` + preferred(weighs("1", hostB)) + `}`:             {Node: "b", Other: true},
		`{` + required(term(hostA)) + `,` + preferred(weighs("1", hostB)) + `}`:           {},
		`{` + required(`{"matchFields":[{"key":"metadata.name","operator":"In"}]}`) + `}`: {Other: true},
	} {
		a := &corev1.Affinity{NodeAffinity: decoded[corev1.NodeAffinity](t, text)}
		if diff := cmp.Diff(want, kubevirt.SetAffinityOf(a)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	if got := kubevirt.SetAffinityOf(&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}); got != (types.SetAffinity{Other: true}) {
		t.Errorf("between pods: %+v", got)
	}
}

func TestAnAffinityToANodeTakesThePlaceOfAnotherOneOnly(t *testing.T) {
	for name, row := range map[string]struct {
		old, required, preferred string
	}{
		"none": {`{}`, `{` + required(term(hostB)) + `}`, `{` + preferred(weighs("100", hostB)) + `}`},
		"required": {
			`{` + required(term(hostA)) + `}`, `{` + required(term(hostB)) + `}`, `{` + preferred(weighs("100", hostB)) + `}`,
		},
		"preferred": {
			`{` + preferred(weighs("100", hostA)) + `}`, `{` + required(term(hostB)) + `}`, `{` + preferred(weighs("100", hostB)) + `}`,
		},
		"the same": {
			`{` + required(term(hostB)) + `}`, `{` + required(term(hostB)) + `}`, `{` + preferred(weighs("100", hostB)) + `}`,
		},
		"with others": {
			`{` + required(term(hostA+","+gpu)+","+term(zone)) + `,` + preferred(weighs("5", zone)+","+weighs("9", hostA)) + `}`,
			`{` + required(term(gpu+","+hostB)+","+term(zone+","+hostB)) + `,` + preferred(weighs("5", zone)) + `}`,
			`{` + required(term(gpu)+","+term(zone)) + `,` + preferred(weighs("5", zone)+","+weighs("100", hostB)) + `}`,
		},
		"away from a node": {
			`{` + required(term(notC)) + `}`, `{` + required(term(notC+","+hostB)) + `}`,
			`{` + required(term(notC)) + `,` + preferred(weighs("100", hostB)) + `}`,
		},
	} {
		old := decoded[corev1.NodeAffinity](t, row.old)
		before := old.DeepCopy()
		for must, want := range map[bool]string{true: row.required, false: row.preferred} {
			if diff := cmp.Diff(decoded[corev1.NodeAffinity](t, want), kubevirt.WithHost(old, "b", must)); diff != "" {
				t.Errorf("%s, required %v (-want +got):\n%s", name, must, diff)
			}
		}
		if diff := cmp.Diff(before, old); diff != "" {
			t.Errorf("%s: the old one was changed:\n%s", name, diff)
		}
	}
}
