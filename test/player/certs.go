package player

import (
	"errors"

	"github.com/zedkube/zedkube/types"
)

// Cert is one of the two certificates that a token is decrypted with.
type Cert int

// The certificates: the controller's, from zedagent, and the device's, from
// tpmmgr.
const (
	OfController Cert = iota
	OfDevice
)

// keyFile is where a device without a TPM keeps its private key (docs/wire.md,
// "Token decryption").
const keyFile = "/persist/certs/ecdh.key.pem"

// introduce gives the device its own key, and the controller's certificate.
func (d *Device) introduce(controller types.ControllerCert) error {
	var err error
	if d.pair, err = newKeyPair(d.Info.DeviceID.String()); err != nil {
		return err
	}
	d.controllerCert = controller
	key, err := d.pair.keyPEM()
	if err != nil {
		return err
	}
	return d.writeFile(keyFile, key)
}

// certify gives the device another certificate of the controller in place of
// the one it had.
func (d *Device) certify(controller types.ControllerCert) error {
	d.sending.Lock()
	defer d.sending.Unlock()
	old := d.controllerCert
	d.controllerCert = controller
	if d.controllerCerts == nil || d.withheld[OfController] {
		return nil
	}
	return errors.Join(d.publishCerts(), d.controllerCerts.Unpublish(old.Key()))
}

// Withhold keeps a certificate from zedkube, over reboots too.
func (d *Device) Withhold(c Cert) error { return d.hold(c, true) }

// Deliver publishes a certificate that was withheld.
func (d *Device) Deliver(c Cert) error { return d.hold(c, false) }

func (d *Device) hold(c Cert, withheld bool) error {
	d.sending.Lock()
	defer d.sending.Unlock()
	d.withheld[c] = withheld
	if d.controllerCerts == nil {
		return nil // the device is off
	}
	return d.publishCerts()
}

// publishCerts publishes the certificates that are not withheld and unpublishes
// the others. Sending is held.
func (d *Device) publishCerts() error {
	if d.pair.key == nil {
		return nil // nobody has introduced it
	}
	var errs []error
	if cert := d.controllerCert; d.withheld[OfController] {
		errs = append(errs, d.controllerCerts.Unpublish(cert.Key()))
	} else {
		errs = append(errs, d.controllerCerts.Publish(cert.Key(), cert))
	}
	if cert := d.pair.deviceCert(); d.withheld[OfDevice] {
		errs = append(errs, d.deviceCerts.Unpublish(cert.Key()))
	} else {
		errs = append(errs, d.deviceCerts.Publish(cert.Key(), cert))
	}
	return errors.Join(errs...)
}
