package eveapi_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/zedkube/zedkube/test/eveapi"
	"github.com/zedkube/zedkube/types"
)

// The device, the other master, the cluster, the applications and the volume of
// testdata/edgedevconfig.json.
var (
	device  = uuid.MustParse("c4a1d7e2-90b3-4d58-8a6e-1be0f7723c05")
	other   = uuid.MustParse("0d6c64e5-7d45-4f18-9f35-8ef1f5b86c33")
	plant   = uuid.MustParse("5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11")
	printer = uuid.MustParse("9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34")
	broker  = uuid.MustParse("1e0c34d1-5f0e-4f4f-a3b5-9c6c3c0b7d10")
	recipes = uuid.MustParse("7c1b7f0e-0b52-4b0c-8d0a-3a1f9e6d2b44")
)

func sample(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("testdata/edgedevconfig.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// read is what device publishes of a document in JSON.
func read(t *testing.T, data string) eveapi.Configuration {
	t.Helper()
	d, err := eveapi.ParseJSON([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.For(device)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// published is all of the sample but its cluster.
func published() eveapi.Configuration {
	text := func(key, v string) types.ConfigItemValue {
		return types.ConfigItemValue{Key: key, ItemType: types.ConfigItemString, StrValue: v}
	}
	return eveapi.Configuration{
		Apps: []types.AppInstanceConfig{{
			UUIDandVersion: types.UUIDandVersion{UUID: printer, Version: "3"}, DisplayName: "Label_Printer",
			FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationHVM, EnableVnc: true, VncDisplay: 7},
			Activate:       true, DisableLogs: true, RemoteConsole: true,
			IoAdapterList:      []types.IoAdapter{{Type: types.IoNetEth, Name: "eth4"}, {Type: types.IoNetEthVF, Name: "eth5vf1"}},
			PurgeCmd:           types.AppInstanceOpsCmd{Counter: 3, ApplyTime: "later"},
			IsDesignatedNodeID: true, AffinityType: types.AffinityRequired,
		}, {
			UUIDandVersion: types.UUIDandVersion{UUID: broker, Version: "1"}, DisplayName: "mqtt",
			FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationNoHyper},
		}},
		Volumes: []types.VolumeConfig{{
			VolumeID: recipes, MaxVolSize: 1 << 30, ReadOnly: true, GenerationCounter: 2, DisplayName: "recipes",
			DesignatedNodeID: device, ReplicaNodeIDs: []uuid.UUID{other},
		}},
		Settings: types.ConfigItemValueMap{
			GlobalSettings: map[string]types.ConfigItemValue{
				"timer.config.interval":     {Key: "timer.config.interval", ItemType: types.ConfigItemInt, IntValue: 90},
				"k3s.version":               text("k3s.version", "v1.34.2+k3s1"),
				"some.other.agents.setting": text("some.other.agents.setting", "true"),
			},
			AgentSettings: map[string]map[string]types.ConfigItemValue{"zedkube": {"debug.loglevel": text("debug.loglevel", "debug")}},
		},
		ResourceLabels: map[string]string{"gpu": "l4"},
	}
}

func TestWholeDocumentBecomesWhatZedagentPublishes(t *testing.T) {
	got := read(t, sample(t))
	if diff := cmp.Diff(asJSON(t, plantConfig()), asJSON(t, got.Cluster)); diff != "" {
		t.Errorf("cluster: -want +got\n%s", diff)
	}
	want := published()
	want.Cluster = got.Cluster
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestDocumentThatIsWrittenIsReadTheSame(t *testing.T) {
	d, err := eveapi.ParseJSON([]byte(sample(t)))
	if err != nil {
		t.Fatal(err)
	}
	data, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(read(t, sample(t)), read(t, string(data))); diff != "" {
		t.Errorf("-first +again\n%s", diff)
	}
	again, err := d.JSON()
	if err != nil || string(again) != string(data) {
		t.Errorf("written twice it is not the same: %v", err)
	}
}

func TestWhatZedagentPublishesIsWrittenAndReadTheSame(t *testing.T) {
	want := read(t, sample(t))
	d := eveapi.New(device)
	for range 2 { // the second time in place of the first
		d.SetCluster(want.Cluster)
		d.SetApp(want.Apps[0], device)
		d.SetApp(want.Apps[1], other)
		d.SetVolume(want.Volumes[0])
		if err := d.SetSettings(want.Settings); err != nil {
			t.Fatal(err)
		}
	}
	d.Beside.ResourceLabels = want.ResourceLabels
	data, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, read(t, string(data))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestBinaryDocumentLacksOnlyWhatIsBesideTheMessage(t *testing.T) {
	d, err := eveapi.ParseJSON([]byte(sample(t)))
	if err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(d.Message)
	if err != nil {
		t.Fatal(err)
	}
	binary, err := eveapi.ParseBinary(data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := binary.For(device)
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, sample(t))
	want.Cluster.MasterNodeIDs, want.Cluster.EnableNativeK8SOrchestration, want.Cluster.LBInterfaces = nil, false, nil
	want.Volumes[0].ReplicaNodeIDs, want.ResourceLabels = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if _, err := eveapi.ParseBinary([]byte("{}")); err == nil {
		t.Error("JSON passes for binary")
	}
}

func TestBadDocumentIsAnErrorAndNothingElse(t *testing.T) {
	good := sample(t)
	for name, change := range map[string][2]string{
		"cut":                           {good[len(good)-20:], ""},
		"a field of another type":       {`"activate": true`, `"activate": "yes"`},
		"a mode that is no mode":        {`"NOHYPER"`, `260`},
		"masters that are no list":      {`["c4a1d7e2-90b3-4d58-8a6e-1be0f7723c05", "0d6c`, `{"a":"0d6c`},
		"one master":                    {`["c4a1d7e2-90b3-4d58-8a6e-1be0f7723c05", "0d6c64e5-7d45-4f18-9f35-8ef1f5b86c33"]`, `"c4a1d7e2-90b3-4d58-8a6e-1be0f7723c05"`},
		"a switch that is a text":       {`"enableNativeK8sOrchestration": true`, `"enableNativeK8sOrchestration": "true"`},
		"labels that are no map":        {`{"gpu": "l4"}`, `["gpu"]`},
		"one field under two names":     {`"ResourceLabel":`, `"resource_label": {}, "ResourceLabel":`},
		"an app without a UUID":         {`"9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34"`, `""`},
		"two apps with one UUID":        {`"1e0c34d1-5f0e-4f4f-a3b5-9c6c3c0b7d10"`, `"9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34"`},
		"an app's node that is no UUID": {`"designatedNodeId": "0d6c`, `"designatedNodeId": "node-0d6c`},
		"a volume without a UUID":       {`"7c1b7f0e-0b52-4b0c-8d0a-3a1f9e6d2b44"`, `"recipes"`},
		"a volume of a negative size":   {`"1073741824"`, `"-1"`},
		"a replica on what is no UUID":  {`"ReplicaNodeID": ["`, `"ReplicaNodeID": ["node-`},
		"a number that is none":         {`"value": "90"`, `"value": "90s"`},
		"a number that is too large":    {`"value": "90"`, `"value": "4294967296"`},
		"a setting that is there twice": {`"key": "k3s.version"`, `"key": "timer.config.interval"`},
		"a volume's node that is no UUID": {`"designatedNodeId": "c4a1d7e2-90b3-4d58-8a6e-1be0f7723c05",
      "ReplicaNodeID"`, `"designatedNodeId": "me", "ReplicaNodeID"`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("%s: the sample has no %s", name, change[0])
		}
		d, err := eveapi.ParseJSON([]byte(bad))
		if err != nil {
			if d.Message != nil || d.Beside.MasterNodeUUIDs != nil {
				t.Errorf("%s: half a document: %+v", name, d)
			}
			continue
		}
		c, err := d.For(device)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if !cmp.Equal(c, eveapi.Configuration{}) {
			t.Errorf("%s: half a configuration: %+v", name, c)
		}
	}
}

func TestAppThatNamesNoNodeIsEverybodys(t *testing.T) {
	got := read(t, strings.Replace(sample(t), `"designatedNodeId": "0d6c64e5-7d45-4f18-9f35-8ef1f5b86c33"`, `"designatedNodeId": ""`, 1))
	if !got.Apps[1].IsDesignatedNodeID {
		t.Error("this device is not its designated node")
	}
}

func TestFieldsBesideTheMessageHaveEitherSpelling(t *testing.T) {
	want := read(t, sample(t))
	for now, then := range map[string]string{
		"master_node_uuids": "masterNodeUuids", "enableNativeK8sOrchestration": "enable_native_k8s_orchestration",
		"ResourceLabel": "resourceLabel", "ReplicaNodeID": "replica_node_id",
	} {
		if diff := cmp.Diff(want, read(t, strings.Replace(sample(t), `"`+now+`"`, `"`+then+`"`, 1))); diff != "" {
			t.Errorf("%s: -want +got\n%s", then, diff)
		}
	}
	got := read(t, strings.Replace(sample(t), `{"gpu": "l4"}`, `null`, 1))
	if got.ResourceLabels != nil {
		t.Errorf("null is %v", got.ResourceLabels)
	}
}

func TestSettingThatIsNeitherNumberNorTextIsNotWritten(t *testing.T) {
	d, err := eveapi.ParseJSON([]byte(sample(t)))
	if err != nil {
		t.Fatal(err)
	}
	err = d.SetSettings(types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{"a": {Key: "a", ItemType: types.ConfigItemTriState}}})
	if err == nil || len(d.Message.ConfigItems) != 4 {
		t.Errorf("error %v, %d settings left", err, len(d.Message.ConfigItems))
	}
}
