package passthrough

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// chaos is three agents that share attachments while everything happens to them.
type chaos struct {
	*stage
	*rand.Rand
	held map[string]bool // node and port: the node has settled with it
	runs map[string]bool // the agent of a node does
}

var (
	everyNode = []string{"n1", "n2", "n3"}
	everyPort = []string{"eth1", "eth2"}
)

func (c *chaos) wants(node, port string) bool {
	for _, config := range c.agents[node].configs.All() {
		if slices.ContainsFunc(config.IoAdapterList, func(io types.IoAdapter) bool { return io.Name == port }) {
			return true
		}
	}
	return false
}

func (c *chaos) noted(node, port string) bool {
	nad, _ := c.cluster.NAD(port)
	row, there := c.nodes.Get(node)
	return there && nad.Owners[node] == row.UID
}

// look fails when a node that had its port has lost it, though it still needs it.
func (c *chaos) look(what string) {
	for _, n := range everyNode {
		for _, p := range everyPort {
			key := n + " " + p
			switch has := c.noted(n, p); {
			case !c.wants(n, p):
				c.held[key] = false
			case has:
				c.held[key] = true
			case c.held[key]:
				c.Fatalf("after %s: node %s has lost %s, which is noted for %q", what, n, p, c.needed(p))
			}
		}
	}
}

// strike lets one thing happen.
func (c *chaos) strike() string {
	n := everyNode[c.IntN(3)]
	a := c.agents[n]
	switch kind := c.IntN(12); kind {
	case 0, 1, 2, 3:
		app := fmt.Sprint("app-", c.IntN(2))
		ports := [][]string{nil, {"eth1"}, {"eth2"}, {"eth1", "eth2"}}[c.IntN(4)]
		a.app(app, ports...)
		return fmt.Sprint(app, " of ", n, " has ", ports)
	case 4, 5:
		if c.runs[n] = !c.runs[n]; c.runs[n] {
			c.start(n)
			return "start of " + n
		}
		a.stop()
		return "death of " + n
	case 6:
		for _, p := range everyPort {
			c.held[n+" "+p] = false
		}
		if _, there := c.nodes.Get(n); there {
			_ = c.nodes.Unpublish(n)
			return "deletion of Node " + n
		}
		_ = c.nodes.Publish(n, node(n, func(row *types.Node) { row.UID = fmt.Sprint("uid-", c.Uint64()) }))
		return "return of Node " + n
	case 7:
		fault := kubetest.Fault(c.IntN(3))
		c.cluster.SetFault(fault)
		return fmt.Sprint("fault ", fault)
	case 8:
		c.cluster.SetLatency(time.Duration(c.IntN(2000)) * time.Millisecond)
		return "a change of latency"
	case 9, 10:
		verb := []string{"ensurenad", "releasenad"}[kind-9]
		c.cluster.LoseAnswer(verb)
		return "a lost answer to " + verb
	default:
		c.cluster.SetFault(kubetest.None)
		return "the end of all faults"
	}
}

// calm ends all trouble and returns when everybody has had time to settle.
func (c *chaos) calm() {
	c.cluster.SetFault(kubetest.None)
	c.cluster.SetLatency(0)
	for _, n := range everyNode {
		if _, there := c.nodes.Get(n); !there {
			_ = c.nodes.Publish(n, node(n, func(row *types.Node) { row.UID = fmt.Sprint("uid-", c.Uint64()) }))
		}
		if !c.runs[n] {
			c.runs[n] = true
			c.start(n)
		}
	}
	c.after(2 * refresh)
}

func TestNodesThatShareAttachmentsNeverTakeOneFromAnother(t *testing.T) {
	for seed := range seeds.Each(t, 60) {
		play(t, func(s *stage) {
			c := &chaos{stage: s, Rand: rand.New(rand.NewPCG(seed, 7)), held: map[string]bool{}, runs: map[string]bool{}}
			for _, n := range everyNode {
				c.start(n)
				c.runs[n] = true
			}
			for range 60 {
				what := c.strike()
				for range c.IntN(30) {
					c.look(what)
					c.after(time.Duration(c.IntN(400)) * time.Millisecond)
				}
			}
			c.calm()
			for _, n := range everyNode {
				for _, p := range everyPort {
					if c.wants(n, p) != c.noted(n, p) {
						t.Fatalf("seed %d: %s wants %s: %v; it is noted for %q", seed, n, p, c.wants(n, p), c.needed(p))
					}
				}
				c.agents[n].app("app-0")
				c.agents[n].app("app-1")
			}
			c.calm()
			c.want("eth1", "-")
			c.want("eth2", "-")
		})
	}
}
