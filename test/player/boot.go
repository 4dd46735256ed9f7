package player

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// boot is one boot: /run and /tmp are empty, the boot id is new, the agents
// start, and later k3s does. again says that the device was on before.
func (d *Device) boot(ctx context.Context, booted chan<- error, again bool) error {
	if err := d.freshRun(); err != nil {
		return err
	}
	d.commanded, d.waitsForDrain, d.deferred, d.joined, d.said = false, false, false, false, map[string]string{}
	d.heard, d.waiting = types.NodeDrainStatus{}, nil
	d.bootID = uuid.NewString()
	if err := d.writeFile("/proc/sys/kernel/random/boot_id", []byte(d.bootID+"\n")); err != nil {
		return err
	}
	bus, bell, err := d.openTopics()
	if err != nil {
		return err
	}
	if again {
		select {
		case <-d.commands: // the boot has done it
		default:
		}
		d.say("device", "rebooted")
	}
	if err := d.start(); err != nil {
		return err
	}
	defer d.stop()
	d.mu.Lock()
	d.boots++
	d.mu.Unlock()
	select {
	case booted <- nil:
	default:
	}
	for {
		err := d.agents(ctx, bus, bell)
		var restart *agentsRestart
		if !errors.As(err, &restart) {
			return err
		}
		restart.while()
		if bus, bell, err = d.openTopics(); err != nil {
			return err
		}
		d.heard, d.waiting = types.NodeDrainStatus{}, nil
		close(restart.done)
	}
}

// agents is one run of the other agents, on topics that are open.
func (d *Device) agents(ctx context.Context, bus *pubsub.Bus, bell <-chan struct{}) error {
	ctx, stop := context.WithCancel(ctx)
	var serving sync.WaitGroup
	serving.Go(func() { bus.Run(ctx) })
	defer serving.Wait()
	defer d.waits.Wait()
	defer stop()
	return d.react(ctx, bell)
}

// agentsRestart ends one run of the other agents.
type agentsRestart struct {
	while func()
	done  chan struct{}
}

func (*agentsRestart) Error() string { return "the other agents restart" }

// RestartAgents ends all other agents of the device, calls while, starts them
// again and returns when they publish what they had published. What they had
// heard they hear anew; what they have put off they still do. zedkube goes on
// meanwhile. While the device is between two boots it waits.
func (d *Device) RestartAgents(ctx context.Context, while func()) error {
	restart := &agentsRestart{while, make(chan struct{})}
	select {
	case d.restarts <- restart:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-restart.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reboot stops the program and the node's kubelet and ends this boot.
func (d *Device) reboot(ctx context.Context) error {
	d.stop()
	if err := d.Kube.Leave(ctx); err != nil {
		return err
	}
	return errReboot
}

// freshRun makes /run and /tmp empty, as they are after a boot.
func (d *Device) freshRun() error {
	for _, dir := range []string{"run", "tmp"} {
		if err := os.RemoveAll(filepath.Join(d.Root, dir)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"run", "tmp", "persist/vault"} { // the vault is mounted
		if err := os.MkdirAll(filepath.Join(d.Root, dir), 0o755); err != nil {
			return err
		}
	}
	if d.Watched {
		if err := d.writeFile(types.PathWatchdog, nil); err != nil {
			return err
		}
	}
	return d.writeFile("/run/eve-hv-type", []byte("k\n"))
}

func (d *Device) writeFile(path string, content []byte) error {
	path = filepath.Join(d.Root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// kubeconfigFile is where k3s's container puts its kubeconfig (docs/wire.md, "Files").
const kubeconfigFile = "/run/.kube/k3s/k3s.yaml"

// startK3s joins the node and puts the kubeconfig where zedkube looks for it.
func (d *Device) startK3s(ctx context.Context) error {
	kubeconfig, err := d.Kube.Join(ctx, d.bootID)
	if err != nil {
		return fmt.Errorf("start k3s: %w", err)
	}
	return d.PutKubeconfigs(kubeconfig)
}

// PutKubeconfigs puts k3s's kubeconfig, and one of zedkube's own where there is one,
// where the device's programs look for them.
func (d *Device) PutKubeconfigs(k3s []byte) error {
	if kube, ok := d.Kube.(agentKube); ok {
		own, err := kube.AgentKubeconfig()
		if err != nil {
			return err
		}
		if err := d.writeFile(agentKubeconfigFile, own); err != nil {
			return err
		}
	}
	return d.writeFile(kubeconfigFile, k3s)
}

// agentKube has a kubeconfig for zedkube alone, which may do what deploy/rbac.yaml says;
// the commands on the device use that of k3s.
type agentKube interface{ AgentKubeconfig() ([]byte, error) }

// agentKubeconfigFile goes with k3s's at a reboot.
const agentKubeconfigFile = "/run/.kube/k3s/zedkube.yaml"
