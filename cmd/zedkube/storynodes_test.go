package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8stypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/zedkube/zedkube/test/devcluster"
)

const (
	cordonMark = "zedkube.github.io/cordon" // docs/wire.md, "Nodes"
	drainLease = "zedkube-node-drain"       // docs/wire.md, "Drain lock"
	nobody     = "nobody"
)

// ours is our mark on a node that is cordoned, "" for none.
func ours(n *corev1.Node) string {
	if !n.Spec.Unschedulable {
		return ""
	}
	return n.Annotations[cordonMark]
}

// followNodes shows look every change of a Node until ctx is done, one that is
// deleted with nothing but its name; stopped waits for the end.
func followNodes(ctx context.Context, cluster *devcluster.Cluster, look func(*corev1.Node)) (stopped func(), err error) {
	factory := informers.NewSharedInformerFactory(cluster.Client(), 0)
	_, err = factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { look(o.(*corev1.Node)) }, UpdateFunc: func(_, now any) { look(now.(*corev1.Node)) },
		DeleteFunc: func(o any) {
			if n, ok := o.(*corev1.Node); ok {
				look(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}})
			}
		},
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return func() { <-ctx.Done(); factory.Shutdown() }, err
}

// lockHolder is the node that holds the drain lock, or nobody.
func lockHolder(ctx context.Context, cluster *devcluster.Cluster) (string, error) {
	lease, err := cluster.Client().CoordinationV1().Leases(devcluster.AppNamespace).Get(ctx, drainLease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == ""):
		return nobody, nil
	case err != nil:
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// watchCordons keeps which nodes have a cordon of ours, and that it was never
// two at the same time.
func (s *story) watchCordons() (stopped func(), err error) {
	cordoned := map[string]bool{}
	return followNodes(s.ctx, s.fleet.Cluster, func(n *corev1.Node) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if ours(n) == "" {
			delete(cordoned, n.Name)
			return
		}
		if !cordoned[n.Name] {
			s.cordons = append(s.cordons, n.Name)
		}
		cordoned[n.Name] = true
		if len(cordoned) > 1 {
			s.together = fmt.Sprint(cordoned)
		}
	})
}

// inturn [NODE...]: never were two nodes cordoned by zedkube at the same time;
// with nodes, each of them was, in any order.
func inturn(s *story, _ *testscript.TestScript, args []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.together != "" {
		return fmt.Errorf("cordoned at the same time: %s", s.together)
	}
	for _, name := range args {
		if !slices.Contains(s.cordons, name) {
			return fmt.Errorf("%s was never cordoned, only %v", name, s.cordons)
		}
	}
	return nil
}

// lock NODE|nobody: waits until the drain lock is held so.
func lock(s *story, _ *testscript.TestScript, args []string) error {
	return eventually(func() string {
		holder, err := lockHolder(s.ctx, s.fleet.Cluster)
		if err != nil {
			return err.Error()
		}
		if holder != args[0] {
			return "the lock is held by " + holder
		}
		return ""
	})
}

// object [-A] KIND/NAME JSONPATH VALUE: waits for a value in the cluster, in the
// applications' namespace, or with -A in all, where the kind has one; ~VALUE is a regular expression.
func object(s *story, _ *testscript.TestScript, args []string) error {
	where := "--namespace=" + devcluster.AppNamespace
	if args[0] == "-A" {
		where, args = args[0], args[1:]
	}
	return eventually(func() string {
		out, err := s.fleet.Cluster.Kubectl(s.ctx, "get", where, args[0], "-o", "jsonpath="+args[1])
		if err != nil {
			return err.Error()
		}
		return differs(args[0]+" "+args[1], string(out), args[2])
	})
}

// kubelet NODE start|stop: the node's kubelet; without it nothing on the node
// moves, and the Node is not ready some time later.
func kubelet(s *story, _ *testscript.TestScript, args []string) error {
	_, i, err := s.member(args[0])
	if err != nil {
		return err
	}
	if args[1] == "start" {
		return s.fleet.Cluster.StartKubelet(i)
	}
	s.fleet.Cluster.StopKubelet(i)
	return nil
}

// newca NODE: the API server of the node has another authority, and the node
// another kubeconfig.
func newca(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	return m.RotateCA()
}

// alive NODE: the kubelet of a node that has none goes on saying that the node is Ready, until the story ends. The
// controller manager takes one that says nothing for 15 s for lost.
func alive(s *story, _ *testscript.TestScript, args []string) error {
	tell := func() error {
		patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
		_, err := s.fleet.Cluster.Client().CoreV1().Nodes().Patch(s.plugged, args[0], k8stypes.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	}
	s.playing.Go(func() {
		tick := time.NewTicker(3 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-s.plugged.Done():
				return
			case <-tick.C:
				_ = tell() // the next one says it again
			}
		}
	})
	return tell()
}

// powercut NODE: the device boots again without a word to anyone.
func powercut(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	boots := m.Boots()
	m.CutPower()
	return eventually(func() string {
		if m.Boots() == boots {
			return args[0] + " does not boot"
		}
		return ""
	})
}

// booted NODE N: waits until the device has booted so often, which others may do first.
func booted(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	return within(2*patience, func() string {
		if n := m.Boots(); strconv.Itoa(n) != args[1] {
			return fmt.Sprintf("%s has booted %d times", args[0], n)
		}
		return ""
	})
}

// poweroff NODE: the device goes off without a word, its node is not ready.
// Boot switches it on again.
func poweroff(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	m.KillProgram()
	m.PowerOff()
	return m.Kube.Leave(s.ctx)
}

// setHour is hour DURATION: how long the agents take an hour to be, before they
// boot.
func setHour(s *story, _ *testscript.TestScript, args []string) error {
	for _, m := range s.fleet.Members {
		m.Program = append(m.Program[:1:1], "--hour", args[0])
	}
	return nil
}

// differs says how a value is not what it should be, "" for not at all.
func differs(what, got, want string) string {
	if pattern, is := strings.CutPrefix(want, "~"); is {
		return mismatch(what, got, pattern)
	}
	if got != want {
		return fmt.Sprintf("%s is %q, not %q", what, got, want)
	}
	return ""
}
