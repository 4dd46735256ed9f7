package membercmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/compat"
	"github.com/zedkube/zedkube/pkg/base/k3sbinary"
	"github.com/zedkube/zedkube/pkg/base/k3setcd"
	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

func newK3sStatusCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use:   "status",
		Short: "Show the k3s of this node, and what is against another version",
		Long: "Show the k3s of this node: the binary on disk, the version that runs, what is staged, etcd and its newest snapshot, which\n" +
			"is read back; the phase of a change or restart of k3s, and what that waits for; what is not in order of the kube container;\n" +
			"and what is against a change to the staged version, else to that of the setting k3s.version, else to the next minor\n" +
			"version. It changes nothing. See docs/operations.md, \"The version of k3s\".\n\n" + terminal.ShowExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			p := o.Paths()
			if err := device.CheckDevice(p); err != nil {
				return err
			}
			s := newK3sLook(p).at(c.Context(), device.Now(p.Root))
			return out.Print(terminal.Of(c.OutOrStdout()), terminal.View{Data: s, Draw: func(screen *terminal.Screen) {
				device.PutAgent(screen, p, s.ReadAt)
				s.put(screen)
			}})
		},
	})
}

func k3sFiles(p device.Paths) k3sbinary.Files {
	return k3sbinary.Files{
		VarLib: p.In(k3sbinary.DefaultVarLib), Need: k3sbinary.DefaultNeed,
		K3s: k3sprocess.K3s{PID: p.In(k3sprocess.DefaultPID), Proc: p.Proc},
	}
}

// k3sSnapshots are the snapshots of etcd of the k3s whose binary files has.
func k3sSnapshots(files k3sbinary.Files) (k3setcd.Snapshots, error) {
	base, err := files.Base()
	return k3setcd.Snapshots{Server: filepath.Join(base, k3setcd.DefaultServer), URL: k3setcd.DefaultURL}, err
}

// k3sLook is where the status of k3s comes from.
type k3sLook struct {
	device.Paths
	files      k3sbinary.Files
	metrics    string // of etcd; "" where it is not to be asked
	version    string // that it is about; "" for the one that is staged, or wanted
	deprecated func(context.Context) (types.DeprecatedAPIs, error)
}

func newK3sLook(p device.Paths) k3sLook {
	look := k3sLook{Paths: p, files: k3sFiles(p), deprecated: func(ctx context.Context) (d types.DeprecatedAPIs, err error) {
		err = device.WithAPI(ctx, p, func(kube *kubeapi.Client) error {
			d, err = kube.DeprecatedAPIs(ctx)
			return err
		})
		return d, err
	}}
	if p.Root == "" { // else it is another device than the one whose etcd answers here
		look.metrics = k3setcd.DefaultMetrics
	}
	return look
}

// k3sStatus is what is known of k3s on this node. What is nil or "" is not known, and
// Unknown says why.
type k3sStatus struct {
	ReadAt     time.Time
	Path       string // of the binary
	OnDisk     string // its version
	Kept       types.K3sVersionStatus
	Lifecycle  types.KubeLifecycle // as the agent published it
	Container  []string            // sentences: what is not in order of the kube container and its components
	Staged     *k3sbinary.Staged
	Etcd       *k3setcd.Health
	Snapshot   *k3setcd.Snapshot // the newest, if it could be read back
	APIs       *types.DeprecatedAPIs
	Next       string   // the version that Against and Unknown are about
	Components []string // with their versions
	Against    []string // sentences: what is against a change to Next
	Unknown    []string // sentences: what is not known, which is against it, too
}

