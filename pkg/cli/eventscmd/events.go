// Package eventscmd is zedkube events.
package eventscmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

const mostShown = 200 // to people; with -o all that were read

// NewEventsCommand shows Events of Kubernetes.
func NewEventsCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	cluster := false
	c := terminal.List[types.KubeEvent](&out, &cobra.Command{
		Use:   "events [--cluster]",
		Short: "Show the Events of Kubernetes about this node and its pods, the newest first",
		Long: "Show the Events of Kubernetes about this node, and about the pods of which its kubelet has reported, the newest\n" +
			"first. It queries the API server once; Kubernetes keeps Events for an hour. What zedkube did: zedkube audit\n\n" + terminal.ShowExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			var found types.KubeEvents
			now := time.Now()
			err := device.WithAPI(c.Context(), o.Paths(), func(kube *kubeapi.Client) (err error) {
				found, err = kube.Events(c.Context())
				return err
			})
			if err == nil && !cluster {
				var own types.EdgeNodeInfo
				if own, err = device.OwnName(o.Paths()); err == nil {
					found = found.OfNode(own.NodeName())
				}
			}
			if err != nil {
				return err
			}
			found.List = terminal.Selected(&out, found.List)
			return out.Show(c.Context(), terminal.Of(c.OutOrStdout()), terminal.WatchEvery, func(context.Context) terminal.View { return view(found, now) })
		},
	}, "", eventsTable(nil, time.Time{}))
	c.Flags().BoolVar(&cluster, "cluster", false, "show those about all objects of the cluster")
	return c
}

func view(found types.KubeEvents, now time.Time) terminal.View {
	return terminal.View{Data: found, Draw: func(s *terminal.Screen) {
		if len(found.List) == 0 {
			s.Put(0, terminal.Plain, "There are no events.")
		} else {
			eventsTable(found.List[:min(len(found.List), mostShown)], now).Draw(s)
		}
		if more := len(found.List) - mostShown; more > 0 {
			s.Put(0, terminal.Plain, fmt.Sprintf("%d older events are not shown: -o json has them", more))
		}
		if found.More {
			s.Put(0, terminal.Yellow, "The cluster has more events than are read at once: some are missing here.")
		}
	}}
}

func eventsTable(list []types.KubeEvent, now time.Time) terminal.Table {
	t := terminal.Table{Columns: []terminal.Column{
		{Title: "AGE", Right: true},
		{Title: "TYPE", Keep: 3},
		{Title: "REASON"},
		{Title: "OBJECT", Middle: "~"},
		{Title: "COUNT", Keep: 2, Right: true},
		{Title: "BY", Keep: 1},
		{Title: "MESSAGE"},
	}}
	for _, e := range list {
		look := terminal.Plain
		if e.Type != "Normal" {
			look = terminal.Yellow
		}
		t.Rows = append(t.Rows, []terminal.Cell{
			{Text: terminal.ShortAge(e.At, now)},
			{Text: terminal.Clean(e.Type), Look: look},
			{Text: terminal.Clean(e.Reason)},
			{Text: terminal.Clean(e.About)},
			{Text: fmt.Sprint(e.Count)},
			{Text: terminal.Clean(e.By)},
			{Text: terminal.Clean(e.Message)},
		})
	}
	return t
}
