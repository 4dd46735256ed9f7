//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/history"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// Stage is a cluster with a device for each node, and what happens there is
// recorded.
type Stage struct {
	*Run
	Cluster *devcluster.Cluster
	Fleet   *player.Fleet

	// TieBreaker is the name of the cluster's tie-breaker, whose own cordon is none
	// of a drain. Where there is one, it is set before it is told.
	TieBreaker string

	alive     context.Context // until Close
	end       context.CancelFunc
	recording sync.WaitGroup
	audit     bool

	mu       sync.Mutex
	seen     map[string]map[types.DrainStatus]bool    // by node, since the last request
	requests map[string]map[types.DrainRequester]bool // by node, those that stand
	killed   map[string]int                           // agents that killed themselves
	cordons  map[string]string                        // ours, by node
	domains  map[string]string                        // of applications, by name
}

// Stage starts a control plane and prepares the devices, which are off. arguments
// are the program's.
func (r *Run) Stage(ctx context.Context, o devcluster.Options, arguments ...string) (*Stage, error) {
	program, err := filepath.Abs(r.Program)
	if err != nil {
		return nil, err
	}
	o.Log, o.Audit, o.Seed = r.Log, !o.Hosts, r.Seed
	cluster, err := devcluster.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Stage{
		Run: r, Cluster: cluster, audit: o.Audit,
		seen: map[string]map[types.DrainStatus]bool{}, requests: map[string]map[types.DrainRequester]bool{}, killed: map[string]int{},
		cordons: map[string]string{}, domains: map[string]string{},
	}
	s.alive, s.end = context.WithCancel(ctx)
	for _, n := range cluster.Nodes {
		s.seen[n.Name], s.requests[n.Name] = map[types.DrainStatus]bool{}, map[types.DrainRequester]bool{}
	}
	s.Fleet, err = player.NewFleet(ctx, cluster, player.FleetOptions{
		Dir: r.Dir, Program: append([]string{program}, arguments...), Say: s.told,
	})
	if err == nil {
		err = s.follow(s.alive)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.recording.Go(func() { s.attachVolumes(s.alive) })
	return s, nil
}

// disorder is what no log of an agent may hold.
var disorder = regexp.MustCompile(`(?m)^(WARNING: DATA RACE|panic: |fatal error: ).*$`)

// Close ends all of it and records what was left behind.
func (s *Stage) Close() error {
	var errs []error
	if s.Fleet != nil {
		errs = append(errs, s.Fleet.Close())
	}
	s.end()
	s.recording.Wait()
	if s.Fleet != nil {
		for _, m := range s.Fleet.Members {
			s.recordEnd(m)
		}
	}
	if s.audit {
		errs = append(errs, s.calls())
	}
	return errors.Join(append(errs, s.Cluster.Stop())...)
}

// recordEnd records how the agent of a device ended, where it should not have.
func (s *Stage) recordEnd(m *player.Member) {
	for _, how := range m.Ended() {
		if s.killed[m.Name] > 0 && how == "signal: killed" {
			s.killed[m.Name]--
			continue
		}
		s.History.Add(history.Event{Kind: history.AgentBad, Node: m.Name, Text: "the agent ended by itself: " + how})
	}
	content, err := os.ReadFile(filepath.Join(m.Root, "zedkube.log"))
	if err != nil {
		s.Found("%v", err)
	}
	if found := disorder.Find(content); found != nil {
		s.History.Add(history.Event{Kind: history.AgentBad, Node: m.Name, Text: "the agent's log says " + string(found)})
	}
}

// told records what the played agents tell.
func (s *Stage) told(device, agent, text string) {
	s.History.Add(history.Event{Kind: history.Told, Node: device, By: agent, Text: text})
	if agent != "device" || text != "rebooted" { // told before the next boot begins
		return
	}
	s.Operated(1)
	s.mu.Lock()
	clear(s.requests[device])
	s.mu.Unlock()
	s.History.Add(history.Event{Kind: history.Rebooted, Node: device})
	s.History.Add(history.Event{Kind: history.AgentUp, Node: device})
}

// Boot switches devices on, all of them where none is named.
func (s *Stage) Boot(of ...int) error {
	for i, m := range s.Fleet.Members {
		if len(of) > 0 && !slices.Contains(of, i) {
			continue
		}
		if err := m.Boot(s.alive); err != nil {
			return err
		}
		s.Up(m)
	}
	return nil
}

// Up and Down record that the agent of a device runs, or does so no longer.
func (s *Stage) Up(m *player.Member) {
	s.History.Add(history.Event{Kind: history.AgentUp, Node: m.Name})
}

// Down is the opposite of Up.
func (s *Stage) Down(m *player.Member, how string) {
	s.History.Add(history.Event{Kind: history.AgentDown, Node: m.Name, Text: how})
}

// Kill kills the agent of a device at a kill point and starts it again at once.
// Between two boots there is none.
func (s *Stage) Kill(m *player.Member, point string) error {
	s.Down(m, "killed: "+point)
	did, err := m.RestartProgram()
	if did {
		s.Killed(point)
	}
	s.Up(m)
	return err
}

// Died records that the agent of a device has killed itself at a kill point.
func (s *Stage) Died(m *player.Member, point string) {
	s.Down(m, "killed itself: "+point)
	s.Killed(point)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed[m.Name]++
}

// Fault gives the API server of node i a fault, in this phase of what goes on
// there; "" ends it.
func (s *Stage) Fault(i int, f devcluster.Fault, phase string) error {
	s.History.Add(history.Event{Kind: history.Fault, Node: s.Cluster.Nodes[i].Name, Text: f.String()})
	if f != devcluster.None {
		s.Faulted(fmt.Sprintf("%s, %s", f, phase))
	}
	return s.Cluster.SetNodeFault(i, f)
}

// Heal ends the fault of node i.
func (s *Stage) Heal(i int) error { return s.Fault(i, devcluster.None, "") }

// Alone records that a node reaches no API server, or does so again.
func (s *Stage) Alone(node string, is bool) {
	s.History.Add(history.Event{Kind: history.Alone, Node: node, On: is})
}

// CanRun records that an application runs, and may on these nodes.
func (s *Stage) CanRun(app string, nodes ...string) {
	s.History.Add(history.Event{Kind: history.App, App: app, Nodes: nodes})
}

// named remembers whose pods those of an application are that is about to be created: EVE labels its replica set, and the
// pods have the name alone (docs/wire.md, "App objects").
func (s *Stage) named(app devcluster.App) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.domains[app.Name] = app.Domain
}

