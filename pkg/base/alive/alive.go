// Package alive tells nodes whose kubelet renews its Lease from those that are only
// still called Ready.
package alive

import (
	"context"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// provenWithin is how long a kubelet has to show itself alive: a Ready
	// condition may be 40 s old, and a kubelet renews its Lease every 10 s.
	provenWithin = 20 * time.Second
	lookEvery    = 3 * time.Second
)

// Nodes returns the nodes as they are once every Ready one has been seen to renew its
// Lease since before, or provenWithin is over: what has not renewed it by then is not
// Ready. Nobody's clock is believed.
func Nodes(ctx context.Context, list func(context.Context) ([]types.Node, error), before []types.Node) ([]types.Node, error) {
	first := map[string]time.Time{}
	for _, n := range before {
		first[n.Name] = n.RenewedAt
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ends := time.Now().Add(provenWithin); ; {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
		nodes, err := list(ctx)
		if err != nil {
			return nil, err
		}
		all := true
		for i, n := range nodes {
			if n.Ready == types.ConditionTrue && n.RenewedAt.Equal(first[n.Name]) {
				nodes[i].Ready, all = types.ConditionUnknown, false
			}
		}
		if all || time.Now().After(ends) {
			return nodes, nil
		}
	}
}
