//go:build linux

package kubeapi_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/loop"
	standing "github.com/zedkube/zedkube/pkg/report/conditions"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// knowsWhoCordoned is what an operator asks of the node's conditions.
func knowsWhoCordoned(t *testing.T, c *devcluster.Cluster) {
	a := newAgent(t, c, 2)
	own := c.Nodes[2]
	eventually(t, "the server's certificate and version are known", 5*time.Second, func() bool {
		creds, _ := a.creds.Get(types.Global)
		return creds.Server.NotAfter.After(time.Now()) && creds.CA.Known() && strings.HasPrefix(creds.Version, "v1.") && creds.ClockKnown
	})
	var out pubsub.Table[types.KubeNodeConditions]
	began := time.Now()
	component := &standing.Component{
		Log: a.Log, Pulse: &loop.Pulse{},
		Credentials: &a.creds, Clocks: &a.clocks, Nodes: &a.nodes, NodePods: &a.own, API: &a.api, Tables: &a.tables, Info: &a.info,
		Membership: &pubsub.Table[types.ClusterMembership]{}, K3s: &pubsub.Table[types.K3sVersionStatus]{}, K3sCerts: &pubsub.Table[types.K3sCertificates]{},
		Leader: &a.leader, Health: &pubsub.Table[types.KubeReportHealth]{},
		Uptime:     func() time.Duration { return time.Since(began) },
		Conditions: &out, Node: &pubsub.Table[types.ClusterNodeStatus]{},
	}
	says := func(of types.NodeStateType) types.NodeStateCondition {
		_ = component.Step(t.Context()) // its error is the wish to be called again
		all, _ := out.Get(types.Global)
		said, _ := all.Of(of)
		return said
	}
	for _, of := range []types.NodeStateType{types.StateServerCertificate, types.StateCACertificate, types.StateCordon, types.StateClock} {
		if s := says(of); s.Status != types.ConditionTrue {
			t.Errorf("%+v", s)
		}
	}
	if _, err := c.Kubectl(t.Context(), "cordon", own.Name); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its conditions say who cordoned it", 5*time.Second, func() bool {
		s := says(types.StateCordon)
		return s.Status == types.ConditionFalse && strings.Contains(s.Message, "field manager kubectl at "+time.Now().UTC().Format("2006-"))
	})
	t.Log(says(types.StateCordon).Message)
	if _, err := c.Kubectl(t.Context(), "uncordon", own.Name); err != nil {
		t.Fatal(err)
	}
	eventually(t, "and that it is cordoned no more", 5*time.Second, func() bool { return says(types.StateCordon).Status == types.ConditionTrue })
	row, _ := a.nodes.Get(own.Name)
	if slices.ContainsFunc(row.Writers, func(w types.FieldWriter) bool { return w.Field == types.FieldCordon }) || len(row.Writers) == 0 {
		t.Errorf("%+v", row.Writers)
	}
}
