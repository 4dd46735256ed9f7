package kubetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zedkube/zedkube/types"
)

// NAD is an attachment as the cluster holds it, whoever made it.
type NAD struct {
	Ours   bool              // it carries zedkube's label
	Other  bool              // it does not say what zedkube writes
	Owners map[string]string // UIDs by node name; nil where it does not say
}

// SetNAD puts an attachment of the port there, nil removes it.
func (c *Cluster) SetNAD(ifname string, nad *NAD) {
	c.world.Lock()
	defer c.world.Unlock()
	if c.held.nads == nil {
		c.held.nads = map[string]NAD{}
	}
	delete(c.held.nads, ifname)
	if nad != nil {
		c.held.nads[ifname] = *nad
	}
}

// NAD returns the attachment of the port.
func (c *Cluster) NAD(ifname string) (NAD, bool) {
	c.world.Lock()
	defer c.world.Unlock()
	nad, ok := c.held.nads[ifname]
	nad.Owners = maps.Clone(nad.Owners)
	return nad, ok
}

// NADs lists those with zedkube's label by interface. Verb nads.
func (c *Cluster) NADs(ctx context.Context) ([]types.NAD, error) {
	if err := c.enter(ctx, "nads", ""); err != nil {
		return nil, err
	}
	c.world.Lock()
	defer c.world.Unlock()
	var out []types.NAD
	for _, ifname := range slices.Sorted(maps.Keys(c.held.nads)) {
		if nad := c.held.nads[ifname]; nad.Ours {
			out = append(out, types.NAD{Interface: ifname, Owners: maps.Clone(nad.Owners), Unowned: nad.Owners == nil, Altered: nad.Other})
		}
	}
	return out, nil
}

// EnsureNAD makes the attachment or puts it right, and adds the owner. One that
// is not zedkube's and says something else is left alone. Verb ensurenad.
func (c *Cluster) EnsureNAD(ctx context.Context, ifname string, owner types.Node) error {
	return c.write(ctx, "ensurenad", ifname, func() error {
		nad := c.held.nads[ifname]
		if !nad.Ours && nad.Other {
			return fmt.Errorf("ensure network attachment of %s: %w", ifname, errors.New("not zedkube's"))
		}
		nad = NAD{Ours: true, Owners: maps.Clone(nad.Owners)}
		if nad.Owners == nil {
			nad.Owners = map[string]string{}
		}
		nad.Owners[owner.Name] = owner.UID
		if c.held.nads == nil {
			c.held.nads = map[string]NAD{}
		}
		c.held.nads[ifname] = nad
		return nil
	})
}

// ReleaseNAD takes the owners off the attachment, and removes it when none is
// left and it is not to be kept. Verb releasenad.
func (c *Cluster) ReleaseNAD(ctx context.Context, ifname string, owners map[string]string, keep bool) error {
	return c.write(ctx, "releasenad", ifname, func() error {
		nad, ok := c.held.nads[ifname]
		if !ok || !nad.Ours || nad.Owners == nil {
			return nil
		}
		nad.Owners = maps.Clone(nad.Owners)
		maps.DeleteFunc(nad.Owners, func(node, uid string) bool {
			which, goes := owners[node]
			return goes && (which == "" || which == uid)
		})
		c.held.nads[ifname] = nad
		if len(nad.Owners) == 0 && !keep {
			delete(c.held.nads, ifname)
		}
		return nil
	})
}
