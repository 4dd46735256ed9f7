// Command drive plays steps of JSON from stdin.
package main

import (
	"encoding/json"
	"os"

	"github.com/lf-edge/eve/pkg/pillar/cmd/zedagent"
)

func main() {
	var steps []zedagent.Step
	if err := json.NewDecoder(os.Stdin).Decode(&steps); err != nil {
		panic(err)
	}
	zedagent.Drive(steps)
}
