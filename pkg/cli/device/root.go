package device

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
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
	flags.StringVar(&o.Root, "root", "", "directory that prefixes every path: of a copy of a device's files, or of one of several nodes on one machine")
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
