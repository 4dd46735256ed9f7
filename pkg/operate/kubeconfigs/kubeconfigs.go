// Package kubeconfigs issues kubeconfigs to people at the device, which expire and can be
// revoked, and removes from the cluster what is left of those that have expired
// (docs/wire.md, "Issued kubeconfigs"). What a crash left behind is no different: nobody has
// its token, and it is removed when that would have expired.
//
//	reads:  the issued kubeconfigs, EdgeNodeInfo, EdgeNodeClusterStatus, nodes, the API's health
//	writes: nothing
//	acts:   makes and deletes ServiceAccounts and ClusterRoleBindings
package kubeconfigs

import (
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is only a safety net: a step asks for the next one.
const period = 10 * time.Minute

// Kube is what is done to the cluster.
type Kube interface {
	IssueKubeconfig(ctx context.Context, k types.IssuedKubeconfig, lasts time.Duration, host string) (types.IssuedKubeconfig, []byte, error)
	RevokeKubeconfig(ctx context.Context, k types.IssuedKubeconfig) error
	Kubeconfigs(ctx context.Context) ([]types.IssuedKubeconfig, error)
}

// Component removes what has expired. Every field is required.
type Component struct {
	Log    logrus.FieldLogger
	Pulse  *loop.Pulse
	Issued pubsub.Reader[types.IssuedKubeconfig]
	Info   pubsub.Reader[types.EdgeNodeInfo]
	Nodes  pubsub.Reader[types.Node]
	API    pubsub.Reader[types.APIStatus]
	Kube   Kube
}

// Run steps until ctx is done.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Issued, c.API)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	if api, _ := c.API.Get(types.Global); !api.Answers() {
		return nil // its answer rings
	}
	info, _ := c.Info.Get(types.Global)
	own, _ := types.OwnNode(c.Nodes.All(), info)
	return c.apply(ctx, decide(facts{now: time.Now(), own: own.Name, issued: c.Issued.All()}))
}

func (c *Component) apply(ctx context.Context, a action) error {
	errs := []error{loop.Again(a.again)}
	for _, k := range a.revoke {
		errs = append(errs, c.Kube.RevokeKubeconfig(types.Because(ctx, "", "it has expired"), k))
	}
	return errors.Join(errs...)
}
