package types

import "strings"

// vmiSuffix is how many characters KubeVirt appends, without a separator, to
// the name of the VMI replica set to name a VMI.
const vmiSuffix = 5

// Owns reports whether p runs the current generation of the application. Names
// are compared whole: app-1 is not app-10 (docs/wire.md, "Names of app objects").
func (c AppInstanceConfig) Owns(p Pod) bool {
	name := c.KubeName()
	if !c.IsVMI() {
		return p.App == name || p.replicaSet() == name
	}
	if !c.launches(p) {
		return false
	}
	vmi := p.VMIName()
	return vmi == "" || strings.HasPrefix(vmi, name) && len(vmi) == len(name)+vmiSuffix
}

// OwnsAny reports whether p runs the current generation of the application or
// another one, such as the one that a purge replaces.
func (c AppInstanceConfig) OwnsAny(p Pod) bool {
	if c.IsVMI() {
		return c.launches(p)
	}
	name := unnumbered(c.KubeName())
	return unnumbered(p.App) == name || unnumbered(p.replicaSet()) == name
}

// launches reports whether p is the launcher pod of a virtual machine of the
// application.
func (c AppInstanceConfig) launches(p Pod) bool {
	id, _, _ := strings.Cut(p.AppDomain, ".")
	return strings.EqualFold(id, c.UUIDandVersion.UUID.String())
}

// unnumbered is the name of a replica set without its generation; "" where it
// has none.
func unnumbered(name string) string {
	i := strings.LastIndexByte(name, '-')
	if i < 0 || i == len(name)-1 || strings.Trim(name[i+1:], "0123456789") != "" {
		return ""
	}
	return name[:i]
}

func (p Pod) replicaSet() string {
	if p.Owner.Kind != KindReplicaSet {
		return ""
	}
	return p.Owner.Name
}

// VMIName is the virtual machine instance that p launches, or "".
func (p Pod) VMIName() string {
	if p.VMI == "" && p.Owner.Kind == "VirtualMachineInstance" {
		return p.Owner.Name
	}
	return p.VMI
}
