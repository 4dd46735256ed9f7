package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// stage is everything the story is played on.
type stage struct {
	view    *view
	cluster *devcluster.Cluster
	fleet   *player.Fleet
	nodes   []*player.Member
	apps    []types.AppInstanceConfig

	alive        context.Context // as long as the demo runs
	stopWatching context.CancelFunc
	watching     sync.WaitGroup
}

// begin starts the control plane and prepares the devices, still switched off.
func begin(ctx context.Context, v *view, program, dir string) (*stage, error) {
	s := &stage{view: v, apps: makeApps(), alive: ctx}
	began := time.Now()
	var err error
	if s.cluster, err = devcluster.Start(ctx, devcluster.Options{Log: os.Stderr, Nodes: 3}); err != nil {
		return nil, err
	}
	v.start = time.Now()
	v.step(true, "a real control plane with three nodes", fmt.Sprintf(" (%.1f s)", time.Since(began).Seconds()))
	s.fleet, err = player.NewFleet(ctx, s.cluster, player.FleetOptions{
		Dir: dir, Program: []string{program}, Say: v.event, Apps: s.appsFor,
	})
	if err != nil {
		return nil, errors.Join(err, s.cluster.Stop())
	}
	s.nodes = s.fleet.Members
	v.table = s.table
	watching, stop := context.WithCancel(ctx)
	s.stopWatching = stop
	s.watching.Go(func() { s.redraw(watching) })
	return s, nil
}

// end switches everything off, in the order of a shutdown.
func (s *stage) end() {
	s.stopWatching()
	s.watching.Wait()
	if err := errors.Join(s.fleet.Close(), s.cluster.Stop()); err != nil {
		s.view.lines("stop the stage: " + err.Error())
	}
}

func (s *stage) redraw(ctx context.Context) {
	bell := make(chan struct{}, 1)
	for _, n := range s.nodes {
		n.Watch.Notify(bell)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	drains := map[string]types.NodeDrainStatus{}
	for {
		for _, n := range s.nodes {
			status, ok := n.Watch.Drain.Get(types.Global)
			if ok && status != drains[n.Name] {
				drains[n.Name] = status
				s.view.event(n.Name, "zedkube", fmt.Sprintf("NodeDrainStatus %s for %s", status.Status, status.RequestedBy))
			}
		}
		s.view.changed()
		select {
		case <-ctx.Done():
			return
		case <-bell:
		case <-tick.C:
		}
	}
}

// table is the live picture: what each node's zedkube says of it.
func (s *stage) table() []string {
	lines := []string{fmt.Sprintf("%-8s %-15s %-9s %-9s %-14s %s", "NODE", "CLUSTER IP", "IP READY", "REPORTER", "DRAIN", "APPLICATIONS HERE")}
	for _, n := range s.nodes {
		status, _ := n.Watch.ClusterStatus.Get(types.Global)
		leader, _ := n.Watch.Leader.Get(types.Global)
		drain, _ := n.Watch.Drain.Get(types.Global)
		var here []string
		for _, app := range s.apps {
			claim, _ := n.Watch.Apps.Get(app.UUIDandVersion.UUID.String())
			if claim.ScheduledOnThisNode {
				here = append(here, app.DisplayName)
			}
		}
		lines = append(lines, fmt.Sprintf("%-8s %-15s %-9v %-9v %-14s %s",
			n.Name, n.IP, status.ClusterIPIsReady, leader.IsStatsLeader, drain.Status, strings.Join(here, " ")))
	}
	return lines
}

// podsOn counts the application pods on a node that are not on their way out;
// -1 when the API server does not say.
func (s *stage) podsOn(ctx context.Context, name string) int {
	pods, err := s.cluster.Client().CoreV1().Pods(devcluster.AppNamespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil {
		return -1
	}
	left := 0
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil {
			left++
		}
	}
	return left
}

// nodeFault says what keeps a node from taking pods, or "".
func (s *stage) nodeFault(ctx context.Context, name string) string {
	n, err := s.cluster.Client().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	if n.Spec.Unschedulable {
		return name + " is cordoned"
	}
	return ""
}

// summary says where to look.
func (s *stage) summary(err error) {
	verdict := "Every step was seen."
	if err != nil {
		verdict = "Failed: " + err.Error()
		if errors.Is(err, context.Canceled) {
			verdict = "Interrupted."
		}
	}
	lines := []string{"", verdict, "", "Look at what the agents wrote:"}
	for _, n := range s.nodes {
		lines = append(lines, fmt.Sprintf("  jq . %s/run/zedkube/*/*.json     (log: %s/zedkube.log)", n.Root, n.Root))
	}
	s.view.lines(lines...)
}

// kubectlHint is how to use kubectl on the control plane while it runs.
func (s *stage) kubectlHint() string {
	return "KUBECONFIG=" + filepath.Join(s.nodes[0].Root, "run/.kube/k3s/k3s.yaml") + " kubectl get nodes"
}
