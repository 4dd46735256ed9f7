package types

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A section of docs/wire.md ends at the next title; its samples are fenced.
var (
	wireTitle  = regexp.MustCompile(`(?m)^##+ (.+)$`)
	wireSample = regexp.MustCompile("(?s)```json\n(.*?)```")
)

// wireSamples are the JSON values of each section of docs/wire.md.
func wireSamples(t *testing.T) map[string][]json.RawMessage {
	t.Helper()
	text, err := os.ReadFile("../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	samples := map[string][]json.RawMessage{}
	titles := append(wireTitle.FindAllSubmatchIndex(text, -1), []int{len(text)})
	for i, title := range titles[:len(titles)-1] {
		name := string(text[title[2]:title[3]])
		for _, fenced := range wireSample.FindAllSubmatch(text[title[0]:titles[i+1][0]], -1) {
			d := json.NewDecoder(bytes.NewReader(fenced[1]))
			for {
				var value json.RawMessage
				if err := d.Decode(&value); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				samples[name] = append(samples[name], value)
			}
		}
	}
	return samples
}

// The samples of docs/wire.md are abbreviated: they leave out fields that have
// nothing to say.
func TestTheSamplesOfTheDocumentDecode(t *testing.T) {
	sections := map[string][]any{
		"ConfigItemValueMap":  {&ConfigItemValue{}},
		"Certificates":        {&ControllerCert{}, &EdgeNodeCert{}},
		"Console file":        {&VmiVNCConfig{}},
		"Kube container":      {&KubeInitStatus{}},
		"EdgeNodeInfo":        {&EdgeNodeInfo{}},
		"AppInstanceConfig":   {&AppInstanceConfig{}},
		"NodeDrainRequest":    {&NodeDrainRequest{}},
		"DeviceNetworkStatus": {&DeviceNetworkStatus{}},
		"AssignableAdapters":  {&AssignableAdapters{}},
		"AppNetworkStatus":    {&AppNetworkStatus{}},
	}
	for _, v := range []any{
		&EdgeNodeClusterConfig{}, &EdgeNodeClusterStatus{}, &ENClusterAppStatus{}, &NodeDrainStatus{}, &KubeClusterInfo{},
		&KubeUserServices{}, &KubeLeaderElectInfo{}, &KubeConfig{}, &KubeClusterUpdateStatus{},
		&NodeDrainProgress{}, &ClusterMembership{}, &ClusterPeers{}, &WithoutCluster{}, &ClusterLeaveRequest{}, &AppRepairStatus{}, &AppConsoleStatus{}, &AppDetachRequest{},
		&K3sCertificates{}, &K3sVersionStatus{}, &K3sOverrideStatus{}, &K3sReleaseRequest{}, &K3sRetryRequest{}, &K3sRollbackRequest{}, &CertsResetRequest{}, &ClusterObject{}, &KubeLifecycle{},
	} {
		sections[reflect.TypeOf(v).Elem().Name()] = []any{v}
	}
	samples := wireSamples(t)
	for section, values := range sections {
		if len(samples[section]) != len(values) {
			t.Errorf("%s has %d samples, want %d", section, len(samples[section]), len(values))
			continue
		}
		for i, v := range values {
			d := json.NewDecoder(bytes.NewReader(samples[section][i]))
			if section != "AppInstanceConfig" { // it shows fields that zedkube does not read
				d.DisallowUnknownFields()
			}
			if err := d.Decode(v); err != nil {
				t.Errorf("%s: %v", section, err)
				continue
			}
			encoded, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			got := numbers(t, encoded)
			want := common(numbers(t, samples[section][i]), got)
			if diff := cmp.Diff(want, common(got, want)); diff != "" {
				t.Errorf("%s: -sample +encoded\n%s", section, diff)
			}
		}
	}
}
