package player

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

func TestRestartedAgentsPublishWhatTheyHadPublished(t *testing.T) {
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
		Root: root, Program: []string{"/bin/sh", "-c", "exec " + idle + " 1000"}, Log: &log, Kube: off{}, ClusterInterface: clusterPort,
		Info: types.EdgeNodeInfo{DeviceName: "device", DeviceID: uuid.New()},
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
	pid := d.PID()
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
