package player

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/evecommon"

	"github.com/zedkube/zedkube/types"
)

// controller is what a fleet's controller keeps secret.
type controller struct {
	pair     keyPair
	token    string
	manifest string
}

// registration is what the cluster is registered with; zedkube unpacks it.
const registration = `apiVersion: v1
kind: Namespace
metadata:
  name: fleet-registration
`

func newController() (controller, error) {
	pair, err := newKeyPair("controller")
	if err != nil {
		return controller{}, err
	}
	token, err := newToken()
	return controller{pair: pair, token: token, manifest: registration}, err
}

// sealFor encrypts the secrets for one device.
func (c controller) sealFor(device keyPair) (types.CipherBlockStatus, error) {
	manifest, err := packed(c.manifest)
	if err != nil {
		return types.CipherBlockStatus{}, err
	}
	return seal(c.pair, device, &evecommon.EncryptionBlock{ClusterToken: c.token, GzipRegistrationManifestYaml: manifest})
}

// Token is the token of the fleet's cluster, in clear text.
func (f *Fleet) Token() string { return f.controller.token }

// Manifest is the fleet's registration manifest, in clear text.
func (f *Fleet) Manifest() string { return f.controller.manifest }

// ChangeToken gives the cluster another token and sends it to every member.
func (f *Fleet) ChangeToken() error {
	token, err := newToken()
	if err != nil {
		return err
	}
	f.controller.token = token
	return f.sendSecrets()
}

// ChangeManifest gives the cluster another registration manifest and sends it to
// every member.
func (f *Fleet) ChangeManifest(manifest string) error {
	f.controller.manifest = manifest
	return f.sendSecrets()
}

// RotateControllerCert gives the controller another certificate in place of the
// one it had, and sends every member the same secrets, encrypted anew. Withheld
// certificates stay withheld.
func (f *Fleet) RotateControllerCert() error {
	pair, err := newKeyPair("controller")
	if err != nil {
		return err
	}
	f.controller.pair = pair
	var errs []error
	for _, m := range f.Members {
		errs = append(errs, m.certify(pair.controllerCert()))
	}
	return errors.Join(append(errs, f.sendSecrets())...)
}

func (f *Fleet) sendSecrets() error {
	var errs []error
	for _, m := range f.Members {
		errs = append(errs, f.SendSecrets(m, f.controller.token))
	}
	return errors.Join(errs...)
}

// SendSecrets sends one member the manifest and a token, which need not be the
// cluster's.
func (f *Fleet) SendSecrets(m *Member, token string) error {
	c := f.controller
	c.token = token
	block, err := c.sealFor(m.pair)
	if err != nil {
		return fmt.Errorf("encrypt the secrets of %s: %w", m.Name, err)
	}
	return m.ChangeCluster(func(c *types.EdgeNodeClusterConfig) { c.CipherToken = block })
}

// ChangeCluster changes the cluster section of what the controller sends to
// every member.
func (f *Fleet) ChangeCluster(change func(*types.EdgeNodeClusterConfig)) error {
	var errs []error
	for _, m := range f.Members {
		errs = append(errs, m.ChangeCluster(change))
	}
	return errors.Join(errs...)
}

// IDs are the UUIDs of the members: the masters, as long as nobody says
// otherwise.
func (f *Fleet) IDs() []uuid.UUID {
	var ids []uuid.UUID
	for _, n := range f.Cluster.Nodes {
		ids = append(ids, uuid.MustParse(n.UUID))
	}
	return ids
}
