//go:build linux

package devcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// etcdVoter is the condition k3s keeps on the Node of a server.
const etcdVoter corev1.NodeConditionType = "EtcdIsVoter"

// keepMembers does what k3s does with Nodes and etcd members, until unkeep: a
// member whose Node somebody deleted leaves etcd, and the Node of a member says
// that it votes.
func (c *Cluster) keepMembers() {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		said := ""
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			err := c.lookAfterMembers(ctx)
			if err != nil && err.Error() != said && ctx.Err() == nil {
				said = err.Error()
				fmt.Fprintln(c.log, "devcluster:", err)
			}
		}
	})
	c.unkeep = func() { stop(); running.Wait() }
}

// lookAfterMembers does it once; what fails is tried again at the next look.
func (c *Cluster) lookAfterMembers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil // no quorum, or no API server: who is not there cannot be told
	}
	nodes := map[string]*corev1.Node{}
	for i := range list.Items {
		nodes[list.Items[i].Name] = &list.Items[i]
	}
	var errs []error
	for _, h := range c.hosts {
		h.mu.Lock()
		node := nodes[h.seat.name]
		h.known = h.known || node != nil
		votes, gone := h.member && !h.removed, h.known && node == nil
		h.mu.Unlock()
		switch {
		case votes && gone:
			errs = append(errs, c.expel(ctx, h))
		case votes && node != nil && !saysVoter(node):
			errs = append(errs, c.sayVoter(ctx, node.Name))
		}
	}
	return errors.Join(errs...)
}

// expel takes the host's member out of etcd. Its etcd learns of it, if it can be
// reached, and ends.
func (c *Cluster) expel(ctx context.Context, h *host) error {
	members, err := c.members(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if !m.is(h) {
			continue
		}
		if err := c.askEtcd(ctx, "member/remove", map[string]any{"ID": m.ID}, nil); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.log, "devcluster: node %s is deleted, so its member leaves etcd\n", h.seat.name)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removed = true
	return nil
}

func saysVoter(node *corev1.Node) bool {
	for _, cond := range node.Status.Conditions {
		if cond.Type == etcdVoter {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (c *Cluster) sayVoter(ctx context.Context, name string) error {
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: etcdVoter, Status: corev1.ConditionTrue, Reason: "MemberNotLearner",
		Message: "Node is a voting member of the etcd cluster", LastTransitionTime: now, LastHeartbeatTime: now,
	}}}})
	if err != nil {
		return fmt.Errorf("encode a node condition: %w", err)
	}
	_, err = c.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("say that %s votes in etcd: %w", name, err)
	}
	return nil
}

// Members are the indexes of the hosts that vote in etcd, as a quorum has it; on
// loopback there are none.
func (c *Cluster) Members(ctx context.Context) ([]int, error) {
	if c.hosts == nil {
		return nil, nil
	}
	members, err := c.members(ctx)
	if err != nil {
		return nil, err
	}
	var voting []int
	for i, h := range c.hosts {
		for _, m := range members {
			if m.is(h) && !m.IsLearner {
				voting = append(voting, i)
			}
		}
	}
	return voting, nil
}
