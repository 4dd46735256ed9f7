package overview

import "github.com/zedkube/zedkube/types"

// Judge marks in rows, which someone else has listed, which stamps are stale and
// which are confirmed, as the source of n knows that. Who lists but once cannot. Of
// a stamp that the source has not seen nothing is known.
func (n Nodes) Judge(rows []types.Node) {
	seen := map[string]ClusterNode{}
	for _, c := range n.List {
		seen[c.Name] = c
	}
	for i := range rows {
		r := &rows[i]
		c, known := seen[r.Name]
		known = known && c.Agent != "" && c.AgentAt.Equal(r.StampedAt)
		r.StampStale = r.Agent != nil && known && c.AgentStale
		r.StampUnconfirmed = r.Agent != nil && (!known || c.AgentUnsure)
	}
}
