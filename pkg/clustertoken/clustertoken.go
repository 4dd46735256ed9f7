// Package clustertoken decrypts the secrets of the cluster configuration: the
// token with which nodes join, and the manifest that registers the cluster
// (docs/wire.md, "Token decryption").
//
//	reads:  ClusterMembership, ControllerCert, EdgeNodeCert, the device's key
//	writes: CipherBlockStatus, CipherMetrics, the table of the token
//	acts:   keeps registration.yaml
package clustertoken

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/cipher"
	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is how soon a manifest that somebody removed is back.
const period = 30 * time.Second

// Device decrypts with the device's key. It ends when its context does.
type Device interface {
	Decrypt(ctx context.Context, block types.CipherBlockStatus, certs cipher.Certificates) (cipher.Secret, error)
}

// Component is the token and the manifest. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Membership      pubsub.Reader[types.ClusterMembership]
	ControllerCerts pubsub.Source[types.ControllerCert]
	DeviceCerts     pubsub.Source[types.EdgeNodeCert]
	Device          Device

	Manifest string // path of registration.yaml, two directories below what must exist

	Token   pubsub.Writer[types.ClusterToken]
	Blocks  pubsub.Writer[types.CipherBlockStatus]
	Metrics pubsub.Writer[types.CipherMetrics]
}

// DefaultManifest is where the kube container looks for the manifest.
const DefaultManifest = "/persist/vault/manifests/registration.yaml"

// Run steps until ctx is done.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Membership, c.ControllerCerts, c.DeviceCerts)
}

// Step looks, decides and acts once.
func (c *Component) Step(context.Context) error { return nil }
