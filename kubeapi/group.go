package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// groupAgain is how long an API group that is missing is taken for missing: it
// is installed once in a cluster's life.
const groupAgain = time.Minute

var errListAnew = errors.New("its kinds have come or gone")

// group is an API group that a cluster may lack, such as KubeVirt's. Several
// views share it, so that only one of them asks for it.
type group struct {
	conn *connection
	schema.GroupVersion

	turn   chan struct{} // of capacity 1: full while one of them uses what follows
	served bool          // it was there when last asked for
	until  time.Time     // it is taken for missing
}

func newGroup(conn *connection, gv schema.GroupVersion) *group {
	return &group{conn: conn, GroupVersion: gv, turn: make(chan struct{}, 1)}
}

// enter waits for the others, of whom one may ask just now.
func (g *group) enter(ctx context.Context) error {
	select {
	case g.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *group) leave() { <-g.turn }

// missing returns until when the group is taken for missing; zero if it is served.
func (g *group) missing(ctx context.Context) (until time.Time, err error) {
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
	if g.served, err = g.conn.serves(ctx, g.GroupVersion, known); err != nil || g.served {
		return time.Time{}, err
	}
	g.until = time.Now().Add(groupAgain)
	return g.until, nil
}

// doubt has the group asked for again if err says that a kind is not there.
func (g *group) doubt(ctx context.Context, err error) {
	if apierrors.IsNotFound(err) && g.enter(ctx) == nil {
		g.served, g.until = false, time.Time{}
		g.leave()
	}
}

// serves asks for the group by its name first: while an API server begins, it
// answers that with an error and not with 404, whereas its list of groups is
// only not whole yet. Where it is known to be missing, that is all.
func (conn *connection) serves(ctx context.Context, gv schema.GroupVersion, missing bool) (bool, error) {
	text, err := conn.raw(ctx, "/apis/"+gv.String())
	switch {
	case apierrors.IsNotFound(err) && missing:
		return false, nil
	case apierrors.IsNotFound(err):
		return false, conn.denies(ctx, gv.Group)
	case err != nil:
		return false, fmt.Errorf("look for API group %s: %w", gv.Group, err)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(text, &list); err != nil || list.GroupVersion != gv.String() {
		return false, fmt.Errorf("look for API group %s: %w", gv.Group, errOther)
	}
	return true, nil
}

// denies returns nil when the server's own list of API groups is without that
// one. A list without a group of Kubernetes' own is none: anybody may answer 404.
func (conn *connection) denies(ctx context.Context, name string) error {
	text, err := conn.raw(ctx, "/apis")
	if err != nil {
		return fmt.Errorf("list API groups: %w", err)
	}
	var list metav1.APIGroupList
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("list API groups: %w", err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == name })
	}
	switch {
	case list.Kind != "APIGroupList" || !has(storagev1.GroupName):
		return errors.New("list API groups: the answer is no such list")
	case has(name):
		return fmt.Errorf("API group %s is served only in part", name)
	}
	return nil
}

// raw gets a page of the API server in JSON.
func (conn *connection) raw(ctx context.Context, path string) ([]byte, error) {
	return conn.kube.CoreV1().RESTClient().Get().AbsPath(path).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
}

// optional is lw while the group is served. A kind of a
// group that is missing is an empty list, after which nothing is heard until it
// is time to ask again.
func optional(g *group, lw *cache.ListWatch, list func(metav1.ListMeta) runtime.Object, object func(metav1.ObjectMeta) runtime.Object) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			switch until, err := g.missing(ctx); {
			case err != nil:
				return nil, err
			case !until.IsZero():
				return list(metav1.ListMeta{ResourceVersion: noVersion}), nil
			}
			l, err := lw.ListWithContextFunc(ctx, o)
			g.doubt(ctx, err)
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			streams := o.SendInitialEvents != nil && *o.SendInitialEvents
			switch until, err := g.missing(ctx); {
			case err != nil:
				return nil, err
			case !until.IsZero() && streams:
				return nothing(until, object(metav1.ObjectMeta{
					ResourceVersion: noVersion, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
				})), nil
			case !until.IsZero() && o.ResourceVersion == noVersion:
				return nothing(until, nil), nil
			case !until.IsZero() || !streams && o.ResourceVersion == noVersion:
				return nil, errListAnew
			}
			w, err := lw.WatchFuncWithContext(ctx, o)
			g.doubt(ctx, err)
			return w, err
		},
	}
}

// noVersion is that of a list of what does not exist. Any list is newer.
const noVersion = "1"

// nothing is a watch that tells of end, if there is one, and ends at until.
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
