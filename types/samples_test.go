package types

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// topic is what the sample of one topic is decoded into. EVE publishes more
// fields than zedkube reads where partial is set.
type topic struct {
	value   any
	partial bool
}

var topics = []topic{
	{value: &EdgeNodeClusterConfig{}},
	{value: &EdgeNodeClusterStatus{}},
	{value: &AppInstanceConfig{}, partial: true},
	{value: &VolumeConfig{}, partial: true},
	{value: &ConfigItemValueMap{}},
	{value: &NodeDrainRequest{}},
	{value: &NodeDrainStatus{}},
	{value: &DeviceNetworkStatus{}, partial: true},
	{value: &EdgeNodeInfo{}},
	{value: &ZedAgentStatus{}, partial: true},
	{value: &NodeAgentStatus{}, partial: true},
	{value: &ENClusterAppStatus{}},
	{value: &KubeClusterInfo{}},
	{value: &KubeReportHealth{}},
	{value: &KubeLeaderElectInfo{}},
	{value: &KubeConfig{}},
	{value: &KubeUserServices{}},
	{value: &CipherBlockStatus{}},
	{value: &CipherMetrics{}},
	{value: &KubeClusterUpdateStatus{}},
	{value: &ControllerCert{}},
	{value: &EdgeNodeCert{}},
	{value: &AssignableAdapters{}, partial: true},
	{value: &KubeInitStatus{}},
	{value: &VmiVNCConfig{}},
	{value: &WatchdogBeat{}},
	{value: &ClusterMembership{}},
	{value: &ClusterPeers{}},
	{value: &WithoutCluster{}},
	{value: &ClusterLeaveRequest{}},
	{value: &K3sCertificates{}},
	{value: &K3sVersionStatus{}},
	{value: &K3sOverrideStatus{}},
	{value: &K3sReleaseRequest{}},
	{value: &K3sRetryRequest{}},
	{value: &K3sRollbackRequest{}},
	{value: &CertsResetRequest{}},
	{value: &KubeLifecycle{}},
	{value: &KubeLifecycleJournal{}},
	{value: &WorkloadsRequest{}},
	{value: &WorkloadsStatus{}},
	{value: &ClusterMembers{}},
	{value: &KnownNode{}},
	{value: &ClusterMembersJournal{}},
	{value: &KubeNodeConditions{}},
	{value: &ClusterNodeStatus{}},
	{value: &ClusterObject{}},
	{value: &NodeDrainProgress{}},
	{value: &NodeDrainJournal{}},
	{value: &KubeStorageStatus{}},
	{value: &KubeNodeMetrics{}},
	{value: &KubeClusterMetrics{}},
	{value: &MetricsLook{}},
	{value: &NetworkInstanceStatus{}, partial: true},
	{value: &AppNetworkConfig{}},
	{value: &PodMarkers{}},
	{value: &AppNetworkStatus{}, partial: true},
	{value: &MountRecovery{}},
}

func (tp topic) name() string { return reflect.TypeOf(tp.value).Elem().Name() }

func numbers(t *testing.T, data []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestEveryTopicDecodesAndEncodesToTheSameJSON(t *testing.T) {
	for _, tp := range topics {
		t.Run(tp.name(), func(t *testing.T) {
			sample, err := os.ReadFile("testdata/" + tp.name() + ".json")
			if err != nil {
				t.Fatal(err)
			}
			d := json.NewDecoder(bytes.NewReader(sample))
			if !tp.partial {
				d.DisallowUnknownFields()
			}
			if err := d.Decode(tp.value); err != nil {
				t.Fatal(err)
			}
			encoded, err := json.Marshal(tp.value)
			if err != nil {
				t.Fatal(err)
			}
			want, got := numbers(t, sample), numbers(t, encoded)
			if tp.partial {
				want = common(want, got)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-sample +encoded\n%s", diff)
			}
			if unset := zeros(reflect.ValueOf(tp.value).Elem(), tp.name()); len(unset) > 0 {
				t.Errorf("the sample does not set %s", strings.Join(unset, ", "))
			}
		})
	}
}

func TestEverySampleHasAType(t *testing.T) {
	known := map[string]bool{}
	for _, tp := range topics {
		known[tp.name()+".json"] = true
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[filepath.Base(f)] {
			t.Errorf("%s belongs to no topic", f)
		}
	}
}

// common is sample without the fields that got does not have.
func common(sample, got any) any {
	switch got := got.(type) {
	case map[string]any:
		s, ok := sample.(map[string]any)
		if !ok {
			return sample
		}
		kept := map[string]any{}
		for k, v := range s {
			if g, ok := got[k]; ok {
				kept[k] = common(v, g)
			}
		}
		return kept
	case []any:
		s, ok := sample.([]any)
		if !ok || len(s) != len(got) {
			return sample
		}
		kept := make([]any, len(s))
		for i := range s {
			kept[i] = common(s[i], got[i])
		}
		return kept
	}
	return sample
}

// zeros names the fields of v that have their zero value.
func zeros(v reflect.Value, name string) (unset []string) {
	if v.IsZero() {
		return []string{name}
	}
	switch v.Kind() {
	case reflect.Pointer:
		return zeros(v.Elem(), name)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				unset = append(unset, zeros(v.Field(i), name+"."+f.Name)...)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if v.Type().Elem().Kind() != reflect.Uint8 {
				unset = append(unset, zeros(v.Index(i), name)...)
			}
		}
	}
	return unset
}

