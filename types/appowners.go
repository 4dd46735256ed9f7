package types

import "strings"

// AppOwners tells whose pod one is, among all applications: what OwnsAny of each
// of them would tell, without asking each.
type AppOwners struct {
	configs  map[string]AppInstanceConfig
	machines map[string]string // the first key by UUID, of virtual machines
	sets     map[string]string // the first key by name without the generation, of the others
}

// NewAppOwners looks at all configurations once; they are by key.
func NewAppOwners(configs map[string]AppInstanceConfig) AppOwners {
	o := AppOwners{configs: configs, machines: map[string]string{}, sets: map[string]string{}}
	for key, c := range configs {
		in, name := o.sets, ""
		if c.IsVMI() {
			in, name = o.machines, c.UUIDandVersion.UUID.String()
		} else {
			name = unnumbered(c.KubeName())
		}
		if first, ok := in[name]; !ok || key < first {
			in[name] = key
		}
	}
	return o
}

// Of returns the application of which p runs a generation; where there are
// several, that with the first key.
func (o AppOwners) Of(p Pod) (AppInstanceConfig, bool) {
	id, _, _ := strings.Cut(p.AppDomain, ".")
	first, found := "", false
	look := func(in map[string]string, name string) {
		if key, ok := in[name]; ok && (!found || key < first) {
			first, found = key, true
		}
	}
	look(o.machines, strings.ToLower(id))
	look(o.sets, unnumbered(p.App))
	look(o.sets, unnumbered(p.replicaSet()))
	return o.configs[first], found
}
