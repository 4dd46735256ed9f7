// Package clustercmd is zedkube cluster.
package clustercmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// NewClusterCommand shows the cluster as one object.
func NewClusterCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.WatchFlag(terminal.Lists(&out, &cobra.Command{
		Use:   "cluster [--watch]",
		Short: "Show the cluster as one object: what is declared, its phase, versions and conditions",
		Long: "Show the cluster of this node as one object: what is declared, its phase and why, versions and conditions. With -o yaml\n" +
			"or -o json it is the object that GET /api/v1alpha1/cluster answers on the agent's socket. It reads the file that the agent\n" +
			"keeps; neither the API server nor k3s has to run. See docs/operations.md, \"The cluster as one object\".\n\n" + terminal.ShowExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := device.CheckDevice(o.Paths()); err != nil {
				return err
			}
			return out.Show(c.Context(), terminal.Of(c.OutOrStdout()), terminal.WatchEvery, func(context.Context) terminal.View {
				return look(o.Paths(), device.Now(o.Root))
			})
		},
	}))
}

func look(p device.Paths, now time.Time) terminal.View {
	object, _, err := device.ReadRecord[types.ClusterObject](p.PersistentFile(device.Self, "ClusterObject"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return terminal.View{Err: terminal.ExitWith(terminal.ExitNotPublished, errors.New("the agent has not published the cluster yet"))}
	case err != nil:
		return terminal.View{Err: terminal.ExitWith(terminal.ExitNotPublished, fmt.Errorf("read the cluster: %w", err))}
	}
	v := terminal.View{Data: object, Names: []string{"cluster/" + object.Metadata.Name}, Draw: func(s *terminal.Screen) { put(s, object, now) }}
	for _, c := range object.Status.Conditions {
		v.Rows = append(v.Rows, terminal.Row{Key: terminal.Clean(string(c.Type)), Text: terminal.Clean(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message))})
	}
	v.Rows = append(v.Rows, terminal.Row{Key: "phase", Text: terminal.Clean(fmt.Sprintf("%s: %s", object.Status.Phase, object.Status.Description))})
	if life := device.LifeOfAgent(p, now); !life.Runs {
		why := "the agent is not running, this is what it published last: " + terminal.Clean(life.Why)
		v.Err = terminal.ExitWith(terminal.ExitNotPublished, errors.New(why))
	}
	return v
}

func put(s *terminal.Screen, o types.ClusterObject, now time.Time) {
	st, spec, parts := o.Status, o.Spec, o.Status.Components
	s.Put(0, terminal.Bold, "Cluster "+terminal.OrNone(terminal.Clean(o.Metadata.Name)))
	s.Field("phase", phaseLook(st.Phase), terminal.Clean(string(st.Phase))+", since "+terminal.Stamp(st.Since, now))
	for _, f := range []struct{ label, text string }{
		{"why", st.Description},
		{"UUID", o.Metadata.UID},
		{"role", spec.Role},
		{"address", spec.Networking.Address},
		{"join server", spec.Networking.JoinServer},
		{"Kubernetes", st.KubernetesVersion},
		{"kubelet", parts.Kubelet},
		{"wanted", spec.Version},
		{"KubeVirt", parts.KubeVirt},
		{"CDI", parts.CDI},
		{"Longhorn", parts.Longhorn},
		{"CNI", parts.CNI},
		{"zedkube", parts.Zedkube},
	} {
		if f.text != "" {
			s.Field(f.label, terminal.Plain, terminal.Clean(f.text))
		}
	}
	if spec.Leave {
		s.Field("leave", terminal.Yellow, "requested by an operator. To withdraw it: zedkube leave --cancel")
	}
	if st.AtStake != nil {
		putAtStake(s, *st.AtStake)
	}
	s.Gap()
	table := terminal.Table{Columns: []terminal.Column{
		{Title: "CONDITION", Keep: 0, Right: false}, {Title: "STATUS", Keep: 0, Right: false}, {Title: "FOR", Keep: 2, Right: true}, {Title: "REASON", Keep: 0, Right: false},
	}}
	looks := map[types.ConditionStatus]terminal.Style{types.ConditionTrue: terminal.Green, types.ConditionFalse: terminal.Red}
	for _, c := range st.Conditions {
		table.Rows = append(table.Rows, []terminal.Cell{
			{Text: terminal.Clean(string(c.Type))},
			{Text: terminal.Clean(string(c.Status)), Look: looks[c.Status]},
			{Text: terminal.ShortAge(c.LastTransitionTime, now)},
			{Text: terminal.Clean(c.Reason)},
		})
	}
	table.Draw(s)
	for _, c := range st.Conditions {
		if c.Status != types.ConditionTrue && c.Message != st.Description {
			s.Put(0, terminal.Yellow, terminal.Clean(string(c.Type)+": "+c.Message))
		}
	}
}

// putAtStake is what a leave under way may take along.
func putAtStake(s *terminal.Screen, a types.ClusterAtStake) {
	s.Gap()
	s.Put(0, terminal.Bold, "What the leave may take along")
	if a.VolumesAsOf.IsZero() {
		s.Put(2, terminal.Red, "It is not known which volumes have data here only.")
	} else {
		s.Put(2, terminal.Red, fmt.Sprintf("The data of %s, as of %s", phrase.Counted(len(a.Volumes)+a.OmittedVolumes, "volume"), terminal.Timestamp(a.VolumesAsOf)))
	}
	terminal.PutList(s, a.Volumes, a.OmittedVolumes, func(v types.ClusterVolume) { s.Put(4, terminal.Plain, terminal.Clean(v.Name+" "+v.Claim)) })
	if a.EndsCluster {
		s.Put(2, terminal.Red, "The cluster ceases to exist with this node: all its objects are lost.")
	}
	if !a.ConsentGiven.IsZero() {
		s.Put(2, terminal.Plain, "Consent to that was given at "+terminal.Timestamp(a.ConsentGiven)+".")
	}
	if a.Applications > 0 {
		s.Put(2, terminal.Plain, phrase.Counted(a.Applications, "application")+" run on this node, or did when it was last seen.")
	}
	s.Put(2, terminal.Plain, "Drain: "+terminal.OrNone(terminal.Clean(a.Drain)))
	if a.WithoutCluster != "" {
		s.Put(2, terminal.Plain, "Without the cluster: "+terminal.Clean(a.WithoutCluster))
	}
}

func phaseLook(p types.ClusterPhase) terminal.Style {
	switch p {
	case types.ClusterProvisioned:
		return terminal.Green
	case types.ClusterDegraded, types.ClusterFailed:
		return terminal.Red
	}
	return terminal.Yellow
}
