package player

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// off is a kube container that is only switched off.
type off struct{ Kube }

func (off) Leave(context.Context) error { return nil }

// device is one that speaks into tables in memory and says status.
func device() (d *Device, status *pubsub.Table[types.NodeDrainStatus], request *pubsub.Table[types.NodeDrainRequest]) {
	status, request = &pubsub.Table[types.NodeDrainStatus]{}, &pubsub.Table[types.NodeDrainRequest]{}
	return &Device{
		Kube: off{}, topics: topics{drainStatus: status, drainRequest: request}, said: map[string]string{},
	}, status, request
}

func (d *Device) rebootsAt(t *testing.T) bool {
	t.Helper()
	err := d.zedagent(t.Context())
	if err != nil && !errors.Is(err, errReboot) {
		t.Fatal(err)
	}
	return err != nil
}

func TestRebootCommandMeetsADrainAsZedagentDoes(t *testing.T) {
	const (
		goes   = "reboots"
		waits  = "waits"
		drains = "waits, with a request"
	)
	want := map[types.DrainStatus]string{
		types.DrainUnknown: goes, types.DrainNotSupported: goes, types.DrainNotRequested: drains, types.DrainRequested: waits,
		types.DrainStarting: waits, types.DrainCordoned: goes, types.DrainFailedCordon: drains, types.DrainRetrying: waits,
		types.DrainFailedDrain: drains, types.DrainComplete: goes,
	}
	for s, want := range want {
		d, status, request := device()
		// Addressed to the other requester: that is not looked at.
		_ = status.Publish(types.Global, types.NodeDrainStatus{Status: s, RequestedBy: types.DrainRequesterUpdate})
		d.commanded = true
		got := waits
		if d.rebootsAt(t) {
			got = goes
		} else if r, ok := request.Get(types.Global); ok && r.RequestedBy == types.DrainRequesterDeviceOp {
			got = drains
		}
		if got != want {
			t.Errorf("in %s it %s, want: %s", s, got, want)
		}
	}
}

func TestDeferredRebootGoesAheadAtCompleteOnly(t *testing.T) {
	d, status, _ := device()
	say := func(s types.DrainStatus, by types.DrainRequester) bool {
		_ = status.Publish(types.Global, types.NodeDrainStatus{Status: s, RequestedBy: by})
		return d.rebootsAt(t)
	}
	say(types.DrainNotRequested, types.DrainRequesterNone)
	d.commanded = true
	for _, s := range []types.DrainStatus{
		types.DrainNotRequested, types.DrainRequested, types.DrainStarting, types.DrainCordoned, types.DrainRetrying, types.DrainNotRequested,
	} {
		if say(s, types.DrainRequesterDeviceOp) {
			t.Fatalf("it reboots in %s", s)
		}
	}
	if say(types.DrainComplete, types.DrainRequesterUpdate) {
		t.Fatal("it reboots at what is addressed to another")
	}
	if !say(types.DrainComplete, types.DrainRequesterDeviceOp) {
		t.Fatal("it does not reboot at COMPLETE")
	}
}

func TestFailedDrainLeavesTheOperationDeferredUntilTheNextCommand(t *testing.T) {
	d, status, request := device()
	say := func(s types.DrainStatus) {
		t.Helper()
		_ = status.Publish(types.Global, types.NodeDrainStatus{Status: s, RequestedBy: types.DrainRequesterDeviceOp})
		if d.rebootsAt(t) {
			t.Fatalf("it reboots in %s", s)
		}
	}
	asks := func() bool { _, ok := request.Get(types.Global); return ok }
	say(types.DrainNotRequested)
	d.commanded = true
	say(types.DrainNotRequested)
	say(types.DrainRetrying)
	if !asks() {
		t.Fatal("it did not ask")
	}
	say(types.DrainFailedDrain)
	say(types.DrainFailedDrain)
	if asks() {
		t.Fatal("the request outlives the failure")
	}
	d.commanded = true
	say(types.DrainFailedDrain)
	say(types.DrainFailedDrain)
	if !asks() {
		t.Error("another command asks for no drain while the failure still stands")
	}
}

func TestNimGivesTheAddressOnlyAfterItIsAskedFor(t *testing.T) {
	var status pubsub.Table[types.EdgeNodeClusterStatus]
	var network pubsub.Table[types.DeviceNetworkStatus]
	d := &Device{ClusterInterface: "shop-lan", topics: topics{clusterStatus: &status, network: &network}, said: map[string]string{}}
	has := func(s *types.EdgeNodeClusterStatus) string {
		if s != nil {
			_ = status.Publish(types.Global, *s)
		}
		if err := d.nim(); err != nil {
			t.Fatal(err)
		}
		got, _ := network.Get(types.Global)
		return got.Ports[0].ClusterIPAddr
	}
	prefix := &net.IPNet{IP: net.IPv4(10, 90, 7, 21), Mask: net.CIDRMask(24, 32)}
	if got := has(nil); got != "" {
		t.Errorf("unasked: %q", got)
	}
	if got := has(&types.EdgeNodeClusterStatus{ClusterInterface: "shop-lan", ClusterIPPrefix: prefix}); got != "" {
		t.Errorf("asked by label: %q", got)
	}
	if got := has(&types.EdgeNodeClusterStatus{ClusterInterface: "eth0", ClusterIPPrefix: prefix}); got != "10.90.7.21" {
		t.Errorf("asked: %q", got)
	}
	_ = status.Unpublish(types.Global)
	if got := has(nil); got != "" {
		t.Errorf("withdrawn: %q", got)
	}
}
