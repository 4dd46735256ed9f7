package volumescmd

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// apiEvery is how often the API server is asked while somebody watches.
const apiEvery = 10 * time.Second

// volumesView is what is known of the volumes.
type volumesView struct {
	ReadAt   time.Time
	From     string    // who says it; "" where nobody does
	At       time.Time // when that was so; zero for unknown
	Items    []overview.Volume
	Problems []string // why a better source could not be had
}

// The sources of volumes.
const (
	fromReport = "the report of this node"
	fromAPI    = "the API server"
)

// kube is what is asked of the API server.
type kube interface {
	Storage(ctx context.Context, node string) (types.Storage, error)
	AppPodsNow(ctx context.Context) ([]types.Pod, error)
}

// asked asks for the volumes, again and again.
type asked struct {
	paths device.Paths
	dial  func(context.Context) (kube, func(), error)

	kube kube
	done func()
	last volumesView // of the API server
}

func newAsked(p device.Paths) *asked {
	return &asked{paths: p, dial: func(ctx context.Context) (kube, func(), error) {
		return kubeapi.Dial(ctx, device.Silent(), p.Kubeconfig, types.NoOperations{})
	}}
}

func (a *asked) close() {
	if a.done != nil {
		a.done()
	}
}

// look takes the volumes from the report where this node makes it, which needs no API
// server, else from the API server.
func (a *asked) look(ctx context.Context) volumesView {
	o := overview.Read(a.paths.Root, time.Now())
	v := volumesView{ReadAt: o.ReadAt, Items: []overview.Volume{}, Problems: []string{}}
	switch {
	case o.Report.Info.Known():
		v.ofReport(o)
	case o.Copied:
		v.Problems = append(v.Problems, "this copy has no report on the volumes; it is on the node that reports for the cluster")
	default:
		v = a.ofAPI(ctx, v, o)
	}
	overview.ByUrgency(v.Items)
	return v
}

// ofReport takes the volumes of the report. A report that does not change is not written
// again: while the agent runs, and sees the volumes, it is of now.
func (v *volumesView) ofReport(o overview.Overview) {
	v.From, v.At, v.Items = fromReport, o.ReadAt, append(v.Items, o.Storage.Volumes...)
	if !o.Agent.Runs {
		v.At = o.Agent.Seen
		v.Problems = append(v.Problems, "the agent is not running: "+o.Agent.Why)
	}
	i := slices.IndexFunc(o.Report.Sections, func(s types.ReportSection) bool { return s.Name == types.SectionStorage })
	if i < 0 {
		return
	}
	switch s := o.Report.Sections[i]; {
	case !s.StaleSince.IsZero():
		v.At = overview.UTC(s.StaleSince)
		v.Problems = append(v.Problems, "the agent does not see the volumes any more: "+s.Why)
	case !s.Known:
		v.Problems = append(v.Problems, "the agent has not seen the volumes yet: "+s.Why)
	}
}

// ofAPI asks the API server, not too often. What it said last is kept while it says nothing.
func (a *asked) ofAPI(ctx context.Context, v volumesView, o overview.Overview) volumesView {
	if v.ReadAt.Sub(a.last.ReadAt) >= apiEvery {
		volumes, err := a.list(ctx, o)
		a.last.ReadAt, a.last.Problems = time.Now().UTC(), v.Problems // it was asked meanwhile
		if err == nil {
			a.last.From, a.last.At, a.last.Items = fromAPI, a.last.ReadAt, volumes
		} else {
			a.last.Problems = append(a.last.Problems, err.Error())
		}
		v.ReadAt = a.last.ReadAt
	}
	v.From, v.At, v.Items, v.Problems = a.last.From, a.last.At, append(v.Items, a.last.Items...), a.last.Problems
	return v
}

var errNoLonghorn = errors.New("there are no replicated volumes: Longhorn is not installed in this cluster")

func (a *asked) list(ctx context.Context, o overview.Overview) ([]overview.Volume, error) {
	if a.kube == nil {
		kube, done, err := a.dial(ctx)
		if err != nil {
			return nil, err
		}
		a.kube, a.done = kube, done
	}
	ctx, cancel := context.WithTimeout(ctx, device.DialWithin)
	defer cancel()
	storage, err := a.kube.Storage(ctx, o.Node.Name)
	switch {
	case err != nil:
		return nil, err
	case !storage.Longhorn:
		return nil, errNoLonghorn
	}
	pods, err := a.kube.AppPodsNow(ctx)
	if err != nil {
		return nil, err
	}
	return overview.VolumesOf(storage.Volumes, pods, o.Apps.List, o.Node.Name), nil
}
