package topicview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOfOtherAgentsOnlyKnownFieldsAreShown(t *testing.T) {
	for name, row := range map[string]struct {
		agent, topic, raw, want string
	}{
		"all of zedkube's own": {"zedkube", "Anything", `{"Any":{"thing":1}}`, `{"Any":{"thing":1}}`},
		"of a scope too":       {"zedkube/scope", "Anything", `{"Any":1}`, `{"Any":1}`},
		"the fields of a type": {
			"zedagent", "NodeDrainRequest", `{"RequestedBy":2,"Context":"reboot","Pw":"x"}`,
			`{"RequestedBy":2,"Context":"reboot","(not shown)":"1 unknown fields"}`,
		},
		"at any depth": {
			"nim", "DeviceNetworkStatus", `{"Ports":[{"IfName":"eth0","Wifi":{"Pw":"x"},"AddrInfoList":[{"Addr":"10.0.0.1","Geo":"x"}]}]}`,
			`{"Ports":[{"IfName":"eth0","AddrInfoList":[{"Addr":"10.0.0.1"}]}],"(not shown)":"2 unknown fields"}`,
		},
		"the text of a setting that is known": {
			"zedagent", "ConfigItemValueMap", `{"GlobalSettings":{"k3s.version":{"Key":"k3s.version","StrValue":"v1"},"x.y":{"Key":"x.y","IntValue":3,"StrValue":"hush"}}}`,
			`{"GlobalSettings":{"k3s.version":{"Key":"k3s.version","StrValue":"v1"},"x.y":{"Key":"x.y","IntValue":3}},"(not shown)":"1 unknown fields"}`,
		},
		"listed fields of a topic without a type": {
			"zedmanager", "AppInstanceStatus", `{"DisplayName":"a","State":3,"IoAdapterList":[],"CloudInit":"x"}`,
			`{"DisplayName":"a","State":3,"(not shown)":"2 unknown fields"}`,
		},
		"nothing of an unknown one": {"domainmgr", "DomainConfig", `{"VncPasswd":"abc"}`, `null`},
		"nor of one that is a text": {"domainmgr", "DomainConfig", `"abc"`, `null`},
	} {
		if diff := cmp.Diff(parsed(t, row.want), Allowed(row.agent, row.topic, parsed(t, row.raw))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
