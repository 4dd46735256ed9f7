package nodes

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// FreshNodes returns all Nodes but those of KubeEdge as the cluster has them now, each with the time
// at which its kubelet last renewed its Lease, by the clock of that kubelet's
// node; zero where there is no Lease. It is everything or an error: a list that
// may lack a Node, or the Leases, is never returned.
func (c *Client) FreshNodes(ctx context.Context) ([]types.Node, error) {
	return access.Read(ctx, c.Session, "list nodes", func(ctx context.Context, conn *access.Connection) ([]types.Node, error) {
		nodes, err := access.Whole(conn.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{}))
		if err != nil {
			return nil, err
		}
		renewed, err := renewals(ctx, conn)
		if err != nil {
			return nil, fmt.Errorf("list their leases: %w", err)
		}
		rows, err := Joined(nodes.Items, renewed)
		for i := range rows {
			rows[i] = c.Stamps.Listed(rows[i])
		}
		return rows, err
	})
}

// NodeLeases returns when the kubelets of all nodes last renewed their Leases, by
// name, each by the clock of its node. It is everything or an error.
func (c *Client) NodeLeases(ctx context.Context) (map[string]time.Time, error) {
	return access.Read(ctx, c.Session, "list the leases of nodes", renewals)
}

// renewals lists when each Lease was last renewed.
func renewals(ctx context.Context, c *access.Connection) (map[string]time.Time, error) {
	list, err := access.Whole(c.Kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{}))
	if err != nil {
		return nil, err
	}
	renewed := map[string]time.Time{}
	for _, l := range list.Items {
		if l.Namespace == corev1.NamespaceNodeLease && l.Spec.RenewTime != nil {
			renewed[l.Name] = l.Spec.RenewTime.Time
		}
	}
	return renewed, nil
}

// NodeLease returns when the kubelet of a node last renewed its Lease, by the clock
// of its node; zero where there is no Lease. It goes with its Node, and a kubelet
// makes none while that is missing.
func (c *Client) NodeLease(ctx context.Context, node string) (time.Time, error) {
	act := "get the lease of node " + node
	return access.Read(ctx, c.Session, act, func(ctx context.Context, conn *access.Connection) (renewed time.Time, err error) {
		l, err := conn.Kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
		switch {
		case err != nil:
			return renewed, access.UnlessGone(err)
		case l.Name != node:
			return renewed, access.ErrOther
		case l.Spec.RenewTime != nil:
			renewed = l.Spec.RenewTime.Time
		}
		return renewed, nil
	})
}

// Joined returns the rows of Nodes with the times at which their Leases were renewed.
func Joined(nodes []corev1.Node, renewed map[string]time.Time) ([]types.Node, error) {
	var rows []types.Node
	for _, n := range nodes {
		if n.Name == "" {
			return nil, access.ErrNoName
		}
		if access.IsEdge(&n) {
			continue
		}
		row := NodeOf(&n)
		row.ResourceVersion, row.RenewedAt = n.ResourceVersion, renewed[n.Name]
		rows = append(rows, row)
	}
	return rows, nil
}

// Client has the verbs on Nodes.
type Client struct {
	*access.Session

	Stamps Stamps // of the nodes' agents, as long as the process lives
}

// clockShots is of how many readings of a node's clock the best one counts. A
// reading that comes late makes the clock look slow, never fast.
const clockShots = 2

// Clocks reads other nodes' clocks off what they write anyway: a kubelet dates
// its heartbeat in the Ready condition, at the latest every five minutes, and the
// watch brings it at once. What a list brings may be as old as it likes.
type Clocks struct {
	log   logrus.FieldLogger
	table access.Writer[types.NodeClock]

	mu     sync.Mutex
	began  time.Time     // of monotonic clock and wall clock
	offset time.Duration // how far the wall clock has been set since
	nodes  map[string]nodeClock
}

type nodeClock struct {
	beat  time.Time       // the last heartbeat, by the node's clock
	ahead []time.Duration // at the last heartbeats
}

// NewClocks returns what keeps a table of the nodes' clocks.
func NewClocks(log logrus.FieldLogger, table access.Writer[types.NodeClock]) *Clocks {
	return &Clocks{log: log, table: table, began: time.Now(), nodes: map[string]nodeClock{}}
}

// Sees is called with each Node that a watch brings.
func (c *Clocks) Sees(n *corev1.Node) {
	beat := heartbeat(n)
	if beat.IsZero() || n.Name == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.settle(now)
	last, known := c.nodes[n.Name]
	if last.beat.Equal(beat) {
		return
	}
	last.beat = beat
	if known { // else it may have been written long ago
		ahead := beat.Add(time.Second / 2).Sub(now.Round(0))
		last.ahead = append(last.ahead, ahead)
		last.ahead = last.ahead[max(len(last.ahead)-clockShots, 0):]
		c.tell(n.Name, last.ahead)
	}
	c.nodes[n.Name] = last
}

// settle forgets all when the own wall clock has been set.
func (c *Clocks) settle(now time.Time) {
	offset := now.Round(0).Sub(c.began.Round(0)) - now.Sub(c.began)
	if (offset - c.offset).Abs() < access.ClockStep/5 {
		return
	}
	c.offset, c.nodes = offset, map[string]nodeClock{}
	if err := access.Retain(c.table, nil); err != nil {
		c.log.WithError(err).Error("forget clocks of nodes")
	}
}

func (c *Clocks) tell(node string, ahead []time.Duration) {
	best := slices.Max(ahead).Round(time.Second)
	if was, ok := c.table.Get(node); ok && (best-was.Ahead).Abs() < access.ClockStep {
		return
	}
	if err := c.table.Publish(node, types.NodeClock{Node: node, Ahead: best}); err != nil {
		c.log.WithError(err).WithField("node", node).Error("publish clock of node")
	}
}

// forget is called with the name of a Node that is gone.
func (c *Clocks) forget(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nodes, node)
	if err := c.table.Unpublish(node); err != nil {
		c.log.WithError(err).WithField("node", node).Error("forget clock of node")
	}
}

// heartbeat is when the node's kubelet last wrote its status, zero for unknown.
// The node controller dates its own verdict, Unknown, by another clock.
func heartbeat(n *corev1.Node) time.Time {
	if c := access.ConditionOf(n, corev1.NodeReady); c != nil && c.Status != corev1.ConditionUnknown {
		return c.LastHeartbeatTime.Time
	}
	return time.Time{}
}
