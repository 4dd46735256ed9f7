package joinplan

import (
	"fmt"
	"net/netip"

	"github.com/zedkube/zedkube/types"
)

// address is whether this device has the address that it is to join with.
func (f Facts) address(all *findings) {
	o := f.Own
	if !o.Address.IsValid() {
		all.add("address", Unknown, "name it: --address ADDRESS", "It is not known which address this device is to have in the cluster's network.")
		return
	}
	for _, p := range f.Peers {
		if p.Address == o.Address {
			all.add("address", Blocks, "give one of them another address at the controller", "This device and the member to join through have the same address, %s.", o.Address)
		} else if o.Network.IsValid() && !o.Network.Contains(p.Address.WithZone("")) {
			all.add("address", Warn, "correct the prefix or the join server at the controller", "%s is not in the own network %s: it is reached over a router, and who asks from there is not answered about the way back.", p.Address, o.Network.Masked())
		}
	}
	v, remedy, what := f.where()
	all.add("address", v, remedy, "%s", what)
}

// where is where the own address is.
func (f Facts) where() (v Verdict, remedy, what string) {
	o := f.Own
	if o.Kernel == nil {
		return Unknown, "", fmt.Sprintf("Whether this device has the address %s is unknown: its interfaces cannot be read.", o.Address)
	}
	on, has := holder(o.Kernel, o.Address)
	switch {
	case has && o.Interface != "" && on.Name != o.Interface:
		return Blocks, "remove it there, or correct the interface at the controller", fmt.Sprintf("The address %s is on interface %s, not on the cluster interface %s.", o.Address, on.Name, o.Interface)
	case has && o.Network.IsValid() && on.Prefix.Bits() < on.Prefix.Addr().BitLen() && on.Prefix.Bits() != o.Network.Bits():
		return Warn, "correct the prefix at the controller", fmt.Sprintf("The address %s is on interface %s as a /%d, and configured as a /%d.", o.Address, on.Name, on.Prefix.Bits(), o.Network.Bits())
	case has:
		return OK, "", fmt.Sprintf("The address %s is on interface %s.", o.Address, on.Name)
	}
	return f.missing()
}

// missing is why the own address is not there.
func (f Facts) missing() (v Verdict, remedy, what string) {
	o := f.Own
	what = fmt.Sprintf("No interface of this device has the address %s", o.Address)
	port, known := portOf(o)
	switch {
	case !o.HasStatus:
		return Blocks, "is zedkube alive, and the device in a cluster at the controller?", what + ", and zedkube has not published EdgeNodeClusterStatus, without which nim does not give it."
	case o.Ports == nil:
		return Blocks, "is nim alive?", what + ", and DeviceNetworkStatus, which would say why, cannot be read."
	case !known && o.Label != "":
		return Blocks, "correct the interface of the cluster, or the labels of the ports, at the controller", what + fmt.Sprintf(": no port has the label %q.", o.Label)
	case known && port.InvalidConfig:
		return Blocks, "correct the port at the controller", what + fmt.Sprintf(": the configuration of port %s (%s) is not valid.", port.Logicallabel, port.IfName)
	case known && port.IfName == "":
		return Blocks, "is the hardware there?", what + fmt.Sprintf(": port %s has no interface.", port.Logicallabel)
	}
	return Blocks, "look at DeviceNetworkStatus and at nim's log", what + ": nim has not given it to the port yet."
}

func holder(kernel []Interface, ip netip.Addr) (Interface, bool) {
	for _, i := range kernel {
		if i.Prefix.Addr().Unmap().WithZone("") == ip.WithZone("") {
			return i, true
		}
	}
	return Interface{}, false
}

// portOf is nim's port for the cluster.
func portOf(o Own) (types.NetworkPortStatus, bool) {
	for _, p := range o.Ports {
		if o.Label != "" && p.Logicallabel == o.Label || o.Label == "" && o.Interface != "" && p.IfName == o.Interface {
			return p, true
		}
	}
	return types.NetworkPortStatus{}, false
}
