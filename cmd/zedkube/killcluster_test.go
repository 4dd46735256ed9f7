package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

func (j *judge) cordonSeen(ctx context.Context, n *corev1.Node) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.nodes[n.Name]
	was := r.cordon
	r.cordon = ours(n)
	switch {
	case r.foreign && !n.Spec.Unschedulable:
		j.wrong(n.Name, "somebody else's cordon is gone")
		r.foreign = false
	case r.foreign && r.cordon != "":
		j.wrong(n.Name, "somebody else's cordon was taken over: %s", r.cordon)
	}
	if was == r.cordon {
		return
	}
	j.write(n.Name, fmt.Sprintf("cordon %q", r.cordon))
	if was != "" || r.cordon == "" {
		return
	}
	var all []string
	for name, r := range j.nodes {
		if r.cordon != "" {
			all = append(all, name)
		}
	}
	if len(all) > 1 {
		slices.Sort(all)
		j.wrong(n.Name, "nodes cordoned at the same time: %v", all)
	}
	mark := r.cordon
	j.looking.Go(func() { j.isLocked(ctx, n.Name, mark) })
}

// isLocked looks whether a node that we have cordoned holds the lock. The node
// is looked at last: an uncordon is followed by the release.
func (j *judge) isLocked(ctx context.Context, node, mark string) {
	holder, err := lockHolder(ctx, j.cluster)
	if err != nil {
		return
	}
	n, err := j.cluster.Client().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil || ours(n) != mark {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held++
	if holder != node {
		j.wrong(node, "cordoned while %s holds the lock", holder)
	}
}

// isEmpty looks whether COMPLETE is true, if it still stands then.
func (j *judge) isEmpty(ctx context.Context, node string, epoch uint64) {
	list, err := j.cluster.Client().CoreV1().Pods(devcluster.AppNamespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return
	}
	n, err := j.cluster.Client().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if r := j.nodes[node]; r.epoch != epoch || r.said.Status != types.DrainComplete {
		return
	}
	j.checked++
	var left []string
	for _, p := range list.Items {
		left = append(left, p.Name)
	}
	if len(left) > 0 {
		j.wrong(node, "COMPLETE with pods: %v", left)
	}
	if !n.Spec.Unschedulable {
		j.wrong(node, "COMPLETE, and not cordoned")
	}
}

// foreignCordon says whether someone else has cordoned the node, by now or
// until now.
func (j *judge) foreignCordon(node string, is bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.nodes[node].foreign = is
	j.write(node, fmt.Sprintf("foreign cordon: %v", is))
}

// cordoned says that a cordon of ours is there, "" if none is.
func (j *judge) cordoned(node string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if mark := j.nodes[node].cordon; mark != "" {
		return "cordoned: " + mark
	}
	return ""
}

// leftovers names what a drain leaves that nobody wants any more, "" for none.
func (j *judge) leftovers(ctx context.Context) string {
	list, err := j.cluster.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, n := range list.Items {
		if mark := n.Annotations[cordonMark]; mark != "" || n.Spec.Unschedulable {
			return fmt.Sprintf("%s is cordoned (%s)", n.Name, mark)
		}
	}
	switch holder, err := lockHolder(ctx, j.cluster); {
	case err != nil:
		return err.Error()
	case holder != nobody:
		return "the lock is held by " + holder
	}
	return ""
}

// disorder is what no log of an agent may hold.
var disorder = regexp.MustCompile(`(?m)^(WARNING: DATA RACE|panic: |fatal error: ).*$`)

// settled judges the end: the fleet is off, err is how the rampage ended.
func (j *judge) settled(ctx context.Context, fleet *player.Fleet, dir string, err error) {
	if err != nil {
		j.t.Error(err)
	}
	for _, m := range fleet.Members {
		for _, how := range m.Ended() {
			j.t.Errorf("%s: the agent ended by itself: %s", m.Name, how)
		}
		content, err := os.ReadFile(filepath.Join(m.Root, "zedkube.log"))
		if err != nil {
			j.t.Error(err)
		}
		if found := disorder.Find(content); found != nil {
			j.t.Errorf("%s: the agent's log says %s", m.Name, found)
		}
	}
	if left := j.leftovers(ctx); left != "" {
		j.t.Errorf("at the end %s", left)
	}
	if j.checked == 0 && !j.t.Failed() {
		j.t.Error("no COMPLETE could be looked at")
	}
	if !j.t.Failed() {
		return
	}
	if err := j.keepCalls(filepath.Join(dir, "calls")); err != nil {
		j.t.Error(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, m := range fleet.Members {
		j.t.Logf("%s, its log in %s:\n%s", m.Name, filepath.Join(dir, m.Name), strings.Join(j.nodes[m.Name].trace, "\n"))
	}
}

// keepCalls writes down what the agents asked of the API server.
func (j *judge) keepCalls(file string) error {
	calls, err := j.cluster.Calls()
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, c := range calls {
		if strings.HasPrefix(c.UserAgent, "zedkube") {
			fmt.Fprintf(&out, "%8.3f %s %s %s %s %s %d\n", c.At.Sub(j.began).Seconds(), c.From, c.Verb, c.Resource, c.Subresource, c.Name, c.Code)
		}
	}
	return os.WriteFile(file, []byte(out.String()), 0o600)
}

// settle waits until nothing is left of the drains.
func (j *judge) settle(ctx context.Context) error {
	for end := time.Now().Add(endless); ; {
		left := j.leftovers(ctx)
		switch {
		case left == "":
			return nil
		case time.Now().After(end):
			return fmt.Errorf("left after %s: %s", endless, left)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		wait(ctx, 100*time.Millisecond)
	}
}
