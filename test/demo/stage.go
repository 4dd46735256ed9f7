package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/test/screen"
	"github.com/zedkube/zedkube/types"
)

// firstStep is what has happened before the story begins.
const firstStep = "a real control plane with three nodes"

// stage is everything the story is played on.
type stage struct {
	view    *screen.View
	cluster *devcluster.Cluster
	fleet   *player.Fleet
	nodes   []*player.Member
	apps    []types.AppInstanceConfig
	dir     string         // of the devices
	ports   []int          // of their pages
	lost    *player.Member // that has no power, if any

	alive        context.Context // as long as the demo runs
	stopWatching context.CancelFunc
	watching     sync.WaitGroup
	answers      sync.Map // what /status last said, by node
}

// begin starts the control plane and prepares the devices, still switched off.
func begin(ctx context.Context, v *screen.View, record *screen.Recorder, o options) (*stage, error) {
	s := &stage{view: v, apps: makeApps(), alive: ctx, dir: o.dir}
	began := time.Now()
	var err error
	if s.ports, err = freePorts(3); err != nil {
		return nil, err
	}
	if s.cluster, err = devcluster.Start(ctx, devcluster.Options{Log: os.Stderr, Nodes: 3, Answers: true}); err != nil {
		return nil, err
	}
	if err := s.longhorn(ctx); err != nil {
		return nil, errors.Join(err, s.cluster.Stop())
	}
	v.Begin(s.table, record)
	v.Step(true, firstStep, fmt.Sprintf(" (%.1f s)", time.Since(began).Seconds()))
	s.fleet, err = player.NewFleet(ctx, s.cluster, player.FleetOptions{
		Dir: o.dir, Program: o.program, Say: v.Event, Apps: s.appsFor,
		Port: "lo", Watched: true, Args: s.pageFor,
	})
	if err != nil {
		return nil, errors.Join(err, s.cluster.Stop())
	}
	if err := s.fleet.Configure(player.ShortWindow()); err != nil {
		return nil, errors.Join(err, s.fleet.Close(), s.cluster.Stop())
	}
	s.nodes = s.fleet.Members
	watching, stop := context.WithCancel(ctx)
	s.stopWatching = stop
	s.watching.Go(func() { s.redraw(watching) })
	if record != nil {
		s.watching.Go(func() { record.Listen(watching, s.page) })
	}
	return s, nil
}

// page opens what the page of the node that drains is sent.
func (s *stage) page(ctx context.Context) (io.ReadCloser, error) {
	socket := filepath.Join(s.drained().Root, "run/zedkube/zedkube.sock")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/events", http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Transport{DialContext: dial, DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, errors.New(resp.Status)
	}
	return resp.Body, nil
}

// end cuts the power: so what the agents said last is there to read, the report
// of the one that reported included.
func (s *stage) end() {
	s.stopWatching()
	s.watching.Wait()
	for _, n := range s.nodes {
		n.KillProgram()
	}
	if err := errors.Join(s.fleet.Close(), s.cluster.Stop()); err != nil {
		s.view.Lines("stop the stage: " + err.Error())
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
				s.view.Event(n.Name, "zedkube", fmt.Sprintf("NodeDrainStatus %s for %s", status.Status, status.RequestedBy))
			}
		}
		s.ask(ctx)
		s.view.Changed()
		select {
		case <-ctx.Done():
			return
		case <-bell:
		case <-tick.C:
		}
	}
}

// ask asks every node's :12346/status, for the table.
func (s *stage) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, n := range s.nodes {
		text, err := player.Ask(ctx, n.IP)
		switch {
		case err != nil:
			text = "-" // it does not listen
		case text == "":
			text = "(empty)"
		}
		s.answers.Store(n.Name, text)
	}
}

// answer is the node's last answer, cut to the width of its column.
func (s *stage) answer(n *player.Member) string {
	text, _ := s.answers.Load(n.Name)
	shown, _ := text.(string)
	return shown[:min(len(shown), len("cluster:")+4)]
}

// table is the live picture: what each node's zedkube says of it.
func (s *stage) table() []string {
	const row = "%-7s %-15s %-13s %-7s %-13s %s"
	lines := []string{fmt.Sprintf(row, "NODE", "CLUSTER IP", "/STATUS", "REPORTS", "DRAIN", "APPLICATIONS")}
	for _, n := range s.nodes {
		leader, _ := n.Watch.Leader.Get(types.Global)
		drain, _ := n.Watch.Drain.Get(types.Global)
		var here []string
		for _, app := range s.apps {
			claim, _ := n.Watch.Apps.Get(app.UUIDandVersion.UUID.String())
			if claim.ScheduledOnThisNode {
				here = append(here, app.DisplayName)
			}
		}
		reports := "-"
		if leader.IsStatsLeader {
			reports = "yes"
		}
		lines = append(lines, fmt.Sprintf(row, n.Name, n.IP, s.answer(n), reports, drain.Status, strings.Join(here, " ")))
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
	lines := []string{"", verdict, "", "Look at what the controller sends:"}
	for _, n := range s.nodes {
		lines = append(lines, "  less "+n.DocumentPath())
	}
	lines = append(lines, "at what the agents wrote:")
	for _, n := range s.nodes {
		lines = append(lines, fmt.Sprintf("  jq . %s/run/zedkube/*/*.json", n.Root))
	}
	lines = append(lines, "and at what they logged:")
	for _, n := range s.nodes {
		lines = append(lines, fmt.Sprintf("  less %s/zedkube.log", n.Root))
	}
	s.view.Lines(lines...)
}
