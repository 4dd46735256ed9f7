package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// conditionChanges is how many conditions of nodes are changed in each run.
const conditionChanges = 20

// conditions measures from a condition of a node to the report.
func (b *bench) conditions(ctx context.Context) error {
	leader := b.fleet.Reporter()
	if leader == nil {
		return fmt.Errorf("conditions: no node reports")
	}
	took, err := b.runs(func() ([]time.Duration, error) {
		var took []time.Duration
		for i := range conditionChanges {
			one, err := b.condition(ctx, leader, b.cluster.Nodes[1].Name, corev1.NodeMemoryPressure, i%2 == 0)
			if err != nil {
				return nil, err
			}
			took = append(took, one)
			// Not in step with the pauses between reports.
			if err := pause(ctx, time.Second+time.Duration(i)*37*time.Millisecond); err != nil {
				return nil, err
			}
		}
		return took, nil
	})
	if err != nil {
		return err
	}
	b.add("node condition → KubeClusterInfo file", "0.7 to 30 s", "≤ 1 s", "%s", percentiles(took))
	return nil
}

// condition sets a node's memory pressure or readiness and returns how long the
// report took to say so.
func (b *bench) condition(ctx context.Context, leader *player.Member, node string, kind corev1.NodeConditionType, set bool) (time.Duration, error) {
	status := corev1.ConditionFalse
	if set {
		status = corev1.ConditionTrue
	}
	now := time.Now().UTC()
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Bench","lastTransitionTime":%q,"lastHeartbeatTime":%[3]q}]}}`,
		kind, status, now.Format(time.RFC3339))
	if _, err := b.cluster.Client().CoreV1().Nodes().Patch(ctx, node, ktypes.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return 0, fmt.Errorf("change %s of node %s: %w", kind, node, err)
	}
	err := reported(ctx, leader, fmt.Sprintf("%s of %s, %t", kind, node, set), func(r types.KubeClusterInfo) bool {
		for _, n := range r.Nodes {
			if n.Name == node && kind == corev1.NodeReady {
				return (n.Status == types.KubeNodeReady) == set
			}
			for _, c := range n.Conditions {
				if n.Name == node && c.Type.String() == string(kind) {
					return c.Set == set
				}
			}
		}
		return false
	})
	return time.Since(now), err
}

// reported waits for the leader's file to say something.
func reported(ctx context.Context, leader *player.Member, what string, says func(types.KubeClusterInfo) bool) error {
	file := filepath.Join(leader.TopicDir("KubeClusterInfo"), types.Global+".json")
	var seen os.FileInfo
	return until(ctx, what, 2*time.Millisecond, func() bool {
		info, err := os.Stat(file)
		if err != nil || seen != nil && os.SameFile(info, seen) && info.ModTime().Equal(seen.ModTime()) {
			return false
		}
		seen = info
		content, err := os.ReadFile(file)
		var report types.KubeClusterInfo
		return err == nil && json.Unmarshal(content, &report) == nil && says(report)
	})
}
