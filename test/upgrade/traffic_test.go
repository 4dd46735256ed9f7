//go:build linux

package upgrade

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/connrotation"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
)

const (
	namespace  = "writes"
	writeEvery = 50 * time.Millisecond
	// requestTimeout is when a server's answer is no longer waited for, and another is asked.
	requestTimeout = 3 * time.Second
)

// traffic is a writer that asks one server after the other, and a watch at each of them.
type traffic struct {
	servers []kubernetes.Interface
	dialers []*connrotation.Dialer
	quit    chan struct{}
	once    sync.Once
	writing sync.WaitGroup
	looking context.CancelFunc
	watches []*follower
	follows sync.WaitGroup

	mu      sync.Mutex
	written []string // acknowledged
	last    time.Time
	longest time.Duration // without one
	began   time.Time     // that
}

// newTraffic begins to write and to watch. It must be ended.
func newTraffic(t *testing.T, c *devcluster.Cluster) *traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &traffic{quit: make(chan struct{}), looking: cancel}
	t.Cleanup(w.close)
	for i := range c.Nodes {
		config, err := clientcmd.RESTConfigFromKubeConfig(c.NodeKubeconfig(i))
		if err != nil {
			t.Fatal(err)
		}
		dialer := connrotation.NewDialer(c.DialFrom(i))
		config.Dial, config.QPS, config.Burst = dialer.DialContext, 200, 400
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		w.servers, w.dialers = append(w.servers, client), append(w.dialers, dialer)
	}
	if _, err := w.servers[0].CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range w.servers {
		f := &follower{name: c.Nodes[i].Name, client: w.of(i), seen: map[string]bool{}}
		w.watches = append(w.watches, f)
		w.follows.Go(func() { f.run(ctx) })
	}
	w.last = time.Now()
	w.writing.Go(func() { w.write(ctx) })
	w.goesOn(t, "the servers run")
	return w
}

func (w *traffic) of(i int) typed.ConfigMapInterface {
	return w.servers[i].CoreV1().ConfigMaps(namespace)
}

// write creates one object after the other, each until a server has acknowledged it.
func (w *traffic) write(ctx context.Context) {
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for n, server := 0, 0; ; {
		select {
		case <-w.quit:
			return
		case <-tick.C:
		}
		name := fmt.Sprintf("w-%07d", n)
		for range w.servers {
			server = (server + 1) % len(w.servers)
			if w.creates(ctx, server, name) {
				w.acknowledged(name)
				n++
				break
			}
		}
	}
}

// creates reports whether a server acknowledges an object, which may be there already where
// the answer of another one was lost.
func (w *traffic) creates(ctx context.Context, server int, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := w.of(server).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err == nil || apierrors.IsAlreadyExists(err)
}

func (w *traffic) acknowledged(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = append(w.written, name)
	now := time.Now()
	if gap := now.Sub(w.last); gap > w.longest {
		w.longest, w.began = gap, w.last
	}
	w.last = now
}

func (w *traffic) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.written)
}

// goesOn waits for twenty more writes, a second's.
func (w *traffic) goesOn(t *testing.T, while string) {
	t.Helper()
	before := w.count()
	rig.Until(t, 30*time.Second, func() string {
		if now := w.count(); now < before+20 {
			return fmt.Sprintf("%d writes are acknowledged while %s", now-before, while)
		}
		return ""
	})
}

// end stops the writer, and judges: every server has every acknowledged write, and each watch
// has shown it, once. It returns the longest time without an acknowledged write.
func (w *traffic) end(t *testing.T) time.Duration {
	t.Helper()
	w.once.Do(func() { close(w.quit) })
	w.writing.Wait()
	for i, f := range w.watches {
		list, err := w.of(i).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		there := map[string]bool{}
		for _, object := range list.Items {
			there[object.Name] = true
		}
		if lost := lacking(w.written, there); lost != "" {
			t.Errorf("%s lost acknowledged writes: %s", f.name, lost)
		}
		rig.Until(t, 20*time.Second, func() string {
			if lost := f.lacks(w.written); lost != "" {
				return fmt.Sprintf("the watch at %s has not shown %s", f.name, lost)
			}
			return ""
		})
		said, wrong := f.story()
		t.Log(said)
		if wrong != "" {
			t.Error(wrong)
		}
	}
	t.Logf("%d writes acknowledged; the longest time without one was %s, from %s on", len(w.written), w.longest.Round(time.Millisecond), w.began.Format(rig.Clock))
	return w.longest
}

func (w *traffic) close() {
	w.once.Do(func() { close(w.quit) })
	w.looking()
	for _, d := range w.dialers {
		d.CloseAll()
	}
	w.writing.Wait()
	w.follows.Wait()
	for _, d := range w.dialers {
		d.CloseAll()
	}
}

// lacking names some that are not there, "" where all are.
func lacking(names []string, there map[string]bool) string {
	var lost []string
	for _, name := range names {
		if !there[name] {
			lost = append(lost, name)
		}
	}
	if len(lost) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d: %s", len(lost), len(names), strings.Join(lost[:min(len(lost), 5)], ", "))
}

// follower watches at one server, as a client does that resumes where its watch ended.
type follower struct {
	name   string
	client typed.ConfigMapInterface

	mu     sync.Mutex
	seen   map[string]bool
	begun  int // watches
	lists  int
	twice  []string // shown again by a watch that resumed
	errors map[string]int
}

func (f *follower) run(ctx context.Context) {
	for version := ""; ctx.Err() == nil; {
		var err error
		if version == "" {
			version, err = f.list(ctx)
		}
		if err == nil {
			version, err = f.watch(ctx, version)
		}
		if err != nil {
			f.failed(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (f *follower) list(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := f.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists++
	for _, object := range list.Items {
		f.seen[object.Name] = true
	}
	return list.ResourceVersion, nil
}

// watch follows from a version on, and returns where the next one is to begin: "" with a list.
func (f *follower) watch(ctx context.Context, version string) (string, error) {
	w, err := f.client.Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return "", err
	}
	if err != nil {
		return version, err
	}
	defer w.Stop()
	f.mu.Lock()
	f.begun++
	f.mu.Unlock()
	for event := range w.ResultChan() {
		object, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			err := apierrors.FromObject(event.Object)
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return "", err
			}
			return version, err
		}
		version = object.ResourceVersion
		if event.Type == watch.Added {
			f.shown(object.Name)
		}
	}
	return version, nil
}

func (f *follower) shown(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen[name] {
		f.twice = append(f.twice, name)
	}
	f.seen[name] = true
}

func (f *follower) failed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.errors == nil {
		f.errors = map[string]int{}
	}
	f.errors[string(apierrors.ReasonForError(err))]++
}

func (f *follower) lacks(names []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return lacking(names, f.seen)
}

func (f *follower) story() (said, wrong string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []string
	for _, reason := range slices.Sorted(maps.Keys(f.errors)) {
		errs = append(errs, fmt.Sprintf("%d %q", f.errors[reason], reason))
	}
	said = fmt.Sprintf("the watch at %s: begun %d times, %d lists, failed tries: %s", f.name, f.begun, f.lists, strings.Join(errs, ", "))
	if len(f.twice) > 0 {
		wrong = fmt.Sprintf("the watch at %s showed %d objects twice, the first is %s", f.name, len(f.twice), f.twice[0])
	}
	return said, wrong
}
