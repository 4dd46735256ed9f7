// Command cloudcore is KubeEdge's.
package main

import (
	"os"

	"github.com/kubeedge/kubeedge/cloud/cmd/cloudcore/app"
	"k8s.io/component-base/cli"
)

func main() { os.Exit(cli.Run(app.NewCloudCoreCommand())) }
