// Package device is the device that a command is run on: its files, its agent and
// the API server as a command reaches them, and the root of all commands.
package device

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/cluster/k3supdate"
	"github.com/zedkube/zedkube/pkg/cluster/statusserver"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/pkg/workload/applogs"
	"github.com/zedkube/zedkube/pkg/workload/console"
	"github.com/zedkube/zedkube/pkg/workload/sriov"
	"github.com/zedkube/zedkube/types"
)

// Options are what the command line says.
type Options struct {
	Version    string // of this program
	Root       string
	Kubeconfig string
	LogRecord  int
	Page       pageFlag
	Reports    statusserver.Reports
	Consent    k3supdate.Consent
	OnCluster  bool          // the page, too
	Program    string        // file of this program, whose commands the page runs; no flag of the program sets it
	Hour       time.Duration // how long an hour is, where a test wants a shorter one; no flag of the program sets it
}

// Paths is a device with these options: its files outside pubsub (docs/wire.md, "Files") that
// more than one part of the program names. The others are named where they are used, by In.
type Paths struct {
	Options
	PID        string
	Touch      string
	BootID     string   // ReadBootID
	Boot       string   // what it says
	ForceDrain []string // the first that speaks wins
	Audit      string   // directory of what was done
	Proc       string
	Sysfs      string
	Socket     string // where commands ask the agent
	PageToken  string // file with the reading token
}

// Paths are those of a device with these options; what they leave out is the default.
func (o Options) Paths() Paths {
	o.Hour = cmp.Or(o.Hour, time.Hour)
	o.Kubeconfig = cmp.Or(o.Kubeconfig, o.In(types.PathKubeconfig))
	o.LogRecord = min(max(cmp.Or(o.LogRecord, applogs.DefaultMaxRecord), applogs.SmallestRecord), applogs.LargestRecord)
	return Paths{
		Options:    o,
		PID:        o.In(types.PathPID),
		Touch:      o.In(types.PathTouch),
		BootID:     o.In(bootIDFile),
		ForceDrain: []string{o.In(types.PathForceDrain), o.In(types.PathForceDrain2)},
		Audit:      o.In(audit.DefaultDir),
		Proc:       o.In(console.DefaultProc),
		Sysfs:      o.In(sriov.DefaultSysfs),
		Socket:     o.In(localserver.DefaultSocket),
		PageToken:  o.In(localserver.DefaultTokenFile),
	}
}

// In is a path below the root.
func (o Options) In(path string) string {
	if o.Root != "" && !filepath.IsAbs(o.Root) {
		return filepath.Join(o.Root, path)
	}
	return filepath.Join("/", o.Root, path)
}

// TopicFile is the file of a plain single-value topic.
func (p Paths) TopicFile(agent, topic string) string {
	return filepath.Join(p.RunDir(), agent, topic, types.Global+".json")
}

// PersistentFile is the file of a persistent single-value topic.
func (p Paths) PersistentFile(agent, topic string) string {
	return p.In(filepath.Join(types.PathKeptTopics, agent, topic, types.Global+".json"))
}

// RunDir is the directory of the plain topics.
func (p Paths) RunDir() string { return filepath.Dir(p.PID) }

// ZedagentStatus is the file of zedagent's word on itself.
func ZedagentStatus(p Paths) string {
	return filepath.Join(p.RunDir(), "zedagent", "ZedAgentStatus", types.ZedAgentKey+".json")
}

// NewRoot is the program's command with what all commands share: flags, help, and
// a root that is looked at before any of them runs. It does nothing itself.
func NewRoot(o *Options, commands ...func(*Options) *cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "zedkube",
		Short: "The agent between an EVE device and its Kubernetes cluster",
		Long: "The agent between an EVE device and its Kubernetes cluster. Without a command it runs the agent.\n" +
			"To see what is wrong on this device and what to do about it: zedkube status",
		Args:          terminal.NoCommand,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	terminal.Helpful(root)
	flags := root.PersistentFlags()
	flags.StringVar(&o.Root, "root", "", "directory that prefixes every path: a copy of a device's files, or one of several nodes on one machine")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig file (default <root>/run/.kube/k3s/k3s.yaml)")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if c == root {
			return nil // the agent makes it
		}
		return checkRoot(o.Root)
	}
	for _, command := range commands {
		root.AddCommand(command(o))
	}
	return root
}

func checkRoot(root string) error {
	if root == "" {
		return nil
	}
	info, err := os.Stat(root)
	if err == nil && !info.IsDir() {
		err = errors.New(root + " is not a directory")
	}
	if err != nil {
		return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("%w: %w", ErrNoDevice, err))
	}
	return nil
}

// ErrNoDevice is said of a directory that --root names.
var ErrNoDevice = errors.New("this is not the root directory of a device")

// pageFlag says what is served on loopback, and at which port.
type pageFlag struct {
	said string // "" for the numbers, and nothing below a root, where several agents share the machine
	port int    // 0 for nothing
}

// String implements pflag.Value.
func (f *pageFlag) String() string { return f.said }

// Set implements pflag.Value.
func (f *pageFlag) Set(text string) error {
	switch text {
	case "on", "metrics":
		*f = pageFlag{text, localserver.DefaultPort}
	case "off":
		*f = pageFlag{said: text}
	default:
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return fmt.Errorf("%q: want off, metrics, on, or a port from 1 to 65535", text)
		}
		*f = pageFlag{text, int(port)}
	}
	return nil
}

// Type implements pflag.Value.
func (f *pageFlag) Type() string { return "off|metrics|on|PORT" }

// PageAddress is where something is served on loopback, "" for nowhere.
func (o Options) PageAddress() string {
	port := o.Page.port
	if o.Page.said == "" && o.Root == "" {
		port = localserver.DefaultPort
	}
	if port == 0 {
		return ""
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// PageToo reports whether the page is served there, and not the numbers alone.
func (o Options) PageToo() bool { return o.Page.port != 0 && o.Page.said != "metrics" }

// ClusterPort is the port of the page on the cluster address, 0 for none.
func (o Options) ClusterPort() int {
	if !o.OnCluster {
		return 0
	}
	return cmp.Or(o.Page.port, localserver.DefaultPort) // only loopback may be off
}
