// Package player plays the rest of an EVE device around zedkube: zedagent, nim,
// nodeagent and the kube container, as far as they react to what zedkube says
// (docs/wire.md, "Consumers"). It starts the real program under a root of the
// device's own, reboots it, and tells what it sees. What a device is told comes
// from an EdgeDevConfig in protobuf JSON below its root, as a controller sends it.
package player

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zedkube/zedkube/test/eveapi"
	"github.com/zedkube/zedkube/types"
)

// Kube is what the kube container of a device does to its Kubernetes node.
type Kube interface {
	// Join starts the node's kubelet, which shows the boot id in the Node's
	// nodeInfo, and returns the node's kubeconfig.
	Join(ctx context.Context, bootID string) ([]byte, error)
	// Leave stops the node's kubelet, as a reboot does: until Join the Node is
	// not ready.
	Leave(ctx context.Context) error
}

// Device is one EVE device. The exported fields are set before Boot.
type Device struct {
	Root    string    // stands for / of this device
	Program []string  // the zedkube program and its first arguments
	Log     io.Writer // what the program prints
	Say     func(device, agent, text string)

	Info types.EdgeNodeInfo
	Kube Kube

	// ClusterInterface is the logical label of the port eth0, or Port.
	ClusterInterface string
	Port             string   // "" for eth0
	Args             []string // more arguments of the program
	Watched          bool     // the start script has told the watchdog of zedkube's heartbeat, as in EVE
	// APIPort is the join server's; 0 is that of k3s.
	APIPort int

	topics

	sending        sync.Mutex // guards what follows, the document and the topics
	fetched        []byte     // the document as zedagent has read it last; nil since the boot
	configuration  eveapi.Configuration
	pair           keyPair // the device's own
	controllerCert types.ControllerCert
	withheld       [2]bool // by Cert

	bare          atomic.Bool   // the cluster interface has no address
	commands      chan struct{} // reboots
	cuts          chan struct{} // of the power
	restarts      chan *agentsRestart
	commanded     bool                  // a reboot, as zedagent knows
	waitsForDrain bool                  // nodeagent's word
	heard         types.NodeDrainStatus // zedagent's last look
	deferred      bool
	joined        bool
	waiting       chan error // how wait-join ends; nil while it does not run
	waits         sync.WaitGroup
	said          map[string]string

	mu      sync.Mutex
	boots   int
	power   context.CancelFunc
	off     sync.WaitGroup
	bootID  string
	program *process // nil while it does not run
	ended   []string // how programs ended that nobody told to
}

// Boot switches the device on. It runs until ctx is done or PowerOff.
func (d *Device) Boot(ctx context.Context) error {
	d.commands, d.cuts = make(chan struct{}, 1), make(chan struct{}, 1)
	d.restarts = make(chan *agentsRestart)
	ctx, d.power = context.WithCancel(ctx)
	booted := make(chan error, 1)
	d.off.Go(func() { d.live(ctx, booted) })
	return <-booted
}

// PowerOff stops everything on the device and waits for it.
func (d *Device) PowerOff() {
	if d.power != nil {
		d.power()
	}
	d.off.Wait()
}

// CommandReboot is the controller's reboot command reaching zedagent. One that comes
// while the device reboots anyway is done with when it boots.
func (d *Device) CommandReboot() {
	select {
	case d.commands <- struct{}{}:
	default:
	}
}

// CutPower takes the power away for a moment: nobody is asked, and the device
// boots again.
func (d *Device) CutPower() {
	select {
	case d.cuts <- struct{}{}:
	default:
	}
}

// Boots counts how often the device has booted.
func (d *Device) Boots() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.boots
}

// errReboot ends one boot of the device.
var errReboot = errors.New("reboot")

func (d *Device) live(ctx context.Context, booted chan<- error) {
	for again := false; ; again = true {
		err := d.boot(ctx, booted, again)
		if !errors.Is(err, errReboot) {
			if err != nil && ctx.Err() == nil {
				d.say("device", "stopped: "+err.Error())
			}
			select {
			case booted <- err:
			default:
			}
			return
		}
	}
}

// react lets the other agents look at what zedkube says, again and again.
func (d *Device) react(ctx context.Context, bell <-chan struct{}) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := errors.Join(d.look(), d.nim(), d.zedagent(ctx), d.kubeInit(ctx)); err != nil {
			if errors.Is(err, errReboot) {
				return err
			}
			d.sayOnce("device", err.Error())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.cuts:
			d.KillProgram()
			return d.reboot(ctx)
		case <-d.commands:
			d.commanded = true
		case restart := <-d.restarts:
			return restart
		case <-bell:
		case <-tick.C:
		}
	}
}

func (d *Device) say(agent, text string) {
	if d.Say != nil {
		d.Say(d.Info.NodeName(), agent, text)
	}
}

// sayOnce says text unless the agent has just said the same.
func (d *Device) sayOnce(agent, text string) {
	if d.said[agent] != text {
		d.said[agent] = text
		d.say(agent, text)
	}
}
