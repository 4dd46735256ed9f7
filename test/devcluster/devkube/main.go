// Command devkube is the real Kubernetes in one binary: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kubelet and kubectl. The first
// argument, or the name it is started under, says which one runs.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// commands maps each program's name to the constructor of its cobra command;
// etcd is not here because it parses os.Args itself.
var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": kcm.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
}

func main() {
	args := os.Args
	if filepath.Base(args[0]) == "devkube" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: devkube etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubelet|kubectl [flags]")
		os.Exit(2)
	}
	name := filepath.Base(args[0])
	os.Args = append([]string{name}, args[1:]...)
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	newCommand, ok := commands[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "devkube: no program %q\n", name)
		os.Exit(2)
	}
	command := newCommand()
	command.SetArgs(os.Args[1:])
	os.Exit(cli.Run(command))
}
