package types

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// fuzzDecoder feeds the decoder of a topic with anything. The corpus is the
// topic's sample and testdata/fuzz.
func fuzzDecoder[T any](f *testing.F) {
	kind := reflect.TypeFor[T]()
	sample, err := os.ReadFile("testdata/" + kind.Name() + ".json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sample)
	f.Fuzz(func(t *testing.T, data []byte) { decodeEncodeDecode(t, kind, data) })
}

// decodeEncodeDecode fails where data is a value of kind that has no spelling of
// its own, or one that is another value. What does not decode is an error and
// no panic.
func decodeEncodeDecode(t *testing.T, kind reflect.Type, data []byte) {
	first, second := reflect.New(kind).Interface(), reflect.New(kind).Interface()
	if json.Unmarshal(data, first) != nil {
		return
	}
	_ = fmt.Sprintf("%+v", first) // as a log line would
	spelled, err := json.Marshal(first)
	if err != nil && strings.HasSuffix(err.Error(), noSuchZone) {
		return
	}
	if err != nil {
		t.Fatalf("it decodes and does not encode: %v\n%s", err, data)
	}
	if err := json.Unmarshal(spelled, second); err != nil {
		t.Fatalf("what it encodes to does not decode: %v\n%s\n%s", err, spelled, data)
	}
	// The first is fast. The second knows times, and that an empty list that is
	// left out where it is empty is none.
	if !reflect.DeepEqual(first, second) && !cmp.Equal(first, second, cmpopts.EquateEmpty()) {
		t.Fatalf("it is another value after encoding\n%s\n%s", cmp.Diff(first, second), data)
	}
	if again, err := json.Marshal(second); err != nil || !bytes.Equal(spelled, again) {
		t.Fatalf("spelled again it is %s (%v)\nnot %s\n%s", again, err, spelled, data)
	}
}

// noSuchZone is the one thing that decodes and does not encode: a time 24 hours
// from UTC, which package time reads and refuses to write. Go programs, EVE's
// agents among them, never send it; a subscriber who compares such a value with
// itself takes it for a new one.
const noSuchZone = "timezone hour outside of range [0,23]"

func TestATimeOneDayFromUTCDecodesAndDoesNotEncode(t *testing.T) {
	var r NodeDrainRequest
	if err := json.Unmarshal([]byte(`{"RequestedAt":"2026-03-04T05:06:07+24:00"}`), &r); err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(r); err == nil || !strings.HasSuffix(err.Error(), noSuchZone) {
		t.Errorf("it encodes with %v: noSuchZone can go", err)
	}
}

func FuzzAppInstanceConfig(f *testing.F)       { fuzzDecoder[AppInstanceConfig](f) }
func FuzzAppNetworkStatus(f *testing.F)        { fuzzDecoder[AppNetworkStatus](f) }
func FuzzAssignableAdapters(f *testing.F)      { fuzzDecoder[AssignableAdapters](f) }
func FuzzCipherBlockStatus(f *testing.F)       { fuzzDecoder[CipherBlockStatus](f) }
func FuzzCipherMetrics(f *testing.F)           { fuzzDecoder[CipherMetrics](f) }
func FuzzClusterLeaveRequest(f *testing.F)     { fuzzDecoder[ClusterLeaveRequest](f) }
func FuzzClusterMembersJournal(f *testing.F)   { fuzzDecoder[ClusterMembersJournal](f) }
func FuzzClusterMembership(f *testing.F)       { fuzzDecoder[ClusterMembership](f) }
func FuzzConfigItemValueMap(f *testing.F)      { fuzzDecoder[ConfigItemValueMap](f) }
func FuzzControllerCert(f *testing.F)          { fuzzDecoder[ControllerCert](f) }
func FuzzDeviceNetworkStatus(f *testing.F)     { fuzzDecoder[DeviceNetworkStatus](f) }
func FuzzEdgeNodeCert(f *testing.F)            { fuzzDecoder[EdgeNodeCert](f) }
func FuzzEdgeNodeClusterConfig(f *testing.F)   { fuzzDecoder[EdgeNodeClusterConfig](f) }
func FuzzEdgeNodeClusterStatus(f *testing.F)   { fuzzDecoder[EdgeNodeClusterStatus](f) }
func FuzzEdgeNodeInfo(f *testing.F)            { fuzzDecoder[EdgeNodeInfo](f) }
func FuzzENClusterAppStatus(f *testing.F)      { fuzzDecoder[ENClusterAppStatus](f) }
func FuzzK3sCertificates(f *testing.F)         { fuzzDecoder[K3sCertificates](f) }
func FuzzK3sOverrideStatus(f *testing.F)       { fuzzDecoder[K3sOverrideStatus](f) }
func FuzzK3sReleaseRequest(f *testing.F)       { fuzzDecoder[K3sReleaseRequest](f) }
func FuzzK3sRetryRequest(f *testing.F)         { fuzzDecoder[K3sRetryRequest](f) }
func FuzzK3sRollbackRequest(f *testing.F)      { fuzzDecoder[K3sRollbackRequest](f) }
func FuzzCertsResetRequest(f *testing.F)       { fuzzDecoder[CertsResetRequest](f) }
func FuzzKubeLifecycle(f *testing.F)           { fuzzDecoder[KubeLifecycle](f) }
func FuzzKubeLifecycleJournal(f *testing.F)    { fuzzDecoder[KubeLifecycleJournal](f) }
func FuzzK3sVersionStatus(f *testing.F)        { fuzzDecoder[K3sVersionStatus](f) }
func FuzzKubeClusterInfo(f *testing.F)         { fuzzDecoder[KubeClusterInfo](f) }
func FuzzKubeClusterUpdateStatus(f *testing.F) { fuzzDecoder[KubeClusterUpdateStatus](f) }
func FuzzKubeConfig(f *testing.F)              { fuzzDecoder[KubeConfig](f) }
func FuzzKubeInitStatus(f *testing.F)          { fuzzDecoder[KubeInitStatus](f) }
func FuzzKubeLeaderElectInfo(f *testing.F)     { fuzzDecoder[KubeLeaderElectInfo](f) }
func FuzzKubeNodeConditions(f *testing.F)      { fuzzDecoder[KubeNodeConditions](f) }
func FuzzKubeUserServices(f *testing.F)        { fuzzDecoder[KubeUserServices](f) }
func FuzzNodeAgentStatus(f *testing.F)         { fuzzDecoder[NodeAgentStatus](f) }
func FuzzNodeDrainJournal(f *testing.F)        { fuzzDecoder[NodeDrainJournal](f) }
func FuzzNodeDrainProgress(f *testing.F)       { fuzzDecoder[NodeDrainProgress](f) }
func FuzzNodeDrainRequest(f *testing.F)        { fuzzDecoder[NodeDrainRequest](f) }
func FuzzNodeDrainStatus(f *testing.F)         { fuzzDecoder[NodeDrainStatus](f) }
func FuzzVmiVNCConfig(f *testing.F)            { fuzzDecoder[VmiVNCConfig](f) }
func FuzzWatchdogBeat(f *testing.F)            { fuzzDecoder[WatchdogBeat](f) }
func FuzzZedAgentStatus(f *testing.F)          { fuzzDecoder[ZedAgentStatus](f) }
