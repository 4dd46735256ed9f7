// Command devnode is kubelet and kubectl in one binary. The first argument, or the
// name it is started under, says which one runs.
package main

import (
	"context"

	"github.com/spf13/cobra"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/zedkube/zedkube/test/devcluster/devkube/multicall"
)

func main() {
	multicall.Run(map[string]func(){
		"kubectl": multicall.Cobra(kubectl.NewDefaultKubectlCommand),
		"kubelet": multicall.Cobra(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	})
}
