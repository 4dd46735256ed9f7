//go:build failpoints

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/cli/device"
)

// main is the test build: it lists its kill points, and is told how long an hour is.
func main() {
	run(func(c *cobra.Command, o *device.Options) {
		c.PersistentFlags().DurationVar(&o.Hour, "hour", time.Hour, "how long an hour is")
		c.AddCommand(&cobra.Command{
			Use: "failpoints", Short: "List the kill points of this build", Args: cobra.NoArgs,
			Run: func(c *cobra.Command, _ []string) {
				for effect := range strings.FieldsFuncSeq(failpoint.List, func(r rune) bool { return r == '\n' }) {
					fmt.Fprintln(c.OutOrStdout(), effect+"/before\n"+effect+"/after")
				}
			},
		})
	})
}
