package clusterstatus

import (
	"testing"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

func TestALeaveWithoutTheClusterIsStrongerThanItsConfiguration(t *testing.T) {
	cluster, elsewhere := uuid.New(), uuid.New()
	of := func(id uuid.UUID) types.EdgeNodeClusterConfig {
		c := config()
		c.ClusterID.UUID = id
		return c
	}
	kept := of(cluster)
	for name, row := range map[string]struct {
		state    types.Membership
		config   types.EdgeNodeClusterConfig
		withdraw bool
	}{
		"the configuration of that cluster": {types.MembershipLeft, of(cluster), true},
		"one that does not parse":           {types.MembershipLeft, types.EdgeNodeClusterConfig{Initialized: true}, true},
		"none that was heard":               {types.MembershipLeft, types.EdgeNodeClusterConfig{}, true},
		"that of another cluster":           {types.MembershipLeft, of(elsewhere), false},
		"while it can still be taken back":  {types.MembershipLeaving, of(cluster), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts{
				configKnown: true, hasConfig: true, config: row.config, hasStatus: true,
				membership: types.ClusterMembership{State: row.state, Without: &types.WithoutDecision{Cluster: cluster}},
			}
			if row.state == types.MembershipLeaving {
				f.membership.Config = &kept
			}
			if a := decide(f); a.withdraw != row.withdraw || (a.publish != nil) == row.withdraw {
				t.Errorf("it does %+v", a)
			}
		})
	}
}
