// Package volumescmd is zedkube volumes.
package volumescmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// NewVolumesCommand shows the replicated volumes.
func NewVolumesCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	cluster := false
	return device.ClusterFlag(out.WatchFlag(terminal.List[overview.Volume](&out, &cobra.Command{
		Use:   "volumes [VOLUME] [--cluster] [--watch]",
		Short: "Show the replicated volumes: their replicas and rebuilds, who uses them; those with one healthy replica first",
		Long: "Show the replicated volumes, those whose data is whole in one replica only first: replicas, rebuilds and who uses them. VOLUME\n" +
			"is the name of a claim, of an application or of a pod that uses it. The node that reports for the cluster has them in its\n" +
			"files, others query the API server, or with --cluster that node.\n\n" + terminal.ShowExitCodes,
		Args: terminal.Words(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := device.CheckDevice(o.Paths()); err != nil {
				return err
			}
			if cluster {
				return device.ShowCluster(c, o.Paths(), &out, "", func(seen device.ClusterView) terminal.View {
					v := ofCluster(seen)
					if len(args) == 0 {
						v.Items = terminal.Selected(&out, v.Items)
					}
					return viewVolumes(v, args)
				})
			}
			a := newAsked(o.Paths())
			defer a.close()
			return out.Show(c.Context(), terminal.Of(c.OutOrStdout()), terminal.WatchEvery, func(ctx context.Context) terminal.View {
				v := a.look(ctx)
				if len(args) == 0 {
					v.Items = terminal.Selected(&out, v.Items)
				}
				return viewVolumes(v, args)
			})
		},
		ValidArgsFunction: terminal.CompleteArgs(volumeNames(o)),
	}, "volume", volumesTable(nil))), &out, &cluster, "show the volumes", volumesTable(nil))
}

// volumeNames gives the names of the volumes that the files here know to the shell.
func volumeNames(o *device.Options) func(context.Context) []string {
	return func(context.Context) (names []string) {
		for _, v := range overview.Read(o.Root, time.Now()).Storage.Volumes {
			names = append(names, terminal.Clean(v.Name))
		}
		return names
	}
}

func viewVolumes(v volumesView, only []string) terminal.View {
	if len(only) > 0 {
		name := terminal.Named("volume", only[0])
		v.Items = slices.DeleteFunc(slices.Clone(v.Items), func(w overview.Volume) bool { return !called(w, name) })
	}
	steady := v
	steady.ReadAt, steady.At = time.Time{}, time.Time{}
	s := terminal.View{Data: v, Steady: steady, Draw: func(s *terminal.Screen) { putVolumes(s, v, len(only) > 0) }}
	for _, w := range v.Items {
		s.Rows = append(s.Rows, terminal.Row{Key: fullName(w), Text: volumeState(w)})
		s.Names = append(s.Names, fullName(w))
	}
	switch {
	case len(v.Items) > 0:
	case v.From == "": // said once, by the error
		s.Err = terminal.ExitWith(terminal.ExitNotPublished, errors.New("the volumes could not be read: "+terminal.Clean(strings.Join(v.Problems, "; "))))
		s.Draw = nil
	case len(only) > 0:
		s.Err = fmt.Errorf("there is no volume %q, and none of an application or a pod of that name", terminal.Clean(only[0]))
	}
	return s
}

// called reports that a volume has this name, or is used by an application or a pod that has.
func called(v overview.Volume, name string) bool {
	return v.Name == name || v.Namespace+"/"+v.Name == name ||
		slices.ContainsFunc(v.Users, func(u overview.VolumeUser) bool { return strings.EqualFold(u.App, name) || u.Pod == name })
}

// fullName is that of a claim with its namespace, unless that is the applications'.
func fullName(v overview.Volume) string {
	if v.Namespace == "" || v.Namespace == types.NamespaceApps {
		return terminal.Clean(v.Name)
	}
	return terminal.Clean(v.Namespace + "/" + v.Name)
}

func putVolumes(s *terminal.Screen, v volumesView, whole bool) {
	for _, p := range v.Problems {
		s.Put(0, terminal.Yellow, terminal.Clean(p))
	}
	switch {
	case v.From == "":
		return
	case len(v.Items) == 0:
		s.Put(0, terminal.Plain, "there are no replicated volumes")
	case whole:
		for _, w := range v.Items {
			putVolume(s, w, v.ReadAt)
		}
	default:
		volumesTable(v.Items).Draw(s)
	}
	s.Put(0, terminal.Plain, "by "+v.From+", "+terminal.Age(v.At, v.ReadAt))
}

