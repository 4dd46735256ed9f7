// Command zedkube-edge runs KubeEdge in the cluster: its commands, and the controller in a pod of its own.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/sirupsen/logrus"

	kubeedge "github.com/zedkube/zedkube/kubeapi/edge"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/edge/certificates"
	"github.com/zedkube/zedkube/pkg/edge/cloud"
	"github.com/zedkube/zedkube/pkg/edge/edgecmd"
	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/pkg/edge/settings"
	"github.com/zedkube/zedkube/pkg/edge/stream"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// version is set by the linker.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	log := logrus.New()
	log.SetOutput(os.Stderr)
	if err := edgecmd.New(program(log)).ExecuteContext(ctx); err != nil {
		if complaint := terminal.Complaint(err); complaint != "" {
			fmt.Fprintln(os.Stderr, "zedkube-edge:", complaint)
		}
		stop()
		os.Exit(terminal.ExitCode(err))
	}
}

func program(log logrus.FieldLogger) edgecmd.Program {
	return edgecmd.Program{
		Version: version,
		Connect: func(kubeconfig string) (edgecmd.Cluster, error) {
			c, err := kubeedge.Connect(kubeconfig)
			return cluster{c}, err
		},
		Control: func(ctx context.Context, kubeconfig string) error { return control(ctx, log, kubeconfig) },
		Stream:  func(ctx context.Context, kubeconfig string) error { return serveStream(ctx, log, kubeconfig) },
		Close:   func() error { return stream.Close(settings.CertificatesBehind, settings.TunnelBehind) },

		Certificates: func(ctx context.Context, kubeconfig string) error {
			return serveBefore(ctx, log, kubeconfig, settings.CertificatesPort, settings.CertificatesBehind, certificates.Server.Serve)
		},
		Tunnel: func(ctx context.Context, kubeconfig string) error {
			return serveBefore(ctx, log, kubeconfig, settings.TunnelPort, settings.TunnelBehind, certificates.Server.ServeTunnels)
		},
		Record: record,
		Path:   func(ctx context.Context, kubeconfig string) error { return servePath(ctx, log, kubeconfig) },
	}
}

// record is the audit trail of the device. A computer that is none has no trail.
func record(root string) types.OperationLog {
	if _, err := os.Stat(filepath.Join(root, "/persist")); err != nil {
		return types.NoOperations{}
	}
	own, _, _ := overview.ReadFile[types.EdgeNodeInfo](filepath.Join(root, "/run/zedagent/EdgeNodeInfo/global.json"))
	return audit.OfCommand(own, filepath.Join(root, audit.DefaultDir))
}

// cluster is a client as the commands want it.
type cluster struct{ *kubeedge.Client }

func (c cluster) List(ctx context.Context, v cloud.View) ([]object.Object, error) {
	return c.Client.List(ctx, view(v))
}

func views(of []cloud.View) (list []kubeedge.View) {
	for _, v := range of {
		list = append(list, view(v))
	}
	return list
}

func view(v cloud.View) kubeedge.View {
	return kubeedge.View{Kind: v.Ref.Kind, Namespace: v.Ref.Namespace, Name: v.Ref.Name, Label: v.Label, Field: v.Field}
}

// control runs for the Lease, and keeps KubeEdge while it is held. Each term begins with a client of its own: of what
// was seen in an earlier one nothing is true any more.
func control(ctx context.Context, log logrus.FieldLogger, kubeconfig string) error {
	identity, err := os.Hostname()
	if identity = cmp.Or(os.Getenv("POD_NAME"), identity); identity == "" {
		return errors.Join(errors.New("this pod has no name"), err)
	}
	elections, err := kubeedge.Connect(kubeconfig)
	if err != nil {
		return err
	}
	return elections.Elect(ctx, cloud.Where, cloud.Lease, identity, func(ctx context.Context) error {
		client, err := kubeedge.Connect(kubeconfig)
		if err != nil {
			return err
		}
		log.Info("this controller leads")
		lead(ctx, log, client)
		log.Info("this controller leads no longer")
		return nil
	})
}

func lead(ctx context.Context, log logrus.FieldLogger, client *kubeedge.Client) {
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		client.Keep(ctx, views(cloud.Views()))
	}()
	c := &cloud.Component{Log: log, Pulse: &loop.Pulse{}, Kube: client}
	c.Run(ctx)
	<-kept
}
