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

	"github.com/zedkube/zedkube/pkg/base/cipher"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/cluster/clustertoken"
	"github.com/zedkube/zedkube/pkg/cluster/k3sconfig"
	"github.com/zedkube/zedkube/pkg/cluster/statusserver"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/pkg/workload/applogs"
	"github.com/zedkube/zedkube/pkg/workload/console"
	"github.com/zedkube/zedkube/pkg/workload/drain"
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
	OnCluster  bool          // the page, too
	Hour       time.Duration // how long an hour is, where a test wants a shorter one; no flag of the program sets it
}

// Paths are the files outside pubsub (docs/wire.md, "Files"), each below root,
// and how long an hour is.
type Paths struct {
	Version        string // of this program
	Hour           time.Duration
	Root           string
	Kubeconfig     string
	Hypervisor     string
	PID            string
	Touch          string
	BootID         string   // ReadBootID
	Boot           string   // what it says
	ForceDrain     []string // the first that speaks wins
	FaultInjection string
	GoingDown      []string // with content while the device goes down
	DeviceKey      string   // where the device has no TPM
	TPM            string
	Manifest       string // of the cluster's registration
	K3sOverride    string // of the kube container's configuration
	K3sBinary      string
	K3sPID         string
	InstallLog     string // of the kube container
	Reports        statusserver.Reports
	Provers        string   // note that all nodes of the cluster have proofs
	TopicDirs      []string // where all agents' topics lie
	Console        string
	ConsoleOld     string // the same, where older kube containers look
	KubeInit       string
	LogJournal     string
	LogCheckpoints string
	LogRecord      int    // bytes of one line of an application's log
	Audit          string // directory of what was done
	Proc           string
	Sysfs          string
	Socket         string // where commands ask the agent
	PageAddress    string // on loopback, "" for none
	PageToo        bool   // there, and not the numbers alone
	PageToken      string // file with the reading token
	PageOnCluster  int    // the port on the cluster address, 0 for none
}

// Paths are those of a device with these options.
func (o Options) Paths() Paths {
	in := func(path string) string { return filepath.Join("/", o.Root, path) }
	if o.Root != "" && !filepath.IsAbs(o.Root) {
		in = func(path string) string { return filepath.Join(o.Root, path) }
	}
	p := Paths{
		Version:        o.Version,
		Hour:           cmp.Or(o.Hour, time.Hour),
		Root:           o.Root,
		Kubeconfig:     o.Kubeconfig,
		Hypervisor:     in(types.PathHypervisor),
		PID:            in(types.PathPID),
		Touch:          in(types.PathTouch),
		BootID:         in(bootIDFile),
		ForceDrain:     []string{in(types.PathForceDrain), in(types.PathForceDrain2)},
		FaultInjection: in(types.PathFaultMarker),
		GoingDown:      []string{in(drain.RebootReason), in(drain.BootReason), in(drain.ScheduledShutdown)},
		DeviceKey:      in(cipher.DefaultKeyFile),
		TPM:            in(cipher.DefaultTPM),
		Manifest:       in(clustertoken.DefaultManifest),
		K3sOverride:    in(k3sconfig.DefaultOverrideFile),
		K3sBinary:      in(k3sconfig.DefaultBinary),
		K3sPID:         in(k3sconfig.DefaultPID),
		InstallLog:     in("/persist/kubelog/k3s-install.log"),
		Reports:        o.Reports,
		Provers:        in("/persist/zedkube/all-prove"),
		TopicDirs:      []string{in(types.PathTopics), in(types.PathKeptTopics)},
		Console:        in(console.DefaultFile),
		ConsoleOld:     in(console.DefaultOldFile),
		KubeInit:       in(console.DefaultKubeInit),
		LogRecord:      min(max(cmp.Or(o.LogRecord, applogs.DefaultMaxRecord), applogs.SmallestRecord), applogs.LargestRecord),
		LogJournal:     in(applogs.DefaultJournal),
		LogCheckpoints: in(applogs.DefaultCheckpoints),
		Audit:          in(audit.DefaultDir),
		Proc:           in(console.DefaultProc),
		Sysfs:          in(sriov.DefaultSysfs),
		Socket:         in(localserver.DefaultSocket),
		PageAddress:    o.Page.address(o.Root),
		PageToo:        o.Page.too(),
		PageToken:      in(localserver.DefaultTokenFile),
		PageOnCluster:  o.Page.clusterPort(o.OnCluster),
	}
	if p.Kubeconfig == "" {
		p.Kubeconfig = in(types.PathKubeconfig)
	}
	return p
}

// TopicFile is the file of a plain single-value topic.
func (p Paths) TopicFile(agent, topic string) string {
	return filepath.Join(p.RunDir(), agent, topic, types.Global+".json")
}

// PersistentFile is the file of a persistent single-value topic.
func (p Paths) PersistentFile(agent, topic string) string {
	return filepath.Join(filepath.Dir(p.RunDir()), "persist/status", agent, topic, types.Global+".json")
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
		if c == root || c.Hidden {
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
	switch {
	case err != nil:
		return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("%w: %w", ErrNoDevice, err))
	case !info.IsDir():
		return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("%w: %s is not a directory", ErrNoDevice, root))
	}
	return nil
}

// ErrNoDevice is said of a directory that --root names.
var ErrNoDevice = errors.New("this is not the root directory of a device")

// pageFlag says what is served on loopback, and at which port.
type pageFlag struct {
	said    string // "" for the numbers, and nothing below a root, where several agents share the machine
	numbers bool   // the numbers alone, without the page
	port    int    // 0 for nothing
}

// String implements pflag.Value.
func (f *pageFlag) String() string { return f.said }

// Set implements pflag.Value.
func (f *pageFlag) Set(text string) error {
	switch text {
	case "on":
		*f = pageFlag{said: text, port: localserver.DefaultPort}
	case "metrics":
		*f = pageFlag{said: text, numbers: true, port: localserver.DefaultPort}
	case "off":
		*f = pageFlag{said: text}
	default:
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return fmt.Errorf("%q: want off, metrics, on, or a port from 1 to 65535", text)
		}
		*f = pageFlag{said: text, port: int(port)}
	}
	return nil
}

// Type implements pflag.Value.
func (f *pageFlag) Type() string { return "off|metrics|on|PORT" }

// address is where something is served on loopback, "" for nowhere.
func (f *pageFlag) address(root string) string {
	port := f.port
	if f.said == "" && root == "" {
		port = localserver.DefaultPort
	}
	if port == 0 {
		return ""
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// too reports whether the page is served there.
func (f *pageFlag) too() bool { return f.said != "" && !f.numbers && f.port != 0 }

// clusterPort is the port of the page on the cluster address, 0 for none.
func (f *pageFlag) clusterPort(asked bool) int {
	switch {
	case !asked:
		return 0
	case f.port == 0: // only loopback may be off
		return localserver.DefaultPort
	}
	return f.port
}