func TestZeroValuesAreSpelledLikeEVE(t *testing.T) {
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"nil IP, prefix and lists": {
			EdgeNodeClusterStatus{},
			`{"ClusterName":"","ClusterID":{"UUID":"00000000-0000-0000-0000-000000000000","Version":""},"ClusterInterface":"","ClusterIPPrefix":null,` +
				`"ClusterIPIsReady":false,"IsWorkerNode":false,"JoinServerIP":"","BootstrapNode":false,"EncryptedClusterToken":"","LBInterfaces":null,"LBIPPrefixes":null,` +
				`"LBConfigError":{"Error":"","ErrorTime":"0001-01-01T00:00:00Z","ErrorSeverity":0,"ErrorRetryCondition":"","ErrorEntities":null},` +
				`"Error":{"Error":"","ErrorTime":"0001-01-01T00:00:00Z","ErrorSeverity":0,"ErrorRetryCondition":"","ErrorEntities":null}}`,
		},
		"embedded error": {
			CipherContext{},
			`{"ContextID":"","HashScheme":0,"KeyExchangeScheme":0,"EncryptionScheme":0,"ControllerCertHash":null,"DeviceCertHash":null,` +
				`"Error":"","ErrorTime":"0001-01-01T00:00:00Z","ErrorSeverity":0,"ErrorRetryCondition":"","ErrorEntities":null}`,
		},
		"no load balancer": {
			KubeUserServices{}.LBPoolStatus,
			`null`,
		},
		"large fields": {
			KubeClusterInfo{},
			`{"Nodes":null,"pubsub-large-AppPods":null,"pubsub-large-AppVMIs":null,` +
				`"pubsub-large-Storage":{"Health":0,"TransitionTime":"0001-01-01T00:00:00Z","Volumes":null},"PodNsInfo":null}`,
		},
		"console of ours": {
			VmiVNCConfig{VMIName: "vm", VNCPort: 5901},
			`{"VMIName":"vm","VNCPort":5901}`,
		},
		"update without an error": {
			KubeClusterUpdateStatus{Component: KubeCompCdi, Status: KubeCompUpdateCompleted},
			`{"CurrentNode":"","Component":5,"Status":5,"DestinationKubeUpdateVersion":0,` +
				`"Error":"","ErrorTime":"0001-01-01T00:00:00Z","ErrorSeverity":0,"ErrorRetryCondition":"","ErrorEntities":null}`,
		},
		"no certificate": {
			EdgeNodeCert{},
			`{"HashAlgo":0,"CertID":null,"CertType":0,"Cert":null,"IsTpm":false,"MetaDataItems":null}`,
		},
		"mask, host bits kept": {
			&net.IPNet{IP: net.IPv4(10, 244, 244, 2), Mask: net.CIDRMask(28, 32)},
			`{"IP":"10.244.244.2","Mask":"////8A=="}`,
		},
	} {
		got, err := json.Marshal(tc.value)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != tc.want {
			t.Errorf("%s: got %s\nwant %s", name, got, tc.want)
		}
	}
}

func TestAlphabeticalKeysAndNullsDecode(t *testing.T) {
	const sent = `{"BootstrapNode":true,"CipherToken":{"CipherContext":null,"ErrorEntities":null},"ClusterIPPrefix":null,"Initialized":true,` +
		`"JoinServerIP":"","LBInterfaces":null,"MasterNodeIDs":null,"NotYetInvented":{"a":[1]},"Valid":true}`
	var got EdgeNodeClusterConfig
	if err := json.Unmarshal([]byte(sent), &got); err != nil {
		t.Fatal(err)
	}
	want := EdgeNodeClusterConfig{Initialized: true, Valid: true, BootstrapNode: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
