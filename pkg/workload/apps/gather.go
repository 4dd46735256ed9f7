package apps

import (
	"maps"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/types"
)

// app is one configured application with all that the cluster has of its
// present generation.
type app struct {
	key    string
	cfg    types.AppInstanceConfig
	set    types.AppSet // zero where there is none
	pods   []types.Pod  // terminating ones too
	vmis   []types.VMI
	claims []string // of its volumes, namespace/name
}

// apps sorts what the tables hold by application.
func (f facts) apps() []app {
	byDomain, byName := map[string][]types.Pod{}, map[string][]types.Pod{}
	for _, p := range f.pods { // it may be in both, and the application's Owns decides
		if p.AppDomain != "" {
			byDomain[appOf(p.AppDomain)] = append(byDomain[appOf(p.AppDomain)], p)
		}
		names := []string{p.App}
		if p.Owner.Kind == types.KindReplicaSet && p.Owner.Name != p.App {
			names = append(names, p.Owner.Name)
		}
		for _, name := range names {
			if name != "" {
				byName[name] = append(byName[name], p)
			}
		}
	}
	vmis := map[string][]types.VMI{}
	for _, v := range f.vmis {
		vmis[appOf(v.AppDomain)] = append(vmis[appOf(v.AppDomain)], v)
	}
	var all []app
	for _, key := range slices.Sorted(maps.Keys(f.configs)) {
		cfg := f.configs[key]
		a := app{key: key, cfg: cfg}
		name, id := cfg.KubeName(), strings.ToLower(cfg.UUIDandVersion.UUID.String())
		kind, candidates := types.KindReplicaSet, byName[name]
		if cfg.IsVMI() {
			kind, candidates = types.KindVMIReplicaSet, byDomain[id]
		}
		a.set = f.sets[types.AppSet{Kind: kind, Name: name}.Key()]
		for _, p := range candidates {
			if cfg.Owns(p) {
				a.pods = append(a.pods, p)
			}
		}
		for _, v := range vmis[id] {
			if v.Owner.Kind == "" || v.Owner.Name == name {
				a.vmis = append(a.vmis, v)
			}
		}
		a.claims = claims(a)
		all = append(all, a)
	}
	return all
}

// appOf is the application's UUID in a domain name, <UUID>.<version>.<number>.
func appOf(domain string) string {
	id, _, _ := strings.Cut(domain, ".")
	return strings.ToLower(id)
}

// claims are those of the set and of the pods: a hot-plugged volume is only in
// the latter.
func claims(a app) []string {
	var names []string
	add := func(claims []string) {
		for _, c := range claims {
			names = append(names, types.NamespaceApps+"/"+c)
		}
	}
	add(a.set.Claims)
	for _, p := range a.pods {
		add(p.Claims)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// representativePod is the pod that speaks for the application.
func (a app) representativePod(self string) (types.Pod, bool) { return choose(a.cfg, a.pods, self) }

// runs reports whether a copy of it runs on a node that is Ready.
func (a app) runs(nodes map[string]types.Node) bool {
	return slices.ContainsFunc(a.pods, func(p types.Pod) bool {
		return !p.Terminating() && p.Phase == types.PodRunning && nodes[p.NodeName].Ready == types.ConditionTrue && a.vmRuns(p)
	})
}

// vmRuns reports whether the virtual machine in a launcher pod runs; a pod
// without one is all there is.
func (a app) vmRuns(p types.Pod) bool {
	if !a.cfg.IsVMI() {
		return true
	}
	v, ok := a.vmi(p.VMIName())
	return ok && v.Phase == types.VMIRunning
}

func (a app) vmi(name string) (types.VMI, bool) {
	i := slices.IndexFunc(a.vmis, func(v types.VMI) bool { return v.Name == name })
	if i < 0 {
		return types.VMI{}, false
	}
	return a.vmis[i], true
}

// on reports whether it has anything on a node.
func (a app) on(node string) bool {
	return slices.ContainsFunc(a.pods, func(p types.Pod) bool { return p.NodeName == node && !finished(p) }) ||
		slices.ContainsFunc(a.vmis, func(v types.VMI) bool { return v.NodeName == node })
}

func finished(p types.Pod) bool { return p.Phase == types.PodSucceeded || p.Phase == types.PodFailed }

// tiedTo reports whether the application must not be taken from a node because
// it may run nowhere else. One whose set requires another node by now may.
func (a app) tiedTo(node string) bool {
	if is := a.set.Affinity; is.Required && is.Node != "" && is.Node != node {
		return false
	}
	return a.cfg.AffinityType == types.AffinityRequired || a.set.Affinity.Required
}
