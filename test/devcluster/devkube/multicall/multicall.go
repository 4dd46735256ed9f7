// Package multicall runs one of several programs that are linked into one.
package multicall

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
)

// Run runs the program that the first argument names, or else the name that this
// one was started under. The program finds its own name and arguments in os.Args.
func Run(programs map[string]func()) {
	args := os.Args
	if programs[filepath.Base(args[0])] == nil {
		args = args[1:]
	}
	if len(args) == 0 || programs[filepath.Base(args[0])] == nil {
		fmt.Fprintf(os.Stderr, "usage: %s %s [flags]\n", filepath.Base(os.Args[0]), strings.Join(slices.Sorted(maps.Keys(programs)), "|"))
		os.Exit(2)
	}
	name := filepath.Base(args[0])
	os.Args = append([]string{name}, args[1:]...)
	programs[name]()
}

// Cobra is a program that is a cobra command.
func Cobra(command func() *cobra.Command) func() {
	return func() {
		c := command()
		c.SetArgs(os.Args[1:])
		os.Exit(cli.Run(c))
	}
}
