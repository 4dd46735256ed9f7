package listwatch

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/zedkube/zedkube/kubeapi/access"
)

// Lister is a client for one kind of object.
type Lister[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// ListWatch is all that api has, or what the field selector on chooses of it.
func ListWatch[L runtime.Object](api Lister[L], on string) *cache.ListWatch {
	return Labelled(api, on, "")
}

// Labelled is what the label selector with chooses of that.
func Labelled[L runtime.Object](api Lister[L], on, with string) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector, o.LabelSelector = on, with
			return api.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector, o.LabelSelector = on, with
			return api.Watch(ctx, o)
		},
	}
}

// groupAgain is how long an API group that is missing is taken for missing: it
// is installed once in a cluster's life.
const groupAgain = time.Minute

var errRelist = errors.New("its kinds were added or removed")

// Group is an API group that a cluster may lack, such as KubeVirt's. Several
// views share it, so that only one of them asks for it.
type Group struct {
	conn *access.Connection
	schema.GroupVersion

	turn   chan struct{} // of capacity 1: full while one of them uses what follows
	served bool          // it was there when last asked for
	until  time.Time     // it is taken for missing
}

// NewGroup returns what the tables of one API group share on a connection.
func NewGroup(conn *access.Connection, gv schema.GroupVersion) *Group {
	return &Group{conn: conn, GroupVersion: gv, turn: make(chan struct{}, 1)}
}

// enter waits for the others, of whom one may ask just now.
func (g *Group) enter(ctx context.Context) error {
	select {
	case g.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *Group) leave() { <-g.turn }

// missing returns until when the group is taken for missing; zero if it is served.
func (g *Group) missing(ctx context.Context) (until time.Time, err error) {
	if err := g.enter(ctx); err != nil {
		return time.Time{}, err
	}
	defer g.leave()
	switch {
	case g.served:
		return time.Time{}, nil
	case time.Now().Before(g.until):
		return g.until, nil
	}
	known := !g.until.IsZero()
	if g.served, err = g.conn.Serves(ctx, g.GroupVersion, known); err != nil || g.served {
		return time.Time{}, err
	}
	g.until = time.Now().Add(groupAgain)
	return g.until, nil
}

// doubt has the group asked for again if err says that a kind is not there.
func (g *Group) doubt(ctx context.Context, err error) {
	if apierrors.IsNotFound(err) && g.enter(ctx) == nil {
		g.served, g.until = false, time.Time{}
		g.leave()
	}
}

// Optional is lw while the group is served. A kind of a group that is missing is an
// empty list, after which nothing is heard until it is time to ask again. none and last
// are an empty list and an empty object of the kind, which are sent then.
func Optional(g *Group, lw *cache.ListWatch, none access.List, last emptyObject) *cache.ListWatch {
	none.SetResourceVersion(noVersion)
	last.SetResourceVersion(noVersion)
	last.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			switch until, err := g.missing(ctx); {
			case err != nil:
				return nil, err
			case !until.IsZero():
				return none, nil
			}
			l, err := lw.ListWithContextFunc(ctx, o)
			g.doubt(ctx, err)
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			streams := ptr.Deref(o.SendInitialEvents, false)
			switch until, err := g.missing(ctx); {
			case err != nil:
				return nil, err
			case !until.IsZero() && streams:
				return nothing(until, last), nil
			case !until.IsZero() && o.ResourceVersion == noVersion:
				return nothing(until, nil), nil
			case !until.IsZero() || !streams && o.ResourceVersion == noVersion:
				return nil, errRelist
			}
			w, err := lw.WatchFuncWithContext(ctx, o)
			g.doubt(ctx, err)
			return w, err
		},
	}
}

type emptyObject interface {
	runtime.Object
	metav1.Object
}

// noVersion is that of a list of what does not exist. Any list is newer.
const noVersion = "1"

// nothing is a watch that sends end, if there is one, and ends at until.
func nothing(until time.Time, end runtime.Object) watch.Interface {
	events := make(chan watch.Event, 1)
	if end != nil {
		events <- watch.Event{Type: watch.Bookmark, Object: end}
	}
	timer := time.AfterFunc(time.Until(until), func() { close(events) })
	return watch.MockWatcher{
		StopFunc:       func() { timer.Stop() },
		ResultChanFunc: func() <-chan watch.Event { return events },
	}
}