func (l k3sLook) at(ctx context.Context, now time.Time) k3sStatus {
	s := k3sStatus{ReadAt: now.UTC(), Next: l.version, Components: []string{}, Against: []string{}, Unknown: []string{}}
	var err error
	s.Kept, _, err = device.ReadRecord[types.K3sVersionStatus](l.TopicFile(device.Self, "K3sVersionStatus"))
	s.missing(err)
	s.Lifecycle, _, err = device.ReadRecord[types.KubeLifecycle](l.TopicFile(device.Self, "KubeLifecycle"))
	s.missing(err)
	s.Container = overview.KubeContainer(l.Root)
	l.binary(ctx, &s)
	l.etcd(ctx, &s)
	minor := s.next()
	if minor == 0 {
		s.missing(errors.New("the version that k3s would change to is not known"))
		return s
	}
	apis, err := l.deprecated(ctx)
	if s.missing(err); err == nil {
		s.APIs = &apis
		removed, why := apis.RemovedBy(minor, now)
		for _, a := range removed {
			s.against("the API %s is in use, and removed in Kubernetes %s", a, a.RemovedIn)
		}
		if why != "" {
			s.missing(errors.New(why))
		}
	}
	l.components(&s, minor)
	return s
}

// missing says that something could not be read.
func (s *k3sStatus) missing(err error) {
	if err != nil {
		s.Unknown = append(s.Unknown, err.Error())
	}
}

func (s *k3sStatus) against(format string, args ...any) {
	s.Against = append(s.Against, fmt.Sprintf(format, args...))
}

func (l k3sLook) binary(ctx context.Context, s *k3sStatus) {
	path, err := l.files.Binary()
	if err != nil {
		s.missing(err)
		return
	}
	s.Path = path
	s.OnDisk, err = k3sbinary.Version(ctx, path)
	s.missing(err)
	if err := l.files.CheckSpace(); err != nil {
		s.against("%v", err)
	}
	staged, err := l.files.Staged()
	if s.missing(err); err == nil && staged.Version != "" {
		s.Staged = &staged
	}
	if s.OnDisk != "" && s.Kept.Running != "" && s.OnDisk != s.Kept.Running {
		s.against("the binary on disk is %s, and %s runs", s.OnDisk, s.Kept.Running)
	}
}

func (l k3sLook) etcd(ctx context.Context, s *k3sStatus) {
	snapshots, err := k3sSnapshots(l.files)
	if err != nil || !k3setcd.Exists(snapshots.Server) {
		return // that there is no binary was said; a worker has no etcd
	}
	if l.metrics == "" {
		s.missing(errors.New("etcd is not asked on another root"))
	} else if h, err := k3setcd.Look(ctx, l.metrics); err != nil {
		s.missing(err)
	} else {
		s.Etcd = &h
		if why := h.Why(); why != "" {
			s.against("%s", why)
		}
	}
	list, err := snapshots.List()
	if err == nil && len(list) > 0 {
		err = snapshots.Verify(ctx, list[0].Name)
	}
	switch {
	case err != nil:
		s.missing(err)
	case len(list) == 0:
		s.against("there is no snapshot of etcd on this server: zedkube k3s snapshot")
	default:
		s.Snapshot = &list[0]
		if age := s.ReadAt.Sub(list[0].At); age > k3setcd.SnapshotFresh || age < 0 {
			s.against("the newest snapshot of etcd is of %s: zedkube k3s snapshot", terminal.Timestamp(list[0].At))
		}
	}
}

// next chooses the version that the rest is about, and returns its minor version, 0 where
// none is known.
func (s *k3sStatus) next() int {
	staged := ""
	if s.Staged != nil {
		staged = s.Staged.Version
	}
	runs := cmp.Or(s.Kept.Running, s.OnDisk)
	s.Next = cmp.Or(s.Next, staged, s.Kept.Wanted)
	if v, err := types.ParseK3sVersion(s.Next); err == nil && s.Next != runs {
		return v.Minor
	}
	v, err := types.ParseK3sVersion(runs)
	if err != nil {
		s.Next = ""
		return 0
	}
	s.Next = fmt.Sprintf("v%d.%d", v.Major, v.Minor+1)
	return v.Minor + 1
}

func (l k3sLook) components(s *k3sStatus, minor int) {
	is, _, err := device.ReadRecord[types.KubeNodeConditions](l.PersistentFile(device.Self, "KubeNodeConditions"))
	s.missing(err)
	for _, part := range compat.Parts(is) {
		s.Components = append(s.Components, part.Component.String()+" "+cmp.Or(part.Version, "?"))
		switch verdict, why := compat.Check(part.Component, part.Version, minor); verdict {
		case compat.NotSupported:
			s.against("%s", why)
		case compat.Unknown:
			s.missing(errors.New(why))
		}
	}
}