// domain is what named has heard.
func (s *Stage) domain(app string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.domains[app]
}

// asked records a request that is about to be made.
func (s *Stage) asked(m *player.Member, by types.DrainRequester) {
	s.Operated(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen := s.seen[m.Name]; len(s.requests[m.Name]) == 0 || seen[types.DrainFailedDrain] || seen[types.DrainFailedCordon] {
		clear(seen)
	}
	s.requests[m.Name][by] = true
	s.History.Add(history.Event{Kind: history.Asked, Node: m.Name, By: by.String()})
}

// note remembers that a node has said so since the last request.
func (s *Stage) note(node string, status types.DrainStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[node][status] = true
}

// said reports whether it has.
func (s *Stage) said(node string, status types.DrainStatus) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[node][status]
}

// cordon is our annotation on the node, as far as is known; "" for none.
func (s *Stage) cordon(node string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cordons[node]
}

// Asks makes one of a device's agents ask for a drain, which no reboot follows.
func (s *Stage) Asks(m *player.Member, by types.DrainRequester) error {
	s.asked(m, by)
	return m.RequestDrain(types.NodeDrainRequest{RequestedAt: time.Now(), RequestedBy: by, Context: "soak"})
}

// TakesBack makes it take the request back.
func (s *Stage) TakesBack(m *player.Member, by types.DrainRequester) error {
	s.mu.Lock()
	delete(s.requests[m.Name], by)
	s.mu.Unlock()
	s.History.Add(history.Event{Kind: history.TookBack, Node: m.Name, By: by.String()})
	return m.WithdrawDrain(by)
}

// Reboots gives a device the controller's reboot command.
func (s *Stage) Reboots(m *player.Member) {
	s.asked(m, types.DrainRequesterDeviceOp)
	m.CommandReboot()
}

// Cordon is somebody else's.
func (s *Stage) Cordon(ctx context.Context, node string) error {
	if out, err := s.Cluster.Kubectl(ctx, "cordon", node); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	s.History.Add(history.Event{Kind: history.Foreign, Node: node, On: true})
	return nil
}

// Uncordon ends Cordon.
func (s *Stage) Uncordon(ctx context.Context, node string) error {
	s.History.Add(history.Event{Kind: history.Foreign, Node: node})
	if out, err := s.Cluster.Kubectl(ctx, "uncordon", node); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// leftovers is what drains leave.
func (s *Stage) leftovers(ctx context.Context) (*history.Look, error) {
	look := &history.Look{From: time.Since(s.History.Began())}
	list, err := s.Cluster.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, n := range list.Items {
		if n.Name != s.TieBreaker && (n.Annotations[cordonMark] != "" || n.Spec.Unschedulable) {
			look.Left = append(look.Left, n.Name)
		}
	}
	look.Holder, err = s.lockHolder(ctx)
	return look, err
}

// Settle waits, with the agents running and no request standing, until drains
// have left nothing, and records what they have left.
func (s *Stage) Settle(ctx context.Context) error {
	for end := time.Now().Add(endless); ; {
		look, err := s.leftovers(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && look.Left == nil && look.Holder == "", time.Now().After(end) && err == nil:
			s.History.Add(history.Event{Kind: history.Settled, Look: look})
			return nil
		case time.Now().After(end):
			return err
		}
		wait(ctx, 100*time.Millisecond)
	}
}

func wait(ctx context.Context, d time.Duration) string {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return "after " + d.String()
}
