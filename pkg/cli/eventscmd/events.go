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
			"first. It queries the API server once; Kubernetes keeps Events for an hour, and only there. Without it: zedkube audit\n" +
			"shows what zedkube did, zedkube status what is wrong, both from files.\n\n" + terminal.ShowExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			var found types.KubeEvents
			now := device.Now(o.Root)
			node := ""
			if !cluster {
				own, err := device.OwnName(o.Paths())
				if err != nil {
					return err
				}
				node = own.NodeName()
			}
			err := device.WithAPI(c.Context(), o.Paths(), func(kube *kubeapi.Client) (err error) {
				found, err = kube.Events(c.Context(), node)
				return err
			})
			if err != nil {
				return unread(err)
			}
			if node != "" {
				found = found.OfNode(node)
			}
			found.List = terminal.Selected(&out, found.List)
			return out.Show(c.Context(), terminal.Of(c.OutOrStdout()), terminal.WatchEvery, func(context.Context) terminal.View { return view(found, now) })
		},
	}, "event", eventsTable(nil, time.Time{}))
	c.Flags().BoolVar(&cluster, "cluster", false, "show those about all objects of the cluster")
	return c
}

// unread is why there are no Events, with what this device knows all the same. It has no copy of them.
func unread(err error) error {
	if terminal.ExitCode(err) != terminal.ExitNotPublished {
		return err
	}
	return fmt.Errorf("%w. Only the API server has Events. What zedkube on this node did: zedkube audit --since 1h; what is wrong and since when: zedkube status", err)
}

func view(found types.KubeEvents, now time.Time) terminal.View {
	var names []string
	for _, e := range found.List {
		names = append(names, e.Name)
	}
	return terminal.View{Data: found, Names: names, Draw: func(s *terminal.Screen) {
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
