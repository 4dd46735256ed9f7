package player

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// switchedOn is a device whose program does nothing, on.
func switchedOn(t *testing.T, kube Kube, say func(device, agent, text string)) *Device {
	t.Helper()
	idle, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("", "agents-") // sockets want a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	var log bytes.Buffer
	d := &Device{
		Root: root, Program: []string{"/bin/sh", "-c", "exec " + idle + " 1000"}, Log: &log, Kube: kube, ClusterInterface: clusterPort,
		Say: say, Info: types.EdgeNodeInfo{DeviceName: "device", DeviceID: uuid.New()},
	}
	controller, err := newController()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.introduce(controller.pair.controllerCert()); err != nil {
		t.Fatal(err)
	}
	if err := d.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.PowerOff)
	return d
}

// leaves has something happen while the device is between two boots.
type leaves struct {
	off
	then func()
}

func (l *leaves) Leave(context.Context) error { l.then(); return nil }

func TestRebootCommandIsDoneWithByABootThatComesFirst(t *testing.T) {
	kube := &leaves{then: func() {}}
	var mu sync.Mutex
	var said []string
	d := switchedOn(t, kube, func(_, agent, text string) {
		mu.Lock()
		defer mu.Unlock()
		if agent == "zedagent" || text == "rebooted" {
			said = append(said, text)
		}
	})
	kube.then = d.CommandReboot
	d.CutPower()
	d.until(t, func() bool { return d.Boots() == 2 })
	for range 5 { // each time they look at what they were told
		if err := d.RestartAgents(t.Context(), func() {}); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(said, []string{"rebooted"}) {
		t.Errorf("after a power cut: %q", said)
	}
}

func TestRestartedAgentsPublishWhatTheyHadPublished(t *testing.T) {
	d := switchedOn(t, off{}, nil)
	root, pid := d.Root, d.PID()
	asked := types.NodeDrainRequest{RequestedAt: time.Now().UTC().Truncate(time.Second), RequestedBy: types.DrainRequesterUpdate}
	if err := d.RequestDrain(asked); err != nil {
		t.Fatal(err)
	}
	down := false
	if err := d.RestartAgents(t.Context(), func() {
		_, err := os.Stat(root + "/run/baseosmgr/NodeDrainRequest.sock")
		down = os.IsNotExist(err)
	}); err != nil {
		t.Fatal(err)
	}
	if !down {
		t.Error("an agent that is down has a socket")
	}
	if _, err := os.Stat(root + "/run/baseosmgr/NodeDrainRequest.sock"); err != nil {
		t.Error(err)
	}
	d.sending.Lock()
	got, ok := d.updateRequest.(interface {
		Get(string) (types.NodeDrainRequest, bool)
	}).Get(types.Global)
	d.sending.Unlock()
	if !ok || !got.RequestedAt.Equal(asked.RequestedAt) {
		t.Errorf("it publishes %+v, %v; it had published %+v", got, ok, asked)
	}
	if d.PID() != pid {
		t.Error("zedkube was restarted with them")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.PowerOff()
	if err := d.RestartAgents(ctx, func() {}); err == nil {
		t.Error("agents of a device that is off were restarted")
	}
}
