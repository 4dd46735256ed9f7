package cipher

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport"
	"github.com/google/go-tpm/tpm2/transport/linuxtpm"
	"github.com/google/go-tpm/tpm2/transport/linuxudstpm"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// Where EVE keeps the device's key for the exchange with the controller.
const (
	DefaultKeyFile = "/persist/certs/ecdh.key.pem"
	DefaultTPM     = "/dev/tpmrm0"
)

const maxKey = 64 << 10

// Device is where this device has its private key.
type Device struct {
	keyFile string
	tpm     string
	turn    chan struct{}
}

// NewDevice returns the device with its key in the PEM file keyFile or, where
// its certificate says so, in the TPM behind tpm: a device or a unix socket.
func NewDevice(keyFile, tpm string) *Device {
	return &Device{keyFile: keyFile, tpm: tpm, turn: make(chan struct{}, 1)}
}

// point is X and Y of a point on P-256, each padded to 32 bytes.
type point [64]byte

// agree returns the point that this device shares with the controller. A disk
// or a TPM that hangs ends for no context, so it is asked beside, by one at a
// time: what hangs costs one goroutine, until it answers.
func (d *Device) agree(ctx context.Context, p parties) (point, error) {
	what, agree := "key file "+d.keyFile, d.agreeByFile
	if p.inTPM {
		what, agree = "TPM "+d.tpm, d.agreeInTPM
	}
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return point{}, failure(NotReady, "%s has not answered an earlier call: %w", what, ctx.Err())
	}
	type answer struct {
		shared point
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		defer func() { <-d.turn }()
		var a answer
		a.shared, a.err = agree(p)
		answers <- a
	}()
	select {
	case a := <-answers:
		return a.shared, a.err
	case <-ctx.Done():
		return point{}, failure(NotReady, "%s does not answer: %w", what, ctx.Err())
	}
}

func (d *Device) agreeByFile(p parties) (point, error) {
	text, err := safefile.Read(d.keyFile, maxKey)
	if err != nil {
		return point{}, failure(NotReady, "read the device's key: %w", err)
	}
	key := parseKey(text)
	if key == nil {
		return point{}, failure(NotReady, "key file %s contains no EC private key", d.keyFile)
	}
	if own, err := key.PublicKey.ECDH(); err != nil || !own.Equal(p.device) {
		return point{}, failure(NotReady, "the key in %s is not that of the device certificate", d.keyFile)
	}
	scalar, err := key.Bytes()
	if err != nil {
		return point{}, failure(NotReady, "key file %s contains an unusable key", d.keyFile)
	}
	var shared point
	xy := coordinates(p.controller) // checked to be on the curve
	//nolint:staticcheck // SA1019: the key is made of both coordinates, and crypto/ecdh gives X alone
	x, y := elliptic.P256().ScalarMult(new(big.Int).SetBytes(xy[:32]), new(big.Int).SetBytes(xy[32:]), scalar)
	x.FillBytes(shared[:32])
	y.FillBytes(shared[32:])
	return shared, nil
}

// parseKey returns the first private key in text, PKCS 8 or SEC 1. The reason
// why there is none is not told: it could quote the key.
func parseKey(text []byte) *ecdsa.PrivateKey {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "EC PRIVATE KEY":
			if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
				return key
			}
		case "PRIVATE KEY":
			if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
				key, _ := parsed.(*ecdsa.PrivateKey)
				return key
			}
		}
	}
	return nil
}

// pointOf makes a point of coordinates that may lack leading zeros.
func pointOf(x, y []byte) (p point, err error) {
	if len(x) > 32 || len(y) > 32 {
		return p, errors.New("it is not a P-256 key")
	}
	copy(p[32-len(x):32], x)
	copy(p[64-len(y):], y)
	return p, nil
}

// keyHandle is where tpmmgr makes the key, without a password (docs/wire.md,
// "Token decryption").
const keyHandle tpm2.TPMHandle = 0x81000005

func (d *Device) agreeInTPM(p parties) (point, error) {
	tpm, err := openTPM(d.tpm)
	if err != nil {
		return point{}, failure(NotReady, "open the TPM: %w", err)
	}
	defer tpm.Close()
	public, err := tpm2.ReadPublic{ObjectHandle: keyHandle}.Execute(tpm)
	if err != nil {
		return point{}, failure(NotReady, "read key %#x of TPM %s: %w", uint32(keyHandle), d.tpm, err)
	}
	if !isKeyOf(public.OutPublic, p) {
		return point{}, failure(NotReady, "key %#x of TPM %s is not that of the device certificate", uint32(keyHandle), d.tpm)
	}
	xy := coordinates(p.controller)
	made, err := tpm2.ECDHZGen{
		KeyHandle: tpm2.AuthHandle{Handle: keyHandle, Name: public.Name, Auth: tpm2.PasswordAuth(nil)},
		InPoint: tpm2.New2B(tpm2.TPMSECCPoint{
			X: tpm2.TPM2BECCParameter{Buffer: xy[:32]}, Y: tpm2.TPM2BECCParameter{Buffer: xy[32:]},
		}),
	}.Execute(tpm)
	if err != nil {
		return point{}, failure(NotReady, "agree on a key in TPM %s: %w", d.tpm, err)
	}
	out, err := made.OutPoint.Contents()
	if err != nil {
		return point{}, failure(NotReady, "agree on a key in TPM %s: the answer cannot be parsed", d.tpm)
	}
	shared, err := pointOf(out.X.Buffer, out.Y.Buffer)
	if err != nil {
		return point{}, failure(NotReady, "agree on a key in TPM %s: %w", d.tpm, err)
	}
	return shared, nil
}

// coordinates are X and Y of a key, each 32 bytes, after the byte that says
// uncompressed.
func coordinates(key *ecdh.PublicKey) []byte { return key.Bytes()[1:] }

// openTPM opens a device, or the socket of an emulator.
func openTPM(path string) (transport.TPMCloser, error) {
	if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		return linuxudstpm.Open(path)
	}
	return linuxtpm.Open(path)
}

func isKeyOf(public tpm2.TPM2BPublic, p parties) bool {
	area, err := public.Contents()
	if err != nil {
		return false
	}
	xy, err := area.Unique.ECC()
	if err != nil {
		return false
	}
	own, err := pointOf(xy.X.Buffer, xy.Y.Buffer)
	return err == nil && bytes.Equal(own[:], coordinates(p.device))
}
