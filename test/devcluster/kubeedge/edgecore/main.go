// Command edgecore is KubeEdge's.
package main

import (
	"os"

	"github.com/kubeedge/kubeedge/edge/cmd/edgecore/app"
	"k8s.io/component-base/cli"
)

func main() { os.Exit(cli.Run(app.NewEdgeCoreCommand())) }
