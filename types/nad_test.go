package types

import "testing"

func TestAPortHasAnAttachmentUnderItsOwnNameOrNone(t *testing.T) {
	for ifname, ok := range map[string]bool{
		"eth1": true, "enp0s31f6": true, "eth0.100": true, "15-letters-long": true, "0": true,
		"": false, ".": false, "..": false, "sixteen-letters-": false, "sixteen.letters1": false,
		"a/b": false, "eth0:1": false, "eth 1": false, "eth1\n": false, "eth1\x00": false,
		"Eth1": false, "eth_1": false, "eth1-": false, "eth1.": false, "eth..1": false, ".eth": false, "\xff": false, "ü": false,
	} {
		name, err := NADName(ifname)
		if (err == nil) != ok || ok && name != "host-"+ifname {
			t.Errorf("%q: %q, %v", ifname, name, err)
		}
		if back, is := NADInterface("host-" + ifname); is != ok || ok && back != ifname {
			t.Errorf("host-%s is for %q: %v", ifname, back, is)
		}
	}
	for _, name := range []string{"", "eth1", "sriov-eth1-vf0", "network-instance-attachment"} {
		if _, is := NADInterface(name); is {
			t.Errorf("%s is taken for one of ours", name)
		}
	}
}