func (s k3sStatus) put(t *terminal.Screen) {
	orNone := func(text string) string { return terminal.OrNone(terminal.Clean(text)) }
	t.Field("runs", terminal.Plain, orNone(s.Kept.Running))
	t.Field("on disk", terminal.Plain, orNone(strings.TrimSpace(s.OnDisk+" "+s.Path)))
	t.Field("setting", terminal.Plain, orNone(s.Kept.Wanted))
	if s.Kept.Held {
		t.Field("held", terminal.Yellow, terminal.Clean(s.Kept.Why))
	}
	staged := "none"
	if s.Staged != nil {
		staged = s.Staged.Version + ", " + terminal.Stamp(s.Staged.At, s.ReadAt)
	}
	t.Field("staged", terminal.Plain, terminal.Clean(staged))
	if h := s.Etcd; h != nil {
		size, quota := uint64(max(h.Size, 0)), uint64(max(h.Quota, 0))
		t.Field("etcd", terminal.Plain, fmt.Sprintf("%s, %s, %s of %s", terminal.Clean(h.Version), phrase.Counted(h.Members, "member"), terminal.BytesText(&size), terminal.BytesText(&quota)))
	}
	if s.Snapshot != nil {
		size := uint64(max(s.Snapshot.Size, 0))
		t.Field("snapshot", terminal.Plain, fmt.Sprintf("%s, %s, %s", terminal.Clean(s.Snapshot.Name), terminal.BytesText(&size), terminal.Stamp(s.Snapshot.At, s.ReadAt)))
	}
	if len(s.Components) > 0 {
		t.Field("components", terminal.Plain, terminal.Listed(s.Components))
	}
	if s.APIs != nil {
		t.Field("APIs", terminal.Plain, phrase.Counted(len(s.APIs.APIs), "deprecated API")+" in use since "+terminal.Stamp(s.APIs.StartedAt, s.ReadAt))
	}
	s.putLifecycle(t)
	for _, text := range s.Container {
		t.Put(0, terminal.Yellow, terminal.Clean(text))
	}
	s.putFindings(t)
}

// putLifecycle shows what the agent says of a change and of a restart of k3s.
func (s k3sStatus) putLifecycle(t *terminal.Screen) {
	l, look := s.Lifecycle, terminal.Yellow
	switch l.Phase {
	case "":
		return
	case types.LifecycleIdle:
		look = terminal.Plain
	case types.LifecycleRefused, types.LifecycleFailed, types.LifecycleStuck:
		look = terminal.Red
	}
	field := func(name string, look terminal.Style, text string) {
		if text != "" {
			t.Field(name, look, terminal.Clean(text))
		}
	}
	field("phase", look, string(l.Phase)+": "+l.Reason)
	field("since", terminal.Plain, terminal.Stamp(l.Since, s.ReadAt))
	field("to", terminal.Plain, l.To)
	field("commit", terminal.Yellow, l.Commit)
	if l.Failed.To != "" {
		field("failed", terminal.Red, l.Failed.To+", "+terminal.Stamp(l.Failed.At, s.ReadAt)+": "+l.Failed.Why)
	}
	field("rollback", terminal.Plain, strings.TrimSpace(l.Rollback.To+" "+cmp.Or(l.Rollback.Lacks, l.Rollback.Loses)))
	putK3sWaits(t, l.Nodes, l.Preconditions)
	field("restart", terminal.Red, l.Restart.Failed)
	field("restart", terminal.Yellow, l.Restart.Reason)
	field("announced", terminal.Yellow, l.Restart.Announced)
	putK3sWaits(t, nil, l.Restart.Preconditions)
}

func (s k3sStatus) putFindings(t *terminal.Screen) {
	for _, text := range s.Against {
		t.Put(0, terminal.Red, "against "+terminal.OrNone(s.Next)+": "+terminal.Clean(text))
	}
	for _, text := range s.Unknown {
		t.Put(0, terminal.Yellow, "unknown: "+terminal.Clean(text))
	}
}
