// Command devkube is Kubernetes' control plane in one binary: etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler. The first argument,
// or the name it is started under, says which one runs.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/zedkube/zedkube/test/devcluster/devkube/multicall"
)

func main() {
	multicall.Run(map[string]func(){
		"etcd":                    func() { etcdmain.Main(os.Args) },
		"kube-apiserver":          multicall.Cobra(apiserver.NewAPIServerCommand),
		"kube-controller-manager": multicall.Cobra(kcm.NewControllerManagerCommand),
		"kube-scheduler":          multicall.Cobra(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	})
}
