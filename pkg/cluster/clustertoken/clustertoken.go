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
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/cipher"
	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// DefaultManifest is where the kube container looks for the manifest
// (docs/wire.md, "Files"). The directory two above it is a mount of others:
// nobody makes it here.
const DefaultManifest = "/persist/vault/manifests/registration.yaml"

// period is how often the manifest's file is looked at: the kube container
// looks every 15 s.
const period = 10 * time.Second

// Device decrypts with the private key of this device. It ends when its
// context does, and its errors hold nothing secret.
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
	Manifest        string // DefaultManifest, below the root

	Token   pubsub.Writer[types.ClusterToken]
	Blocks  pubsub.Writer[types.CipherBlockStatus]
	Metrics pubsub.Writer[types.CipherMetrics]

	Operations types.OperationLog

	// What this process remembers. Losing it costs another decryption.
	began      time.Time      // of the first look
	answers    [parts]*answer // the last one to each part's question, nil before the first
	good       goodManifest   // the last one that this device had
	running    *keyRequest    // the decryption under way, nil for none
	decrypting loop.Call[result]
	file       keptfile.Keeper
}

// Run steps until ctx is done and returns after what runs beside the steps has
// ended, or when the disk does not let it end.
func (c *Component) Run(ctx context.Context) {
	defer c.closeFile()
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Membership, c.ControllerCerts, c.DeviceCerts, &c.decrypting, &c.file)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	f, err := c.look(ctx)
	return errors.Join(c.apply(ctx, decide(f)), err)
}

func (c *Component) look(ctx context.Context) (facts, error) {
	f := facts{now: time.Now()} // with the monotonic clock: a wall clock may be set back
	if c.began.IsZero() {
		c.began = f.now
	}
	// Before the tables: in between they may become whole.
	f.settled = c.ControllerCerts.Synced() && c.DeviceCerts.Synced() || f.now.Sub(c.began) >= patience
	f.membership, f.known = c.Membership.Get(types.Global)
	f.wants = questions(f.membership, cipher.Certificates{Controller: c.ControllerCerts.All(), Device: c.DeviceCerts.All()})
	err := c.collect(f.now, f.wants)
	c.collectFile(ctx, f.now)
	f.good = c.remember(f)
	f.answers = c.answers
	if c.running != nil {
		f.busy, f.asked, f.about = true, c.running.question, c.running.part
	}
	f.row, f.hasRow = c.Token.Get(types.Global)
	f.published = c.Blocks.All()
	f.file = c.file.State()
	return f, err
}

// apply publishes what is known before it asks for more.
func (c *Component) apply(ctx context.Context, a action) error {
	var errs []error
	switch {
	case a.withdraw:
		errs = append(errs, c.Token.Unpublish(types.Global))
	case a.token != nil:
		errs = append(errs, c.Token.Publish(types.Global, *a.token))
	}
	for key, block := range a.blocks {
		if err := c.Blocks.Publish(key, block); err != nil {
			errs = append(errs, fmt.Errorf("publish the status of a cipher block: %w", err))
		}
	}
	for _, key := range a.stale {
		if err := c.Blocks.Unpublish(key); err != nil {
			errs = append(errs, fmt.Errorf("withdraw the status of a cipher block: %w", err))
		}
	}
	if a.cancel {
		c.decrypting.Cancel()
		c.running.canceled = true
	}
	if a.ask != nil {
		c.begin(ctx, a.about, *a.ask)
	}
	if a.keep != nil {
		c.file.Begin(ctx, keptfile.File{Path: c.Manifest, Name: "the registration manifest", MakeDir: true}, *a.keep)
	}
	if a.idle {
		c.file.Forget()
	}
	if a.stuck {
		errs = append(errs, errors.New("keep the registration manifest: the disk does not answer"))
	}
	return errors.Join(append(errs, c.file.Err(), loop.After(a.again))...)
}

// closeFile waits for what runs beside the steps.
func (c *Component) closeFile() {
	c.decrypting.End()
	if !c.file.End() {
		c.Log.WithField("file", c.Manifest).Error("registration manifest: the disk does not answer, stopping without it")
	}
}

// collectFile logs what came of the work on the file that has ended, if some has.
func (c *Component) collectFile(ctx context.Context, now time.Time) {
	was, is, ok := c.file.Collect(now)
	if !ok {
		return
	}
	if op := is.Act(); op != "" {
		ctx = types.Because(ctx, "CONTROLLER", "the cluster configuration contains the registration")
		types.Did(ctx, c.Operations, op, "file/"+c.Manifest, is.Err)
	}
	log := c.Log.WithField("file", c.Manifest)
	switch {
	case is.Waits() && !was.Waits():
		log.Warn("registration manifest waits for the vault to be mounted")
	case is.Result == keptfile.Written:
		log.Info("registration manifest written")
	case is.Result == keptfile.Removed:
		log.Info("registration manifest removed")
	}
}
