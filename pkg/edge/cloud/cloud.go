// Package cloud keeps KubeEdge's cloud side as the settings say: cloudcore, what it needs, and the certificate of its
// stream (docs/edge.md).
//
//	reads:  the settings, its own objects, cloudcore's secrets, record and pods, nodes
//	writes: Namespace kubeedge, CRDs, the objects cloudcore, its own request for a certificate
//	acts:   removes cloudcoresecret where it lacks an address, cloudcore's pods from servers that are lost, and what has
//	        ended from the record tunnelport
package cloud

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/edge/object"
)

const (
	period = 5 * time.Minute // what changes rings a bell; this is for the time of a certificate
	// issuedWithin is how soon a certificate is looked for that was asked for, should no bell ring.
	issuedWithin = 5 * time.Second
)

// Kube is what the component needs of the cluster.
type Kube interface {
	loop.Input
	// Seen is all that is in sight; false until everything was listed.
	Seen() (map[object.Ref]object.Object, bool)
	Apply(ctx context.Context, r object.Ref, o object.Object, dry bool) (object.Object, error)
	Create(ctx context.Context, r object.Ref, o object.Object) error
	Update(ctx context.Context, r object.Ref, o object.Object) error
	Delete(ctx context.Context, r object.Ref, uid string) error
	Approve(ctx context.Context, r object.Ref) error
}

// Component is one term of the leader. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse
	Kube  Kube

	applied map[object.Ref]mark
	key     []byte
	crds    []object.Object
	said    string // the problems that were logged last
}

// Run steps until ctx is done.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Kube)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	f, whole, err := c.look()
	if err != nil || !whole {
		return errors.Join(err, loop.After(time.Second))
	}
	c.report(Judge(f.seen, f.now))
	a := decide(f)
	err = c.apply(ctx, a)
	if a.again > 0 {
		err = errors.Join(err, loop.After(a.again))
	}
	return err
}

func (c *Component) look() (f facts, whole bool, err error) {
	if c.crds == nil {
		if c.crds, err = Definitions(); err != nil {
			return f, false, err
		}
		c.applied = map[object.Ref]mark{}
	}
	seen, whole := c.Kube.Seen()
	return facts{now: time.Now(), seen: seen, applied: c.applied, key: c.key, crds: c.crds}, whole, nil
}

// report logs what people should know, when it changes.
func (c *Component) report(r Report) {
	if now := strings.Join(r.Problems, "; "); now != c.said {
		if c.said = now; now == "" {
			c.Log.Info("no problem any more")
		} else {
			c.Log.Warn(now)
		}
	}
}

// apply carries it out. What is removed goes first: cloudcore makes some of it again when it starts.
func (c *Component) apply(ctx context.Context, a action) error {
	errs := []error{a.why}
	for i, o := range a.remove {
		if err := c.Kube.Delete(ctx, o.Ref(a.kinds[i]), o.UID()); err != nil {
			return errors.Join(append(errs, err)...)
		}
		c.Log.Infof("removed %s", o.Ref(a.kinds[i]))
	}
	switch {
	case a.request:
		errs = append(errs, c.request(ctx, a.block), loop.After(issuedWithin))
	case a.approve:
		errs = append(errs, c.Kube.Approve(ctx, refRequest), loop.After(issuedWithin))
	case a.stream != nil:
		_, err := c.Kube.Apply(ctx, refStreamKey, a.stream, false)
		if err == nil {
			c.Log.Info("the stream has a new certificate")
		}
		errs = append(errs, err)
	}
	if a.record != nil {
		errs = append(errs, c.Kube.Create(ctx, RefNodes, a.record))
	}
	if a.update != nil {
		errs = append(errs, c.Kube.Update(ctx, refTunnels, a.update))
	}
	lacksFile := false
	for _, w := range a.apply {
		if lacksFile && w.ref == refDeployment {
			continue // cloudcore would restart with its former file, and not again for the new one
		}
		now, err := c.Kube.Apply(ctx, w.ref, w.is, false)
		if err != nil {
			errs = append(errs, err)
			lacksFile = lacksFile || w.ref == refConfig
			continue
		}
		if now.Version() != w.seen {
			c.Log.Infof("applied %s", w.ref)
		}
		c.applied[w.ref] = mark{w.is, now.Version()}
	}
	return errors.Join(errs...)
}

// request asks for a certificate with a new key, which this process keeps until it is issued.
func (c *Component) request(ctx context.Context, block string) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	csr, err := request(key, block)
	if err != nil {
		return err
	}
	if err := c.Kube.Create(ctx, refRequest, csr); err != nil {
		return err // also where the one of before is not in sight yet: its key is still known
	}
	c.key = key
	return nil
}