func volumesTable(volumes []overview.Volume) terminal.Table {
	t := terminal.Table{Columns: []terminal.Column{
		{Title: "VOLUME", Middle: "~", Fair: 20, Keep: 0},
		{Title: "HEALTH", Keep: 0},
		{Title: "REPLICAS", Keep: 9, Right: true},
		{Title: "REBUILD", Keep: 8},
		{Title: "USED BY", Middle: "~", Fair: 16, Keep: 7},
		{Title: "ON", Keep: 5},
		{Title: "STATE", Keep: 6},
		{Title: "SIZE", Keep: 4, Right: true},
		{Title: "HEALTHY ON", Keep: 3},
	}}
	for _, v := range volumes {
		t.Rows = append(t.Rows, []terminal.Cell{
			{Text: fullName(v)},
			{Text: health(v), Look: healthLook(v)},
			{Text: replicasText(v)},
			{Text: rebuildText(v), Look: terminal.Yellow},
			{Text: usersText(v)},
			{Text: terminal.Clean(nodeOf(v))},
			{Text: terminal.Clean(v.State)},
			{Text: terminal.BytesText(&v.Bytes)},
			{Text: terminal.Clean(strings.Join(healthyOn(v), ","))},
		})
	}
	return t
}

// health is how safe the data of a volume is, in words: whether there are healthy replicas, and
// else what Longhorn calls it.
func health(v overview.Volume) string {
	switch {
	case v.Lost():
		return "no replica"
	case v.Last():
		return "last replica"
	}
	return terminal.Clean(v.Robustness)
}

func healthLook(v overview.Volume) terminal.Style {
	switch {
	case v.Lost(), v.Last():
		return terminal.Red
	case v.Robustness == types.StorageVolumeRobustnessHealthy.String():
		return terminal.Green
	case v.State == types.StorageVolumeStateDetached.String(): // which has no robustness
		return terminal.Plain
	}
	return terminal.Yellow
}

// replicasText is how many of the replicas that there should be are healthy.
func replicasText(v overview.Volume) string {
	return fmt.Sprintf("%d of %d", v.Healthy, cmp.Or(v.Wanted, v.Replicas))
}

func rebuildText(v overview.Volume) string {
	var all []string
	for _, c := range v.Copies {
		if c.Status == types.StorageVolumeReplicaStatusRebuilding.String() {
			all = append(all, fmt.Sprintf("%s %d%%", terminal.Clean(c.Node), c.Percent))
		}
	}
	return strings.Join(all, ", ")
}

func usersText(v overview.Volume) string {
	var all []string
	for _, u := range v.Users {
		all = append(all, terminal.Clean(cmp.Or(u.App, u.Pod)))
	}
	return strings.Join(slices.Compact(all), ", ")
}

// nodeOf is where a volume is used.
func nodeOf(v overview.Volume) string {
	if v.Attached != "" || len(v.Users) == 0 || v.State == types.StorageVolumeStateDetached.String() {
		return v.Attached
	}
	return v.Users[0].Node
}

// healthyOn are the nodes on which the data is whole.
func healthyOn(v overview.Volume) (nodes []string) {
	whole := types.StorageVolumeReplicaStatusOnline
	if v.Online == 0 {
		whole = types.StorageVolumeReplicaStatusOffline
	}
	for _, c := range v.Copies {
		if c.Status == whole.String() {
			nodes = append(nodes, c.Node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// volumeState is a volume in a line.
func volumeState(v overview.Volume) string {
	text := health(v) + ", " + replicasText(v) + " replicas healthy"
	if r := rebuildText(v); r != "" {
		text += ", rebuilding on " + r
	}
	if u := usersText(v); u != "" {
		text += ", used by " + u
	}
	return text
}

func putVolume(s *terminal.Screen, v overview.Volume, now time.Time) {
	s.Put(0, healthLook(v), fullName(v)+": "+health(v)+", "+replicasText(v)+" replicas healthy")
	s.Field("state", terminal.Plain, terminal.Clean(v.State)+", "+terminal.Clean(v.Robustness))
	if v.Attached != "" {
		s.Field("attached", terminal.Plain, "to "+terminal.Clean(v.Attached))
	}
	size := terminal.BytesText(&v.Bytes)
	if v.Used > 0 {
		size += ", takes " + terminal.BytesText(&v.Used) + " of each disk, with its snapshots"
	}
	s.Field("size", terminal.Plain, size)
	for _, c := range v.Copies[:min(len(v.Copies), terminal.MostItems)] {
		text := terminal.OrNone(terminal.Clean(c.Node)) + ": " + c.Status
		look := terminal.Plain
		switch c.Status {
		case types.StorageVolumeReplicaStatusRebuilding.String():
			text, look = fmt.Sprintf("%s, %d%%", text, c.Percent), terminal.Yellow
		case types.StorageVolumeReplicaStatusFailed.String():
			look = terminal.Red
		}
		s.Field("replica", look, text+" ("+terminal.Clean(c.Name)+")")
	}
	for _, u := range v.Users[:min(len(v.Users), terminal.MostItems)] {
		text := terminal.Clean(u.App)
		switch {
		case u.App != "" && u.Pod != "":
			text += ", pod " + terminal.Clean(u.Pod)
		case u.App == "":
			text = "pod " + terminal.Clean(u.Pod)
		}
		if u.Node != "" {
			text += " on " + terminal.Clean(u.Node)
		}
		s.Field("used by", terminal.Plain, text)
	}
	if !v.Created.IsZero() {
		s.Field("created", terminal.Plain, terminal.Stamp(v.Created, now))
	}
}
