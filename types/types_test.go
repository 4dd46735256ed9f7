package types

import (
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
)

var testUUID = uuid.MustParse("b3e2f1a0-1111-4222-8333-444455556666")

func TestCertificatesAreKeyedByTheirHashInLowerCaseHex(t *testing.T) {
	hash := []byte{0x0a, 0xbc, 0xff}
	if got := (ControllerCert{CertHash: hash}).Key(); got != "0abcff" {
		t.Errorf("controller's: %q", got)
	}
	if got := (EdgeNodeCert{CertID: hash}).Key(); got != "0abcff" {
		t.Errorf("device's: %q", got)
	}
}

func TestNodeNameIsTheDeviceNameInLowerCaseWithDashes(t *testing.T) {
	for device, want := range map[string]string{"Node_1": "node-1", "plain": "plain", "A_b_C.d": "a-b-c.d", "": ""} {
		if got := (EdgeNodeInfo{DeviceName: device}).NodeName(); got != want {
			t.Errorf("%q became %q, want %q", device, got, want)
		}
	}
}

func TestKubeNameIsTheNameDomainmgrGives(t *testing.T) {
	for _, tc := range []struct {
		display         string
		purge, localOne uint32
		want            string
	}{
		{"My_App", 2, 0, "my-app-b3e2f-2"},
		{"My_App", 2, 3, "my-app-b3e2f-5"},
		{"app", 0, 0, "app-b3e2f-0"},
		{"a b/c:d", 0, 0, "abcd-b3e2f-0"},
		{"a..b.-._c", 0, 0, "a-b-c-b3e2f-0"},
		{"Größe", 0, 0, "gre-b3e2f-0"},
		{"abcdefghijklmnopqrstuvwxyz0123", 1, 0, "abcdefghijklmnopqrstuvwxyz-b3e2f-1"},
		{"big", 4294967295, 1, "big-b3e2f-4294967296"},
	} {
		c := AppInstanceConfig{
			UUIDandVersion: UUIDandVersion{UUID: testUUID},
			DisplayName:    tc.display,
			PurgeCmd:       AppInstanceOpsCmd{Counter: tc.purge},
			LocalPurgeCmd:  AppInstanceOpsCmd{Counter: tc.localOne},
		}
		if got := c.KubeName(); got != tc.want {
			t.Errorf("%q became %q, want %q", tc.display, got, tc.want)
		}
	}
}

func TestEverythingButNoHyperIsAVirtualMachine(t *testing.T) {
	for mode := VirtualizationPV; mode <= VirtualizationLegacy; mode++ {
		c := AppInstanceConfig{FixedResources: VMConfig{VirtualizationMode: mode}}
		if got, want := c.IsVMI(), mode != VirtualizationNoHyper; got != want {
			t.Errorf("mode %d: %t, want %t", mode, got, want)
		}
	}
}

func TestOwnNodeIsFoundByLabelAndByNameOnlyWhileTheLabelIsMissing(t *testing.T) {
	info := EdgeNodeInfo{DeviceName: "Node_1", DeviceID: testUUID}
	own, other := testUUID.String(), uuid.NewString()
	for name, tc := range map[string]struct {
		nodes []Node
		want  string // "" where it is not found
	}{
		"no nodes":                 {nil, ""},
		"the label":                {[]Node{{Name: "renamed", UUID: own}, {Name: "x", UUID: other}}, "renamed"},
		"the label beats the name": {[]Node{{Name: "node-1"}, {Name: "renamed", UUID: own}}, "renamed"},
		"the name without a label": {[]Node{{Name: "node-1"}, {Name: "x", UUID: other}}, "node-1"},
		"the name, but the label is another device's": {[]Node{{Name: "node-1", UUID: other}}, ""},
		"neither": {[]Node{{Name: "node-2"}}, ""},
	} {
		nodes := map[string]Node{}
		for _, n := range tc.nodes {
			nodes[n.Name] = n
		}
		got, ok := OwnNode(nodes, info)
		if ok != (tc.want != "") || ok && got.Name != tc.want {
			t.Errorf("%s: found %q %t, want %q", name, got.Name, ok, tc.want)
		}
	}
	if n, ok := OwnNode(map[string]Node{"node-1": {Name: "node-1"}}, EdgeNodeInfo{}); ok {
		t.Errorf("found %q without knowing who we are", n.Name)
	}
}

func TestSettingsFallBackToTheirDefaults(t *testing.T) {
	item := func(v uint32) ConfigItemValue { return ConfigItemValue{ItemType: ConfigItemInt, IntValue: v} }
	m := ConfigItemValueMap{
		GlobalSettings: map[string]ConfigItemValue{
			SettingDrainTimeout:    item(2),
			SettingConfigInterval:  item(0),
			SettingDrainSkipAPI:    {ItemType: ConfigItemString, StrValue: "300", IntValue: 5},
			SettingDefaultLogLevel: {ItemType: ConfigItemString, StrValue: "warning"},
		},
		AgentSettings: map[string]map[string]ConfigItemValue{
			"zedkube": {SettingAgentLogLevel: {ItemType: ConfigItemString, StrValue: "debug"}},
			"quiet":   {SettingAgentLogLevel: {ItemType: ConfigItemString}},
		},
	}
	m.GlobalSettings["endless"] = ConfigItemValue{ItemType: ConfigItemInt, IntValue: math.MaxUint32}
	if got := m.Duration("endless", time.Hour, 0); got < 1e6*time.Hour {
		t.Errorf("a duration of %d hours is %v", uint32(math.MaxUint32), got)
	}
	for key, want := range map[string]time.Duration{
		SettingDrainTimeout:   2 * time.Hour,
		SettingConfigInterval: 24 * time.Hour, // zero is "not set"
		SettingDrainSkipAPI:   24 * time.Hour, // of another type
		"missing":             24 * time.Hour,
	} {
		if got := m.Duration(key, time.Hour, 24*time.Hour); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	for agent, want := range map[string]string{"zedkube": "debug", "quiet": "warning", "nobody": "warning"} {
		if got := m.LogLevel(agent); got != want {
			t.Errorf("log level of %s is %q, want %q", agent, got, want)
		}
	}
	if got := (ConfigItemValueMap{}).LogLevel("zedkube"); got != "" {
		t.Errorf("log level without settings is %q", got)
	}
}
