package kubeapi

import (
	"context"
	"fmt"

	"github.com/zedkube/zedkube/types"
)

// Repair carries out do while this node, under the name identity, has the right
// to repair: docs/wire.md, "Lease". It returns an error that wraps
// types.ErrHeld at once when another node has it, and what do returns
// otherwise. The context of do ends before another node can have the right.
func (c *Client) Repair(_ context.Context, identity string, _ func(ctx context.Context) error) error {
	return fmt.Errorf("repair as %s: %w", identity, types.ErrNoAPI)
}
