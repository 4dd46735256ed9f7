package device

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
)

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

// checkRoot refuses a directory that is none.
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
	said    bool // else it is the numbers, and nothing below a root, where several agents share the machine
	numbers bool // the numbers alone, without the page
	port    int  // 0 for nothing
}

// String implements pflag.Value.
func (f *pageFlag) String() string {
	switch {
	case !f.said:
		return ""
	case f.port == 0:
		return "off"
	case f.numbers:
		return "metrics"
	case f.port == localserver.DefaultPort:
		return "on"
	}
	return strconv.Itoa(f.port)
}

// Set implements pflag.Value.
func (f *pageFlag) Set(text string) error {
	switch text {
	case "on":
		*f = pageFlag{said: true, port: localserver.DefaultPort}
	case "metrics":
		*f = pageFlag{said: true, numbers: true, port: localserver.DefaultPort}
	case "off":
		*f = pageFlag{said: true}
	default:
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return fmt.Errorf("%q: want off, metrics, on, or a port from 1 to 65535", text)
		}
		*f = pageFlag{said: true, port: int(port)}
	}
	return nil
}

// Type implements pflag.Value.
func (f *pageFlag) Type() string { return "off|metrics|on|PORT" }

// address is where something is served on loopback, "" for nowhere.
func (f *pageFlag) address(root string) string {
	port := f.port
	if !f.said && root == "" {
		port = localserver.DefaultPort
	}
	if port == 0 {
		return ""
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// too reports whether the page is served there.
func (f *pageFlag) too() bool { return f.said && !f.numbers && f.port != 0 }

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
