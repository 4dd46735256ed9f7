//go:build linux

package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

// failover is how long a cluster may be without a reporter whose agent or host
// died; handover, whose agent was stopped: it takes a moment, and far less than the
// Lease lasts, on a busy machine too.
const (
	failover = 35 * time.Second
	handover = 10 * time.Second
)

// TestHosts tells one story on five hosts, three of which are a cluster at a time.
func TestHosts(t *testing.T) {
	rig.NeedsHosts(t)
	program := agent.Build(t)
	s := newStage(t, program, devcluster.Options{Nodes: 5, Spare: 4}, 3)
	tell := func(what string, story func(*testing.T)) {
		if !t.Failed() {
			t.Run(what, story)
		}
	}
	tell("three nodes form a cluster", s.threeForm)
	tell("the status server is reached across the switch, on the cluster address only", s.statusServerIsReached)
	tell("a reporter that is stopped hands over at once", s.stoppedHandsOver)
	tell("a node is replaced", s.nodeIsReplaced)
	tell("meanwhile", func(t *testing.T) {
		t.Run("a killed reporter is followed", func(t *testing.T) { t.Parallel(); s.killedAreFollowed(t, 3) })
		t.Run("another cluster on the wire does not mix", func(t *testing.T) { t.Parallel(); s.clustersDoNotMix(t, program) })
	})
	tell("a cut reporter falls silent before another speaks, and heals", s.cutReporterFallsSilent)
	tell("the seed server is replaced", s.seedIsReplaced)
}

// ask reads a page of the status server on ip, as somebody on host i does.
func (s *stage) ask(ctx context.Context, i int, ip, path string) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	url := fmt.Sprintf("http://%s%s", net.JoinHostPort(ip, fmt.Sprint(player.StatusPort)), path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	client := http.Client{Transport: &http.Transport{DialContext: s.Cluster.DialFrom(i), DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return response.StatusCode, string(body), err
}

// address is the cluster address of a device.
func (s *stage) address(i int) string {
	if s.ipv6 {
		return s.Cluster.Nodes[i].IPv6
	}
	return s.Cluster.Nodes[i].IP
}

// lacks says what these devices lack to be the cluster and all of it, "" for
// nothing.
func (s *stage) lacks(ctx context.Context, of ...int) string {
	voting, err := s.Cluster.Members(ctx)
	if err != nil {
		return err.Error()
	}
	if !slices.Equal(voting, of) {
		return fmt.Sprintf("%v vote in etcd, want %v", voting, of)
	}
	want := "cluster:" + s.Fleet.ClusterID.String()
	var names []string
	for _, i := range of {
		m := s.Fleet.Members[i]
		names = append(names, m.Name)
		if _, answer, err := s.ask(ctx, devcluster.Switch, s.address(i), "/status"); answer != want {
			return fmt.Sprintf("/status of %s answers %q, %v", m.Name, answer, err)
		}
	}
	now := s.reigns.now()
	if len(now) != 1 {
		return fmt.Sprintf("%d report", len(now))
	}
	reporter := now[0]
	report, _ := reporter.Watch.Report.Get(types.Global)
	if got := nodesOf(report); !slices.Equal(got, names) {
		return fmt.Sprintf("%s reports the nodes %v, want %v", reporter.Name, got, names)
	}
	return ""
}

// nodesOf are the names of the nodes of a report.
func nodesOf(report types.KubeClusterInfo) []string {
	var names []string
	for _, n := range report.Nodes {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return names
}

func (s *stage) threeForm(t *testing.T) {
	s.Boot(t, 0, 1, 2)
	rig.Until(t, 90*time.Second, func() string { return s.lacks(t.Context(), 0, 1, 2) })
	for _, m := range s.Fleet.Members[1:3] {
		if !s.Heard(m, "joins: ") {
			t.Errorf("%s has not asked whether it may join", m.Name)
		}
	}
}

func (s *stage) statusServerIsReached(t *testing.T) {
	for i, n := range s.Cluster.Nodes[:3] {
		for from := range 3 {
			if code, answer, err := s.ask(t.Context(), from, n.IP, "/status"); code != http.StatusOK || !strings.HasPrefix(answer, "cluster:") {
				t.Errorf("%s asks %s: %d %q, %v", s.Cluster.Nodes[from].Name, n.Name, code, answer, err)
			}
		}
		for _, ip := range []string{n.Management, n.IPv6} {
			if !s.reaches(t, devcluster.Switch, ip, 6443) {
				t.Errorf("%s of %s is out of reach for everybody", ip, n.Name)
			}
			if s.reaches(t, devcluster.Switch, ip, player.StatusPort) || s.reaches(t, i, ip, player.StatusPort) {
				t.Errorf("the status server of %s listens on %s", n.Name, ip)
			}
		}
		if s.reaches(t, i, "127.0.0.1", player.StatusPort) {
			t.Errorf("the status server of %s listens on loopback", n.Name)
		}
	}
	// A round of reports: each peer wants a proof.
	rig.Until(t, 10*time.Second, func() string { return s.lacksReports(t.Context()) })
}

// lacksReports says whose report is missing in a round that the first host asks
// for, "" for nobody's.
func (s *stage) lacksReports(ctx context.Context) string {
	_, answer, err := s.ask(ctx, 0, s.Cluster.Nodes[0].IP, "/cluster-app")
	var round struct {
		Value []struct{ Hostname, Errors string }
	}
	if err := errors.Join(err, json.Unmarshal([]byte(answer), &round)); err != nil {
		return err.Error()
	}
	reports := map[string]bool{}
	for _, r := range round.Value {
		reports[r.Hostname] = r.Errors == ""
	}
	for _, n := range s.Cluster.Nodes[:3] {
		if !reports[n.DeviceName] {
			return fmt.Sprintf("/cluster-app has no report of %s: %+v", n.DeviceName, round.Value)
		}
	}
	return ""
}

// reaches says whether something listens there, for somebody on host i.
func (s *stage) reaches(t *testing.T, i int, ip string, port int) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	conn, err := s.Cluster.DialFrom(i)(ctx, "tcp", net.JoinHostPort(ip, fmt.Sprint(port)))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
