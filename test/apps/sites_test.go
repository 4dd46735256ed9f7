//go:build linux

package apps

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
)

const (
	kubeletPort = 10250
	// lets is how long a kubelet that has found back lets a pod go on that is not
	// its node's any more.
	lets = 3 * time.Second
)

// sites are what devcluster leaves out: what the runtimes of the nodes really
// run, kubelets that tell of it and that wait for volumes, and the attacher and
// the engines of Longhorn.
type sites struct {
	cluster *devcluster.Cluster
	all     []*site
	stop    context.CancelFunc
	done    chan struct{}

	mu     sync.Mutex
	wrongs []string             // what must never have happened
	events []string             // what was attached and detached
	seen   map[string]string    // state of each VolumeAttachment
	pods   []corev1.Pod         // as they were a moment ago
	ready  map[string]time.Time // since when which nodes are
}

// site is a device, whatever the cluster knows of it. Guarded by sites.mu.
type site struct {
	powered, connected, kubelet bool
	back                        time.Time // when its cable was last put in
	fenced                      bool      // since it was away: Kubernetes deletes its pods and detaches their volumes
	running                     map[types.UID]*run
	server                      *http.Server
}

// run is a pod that the runtime runs.
type run struct {
	pod  corev1.Pod
	gone time.Time // since when the kubelet knows that it is not to run
	lost bool      // the cluster gave it up while the device was away
}

func newSites(t *testing.T, cluster *devcluster.Cluster) *sites {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &sites{cluster: cluster, stop: stop, done: make(chan struct{}), seen: map[string]string{}, ready: map[string]time.Time{}}
	for i := range cluster.Nodes {
		s.all = append(s.all, &site{powered: true, connected: true, kubelet: true, running: map[types.UID]*run{}})
		s.serve(t, i)
	}
	go func() {
		defer close(s.done)
		for ctx.Err() == nil {
			if err := s.step(ctx); err != nil && ctx.Err() == nil {
				s.note("the played nodes: " + err.Error())
			}
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	return s
}

// end stops the play and tells what went wrong in it.
func (s *sites) end(t *testing.T) {
	s.stop()
	<-s.done
	for i := range s.all {
		s.unserve(i)
	}
	for _, w := range s.wrongs {
		t.Error(w)
	}
	if t.Failed() {
		for _, e := range s.events {
			t.Log(e)
		}
	}
}

// set changes the state of a device.
func (s *sites) set(i int, change func(*site)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.all[i])
	if !s.all[i].powered {
		clear(s.all[i].running)
	}
}

// runs says whether a pod of an application really runs on a device.
func (s *sites) runs(i int, domain string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.all[i].running {
		if r.pod.Labels["App-Domain-Name"] == domain {
			return true
		}
	}
	return false
}

// reachable says whether a device takes part in the cluster.
func (s *sites) reachable(i int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[i].powered && s.all[i].connected
}

func (s *sites) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(text)
}

func (s *sites) noteLocked(text string) {
	s.events = append(s.events, time.Now().Format(rig.Clock)+" "+text)
}

// step lets kubelets, attacher and engines do what they do next.
func (s *sites) step(ctx context.Context) error {
	client := s.cluster.Client()
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := client.CoreV1().Pods(devcluster.AppNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	ready, fenced := map[string]bool{}, map[string]bool{}
	for _, n := range nodes.Items {
		ready[n.Name], fenced[n.Name] = readiness(&n).Status == corev1.ConditionTrue, isFenced(&n)
	}
	s.follow(pods.Items, ready, fenced)
	held, err := s.attach(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range nodes.Items {
		if ready[n.Name] {
			errs = append(errs, s.kubelet(ctx, n))
		}
	}
	for _, p := range pods.Items {
		if p.Spec.NodeName != "" && devcluster.WaitsToStart(p) && p.DeletionTimestamp == nil && s.attached(p, held) {
			if err := s.cluster.LetStart(ctx, p); !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(append(errs, s.replicas(ctx, ready))...)
}

// follow has each runtime run what the kubelet there has started; one that does
// not hear of the cluster goes on.
func (s *sites) follow(pods []corev1.Pod, ready, fenced map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[types.UID]bool{}
	s.pods = pods
	for _, n := range s.cluster.Nodes {
		switch {
		case !ready[n.Name]:
			delete(s.ready, n.Name)
		case s.ready[n.Name].IsZero():
			s.ready[n.Name] = time.Now()
		}
	}
	for _, p := range pods {
		there[p.UID] = true
	}
	for i, n := range s.cluster.Nodes {
		d := s.all[i]
		d.fenced = fenced[n.Name] && (d.fenced || !d.connected)
		for uid, r := range d.running {
			r.lost = r.lost || !d.connected && !there[uid]
		}
		if !d.powered || !d.connected || !d.kubelet || !ready[n.Name] {
			continue
		}
		for _, p := range pods {
			if p.Spec.NodeName == n.Name && p.Status.Phase == corev1.PodRunning && d.running[p.UID] == nil {
				d.running[p.UID] = &run{pod: p}
			}
		}
		for uid, r := range d.running {
			switch {
			case there[uid]:
			case r.gone.IsZero():
				r.gone = time.Now()
			case time.Since(r.gone) > lets:
				delete(d.running, uid)
			}
		}
	}
}
