// Command kubevirt prints what virt-operator installs for virt-api and
// virt-controller, the programs of KubeVirt that devcluster runs.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := printObjects(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kubevirt:", err)
		os.Exit(1)
	}
}
