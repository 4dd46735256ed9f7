package outlook

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestWhichVolumesLoseTheirDataWithANode(t *testing.T) {
	whole := time.Unix(1, 0)
	at := func(node string) types.Replica { return types.Replica{Name: node, Node: node, HealthyAt: whole} }
	failed := func(node string) types.Replica { r := at(node); r.FailedAt = whole; return r }
	nodes := []types.Node{
		{Name: "a", Ready: types.ConditionUnknown}, {Name: "b", Ready: types.ConditionTrue}, {Name: "c", Ready: types.ConditionUnknown},
	}
	for rule, c := range map[string]struct {
		volume types.Volume
		policy string
		last   bool
	}{
		"its only replica is there":               {types.Volume{Replicas: []types.Replica{at("a")}}, "", true},
		"whatever Longhorn allows for a reboot":   {types.Volume{Replicas: []types.Replica{at("a")}}, types.DrainPolicyAlwaysAllow, true},
		"the other one is whole and Ready":        {types.Volume{Replicas: []types.Replica{at("a"), at("b")}}, "", false},
		"the other one has failed":                {types.Volume{Replicas: []types.Replica{at("a"), failed("b")}}, "", true},
		"the other one is being deleted":          {types.Volume{Replicas: []types.Replica{at("a"), deleting(at("b"))}}, "", true},
		"the other one is on a node that is gone": {types.Volume{Replicas: []types.Replica{at("a"), at("c")}}, "", true},
		"nothing is known to be whole":            {types.Volume{Robustness: "unknown", State: "attached", Replicas: []types.Replica{at("a"), at("b")}}, "", true},
		"it has none there":                       {types.Volume{Replicas: []types.Replica{at("c")}}, "", false},
		"it has never held anything":              {types.Volume{Replicas: []types.Replica{{Name: "a", Node: "a"}}}, "", false},
	} {
		if c.volume.State == "" {
			c.volume.State = detached
		}
		c.volume.Name = "v"
		s := types.Storage{Longhorn: true, Policy: c.policy, Volumes: []types.Volume{c.volume}}
		if last := LostByLeave(s, "a", ReadyNodes(nodes)); (len(last) == 1) != c.last {
			t.Errorf("%s: %v", rule, last)
		}
	}
	if last := LostByLeave(types.Storage{Volumes: []types.Volume{{Name: "v", Replicas: []types.Replica{at("a")}, State: detached}}}, "a", ReadyNodes(nodes)); last != nil {
		t.Errorf("without Longhorn: %v", last)
	}
}
