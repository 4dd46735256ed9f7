//go:build linux

package applogs

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
)

// TestApplicationsOnRealNodes tells one story: applications run and print on
// three hosts, and then the hosts lose what hosts can lose.
func TestApplicationsOnRealNodes(t *testing.T) {
	rig.NeedsPods(t)
	s := newStage(t)
	tell := func(what string, story func(*testing.T)) {
		if !t.Failed() {
			began := time.Now()
			t.Run(what, story)
			t.Logf("%s: %s", what, rig.Since(began))
		}
	}
	tell("applications run, and what they print is told", s.applicationsRun)
	tell("a person reads a log at any of the devices", s.logsArePrinted)
	tell("an application is deleted while the agent is down", s.deletedMeanwhile)
	tell("agents, kubelets and cables are lost for a moment", func(t *testing.T) { s.killPoints(t, 10) })
	tell("a host is killed", s.hostIsKilled)
	tell("a node is cut", func(t *testing.T) { s.nodeIsCut(t, 60*time.Second) })
	tell("at rest every line is told once, and every application is one node's", s.rests)
}

func (s *stage) applicationsRun(t *testing.T) {
	// This one restarts again and again before anybody looks.
	s.newApp(t, "restless", 0, devcluster.Prints{Rate: 20, Stderr: 4, Exit: 60}, devcluster.Prints{})
	for i := range s.Fleet.Members {
		s.Cluster.StopKubelet(i) // it will come back with the boot id of the device
	}
	for i := range s.Fleet.Members {
		s.bootNode(t, i)
	}
	first := devcluster.Prints{Rate: 200, Stderr: 5, Exit: 30, Well: true}
	s.newApp(t, "steady", 0, devcluster.Prints{Rate: 40, Length: 200, Stderr: 3}, first)
	s.newApp(t, "rotated", 1, devcluster.Prints{Rate: 100, Length: 500, Stderr: 10}, devcluster.Prints{})
	s.newApp(t, "cutoff", 1, devcluster.Prints{Rate: 20, Stderr: 2}, first)
	s.newApp(t, "mover", 2, devcluster.Prints{Rate: 20, Stderr: 2}, first)
	s.newApp(t, "doomed", 0, devcluster.Prints{Rate: 5}, devcluster.Prints{Rate: 50, Exit: 3, Well: true})
	for _, a := range s.apps {
		if a.cfg.DisplayName != "restless" {
			rig.Until(t, time.Minute, func() string { return s.runsOn(t, a, a.node) })
		}
		s.claims.watch(a)
		t.Logf("%s is reported after %s more", a.cfg.DisplayName, rig.Until(t, time.Minute, func() string {
			if s.books[a.node].count(a) == 0 {
				return "nothing is told of " + a.cfg.DisplayName
			}
			return ""
		}))
	}
	for i := range s.Fleet.Members {
		rig.Until(t, 30*time.Second, func() string {
			if node := s.node(t, i); node == nil || node.Annotations["zedkube.github.io/agent"] == "" {
				return s.Name(i) + " has no stamp"
			}
			return ""
		})
	}
	s.isTold(t, 30*time.Second)
}

// printedLine is what zedkube logs prints of one line.
var printedLine = regexp.MustCompile(`(?m)^\S+Z \d+ \S+Z x+$`)

func (s *stage) logsArePrinted(t *testing.T) {
	for i, m := range s.Fleet.Members {
		out, err := m.Command("logs", "steady", "--container", "app")
		lines := printedLine.FindAll(out, -1)
		if err != nil || len(lines) < 20 || len(lines) != strings.Count(string(out), "\n") {
			t.Errorf("%s: %d lines are printed among %d: %v: %.300s", s.Name(i), len(lines), strings.Count(string(out), "\n"), err, out)
		}
	}
	m := s.Fleet.Members[2]
	goldenIs(t, "logs", m, "logs", "doomed", "--container", "init")
	goldenIs(t, "logs-json", m, "logs", "doomed", "--container", "init", "-o", "json")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, m.Program[0], append(m.Program[1:len(m.Program):len(m.Program)], "--root", m.Root, "logs", "-f", "steady", "--container", "app", "--since", "1s")...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	began := time.Now()
	for n := 0; n < 100 && lines.Scan(); n++ {
		if !printedLine.Match(lines.Bytes()) {
			t.Errorf("printed is %q", lines.Text())
		}
	}
	stamp, _, _ := strings.Cut(lines.Text(), " ")
	if at, err := time.Parse(time.RFC3339Nano, stamp); err != nil || at.Before(began) {
		t.Errorf("the 100th line is of %s, before it was asked for: %v", stamp, err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	for lines.Scan() {
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 { // as all that is interrupted
		t.Errorf("logs -f ended with %v", err)
	}
}

// deletedMeanwhile: nothing is left of what the agent says of an application that
// was deleted while it was down.
func (s *stage) deletedMeanwhile(t *testing.T) {
	a := s.apps["doomed"]
	for _, topic := range []string{"ENClusterAppStatus", "AppRepairStatus"} {
		if !s.says(0, topic, a) {
			t.Fatalf("nothing is said of doomed in %s", topic)
		}
	}
	s.claims.agent(0, false)
	s.Fleet.Members[0].StopProgram()
	s.dropApp(t, a)
	rig.Until(t, 30*time.Second, func() string {
		if pods := s.pods(t, a); len(pods) > 0 {
			return "there are " + describe(pods)
		}
		return ""
	})
	told := s.books[0].count(a)
	began := time.Now()
	s.startAgent(t, 0)
	rig.Until(t, 2*time.Second, func() string {
		for i := range s.Fleet.Members {
			for _, topic := range []string{"ENClusterAppStatus", "AppRepairStatus"} {
				if s.says(i, topic, a) {
					return fmt.Sprintf("%s still speaks of it in %s", s.Name(i), topic)
				}
			}
		}
		return ""
	})
	t.Logf("nothing is said of it %s after the agent's start", rig.Since(began))
	rig.Pause(t, time.Second)
	if n := s.books[0].count(a); n != told {
		t.Errorf("%d lines are told of what is gone", n-told)
	}
}
