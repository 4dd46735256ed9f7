// Package cipher decrypts what the controller encrypted for this device alone
// (docs/wire.md, "Token decryption").
package cipher

import (
	"bytes"
	"context"
	"crypto/aes"
	stdcipher "crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/lf-edge/eve-api/go/evecommon"
	"google.golang.org/protobuf/proto"

	"github.com/zedkube/zedkube/types"
)

// maxData bounds the cipher data: a large field is shorter than 1 MiB.
const maxData = 1 << 20

// Certificates are those that a block may name, by their keys.
type Certificates struct {
	Controller map[string]types.ControllerCert
	Device     map[string]types.EdgeNodeCert
}

// Secret is what a block holds, as far as this agent needs it.
type Secret struct {
	ClusterToken string
	Manifest     []byte // gzip
}

// String hides the secret from verbs that print everything.
func (Secret) String() string { return "secret" }

// GoString hides the secret as String does.
func (Secret) GoString() string { return "secret" }

// Decrypt decrypts a block with the key of this device. It returns when ctx is
// done at the latest. The error is an *Error and holds nothing secret.
func (d *Device) Decrypt(ctx context.Context, block types.CipherBlockStatus, certs Certificates) (Secret, error) {
	p, err := partiesOf(block, certs)
	if err != nil {
		return Secret{}, about(block, err)
	}
	shared, err := d.agree(ctx, p)
	if err != nil {
		return Secret{}, about(block, err)
	}
	clear, err := open(block, shared)
	if err != nil && p.certificateProblem != "" {
		err = failure(DecryptFailed, "%w, and %s", err, p.certificateProblem)
	}
	if err != nil {
		return Secret{}, about(block, err)
	}
	s, err := decode(clear)
	return s, about(block, err)
}

// parties are the two sides of a block's key.
type parties struct {
	controller         *ecdh.PublicKey
	device             *ecdh.PublicKey
	inTPM              bool   // the device's private key is in the TPM
	certificateProblem string // what speaks against the certificates, "" for nothing
}

// partiesOf checks a block as far as it can be checked without a key, and finds
// the certificates it names.
func partiesOf(block types.CipherBlockStatus, certs Certificates) (parties, error) {
	if err := check(block); err != nil {
		return parties{}, err
	}
	c := block.CipherContext
	controller, err := find("controller", c.ControllerCertHash, certs.Controller)
	if err == nil && controller.Type != types.ControllerCertECDH {
		err = failure(Invalid, "controller certificate %s is of type %s, not for ECDH", short(c.ControllerCertHash), controller.Type)
	}
	if err != nil {
		return parties{}, err
	}
	device, err := find("device", c.DeviceCertHash, certs.Device)
	if err != nil {
		return parties{}, err
	}
	p := parties{inTPM: device.IsTpm}
	if p.controller, err = publicKey("controller", c.ControllerCertHash, controller.Cert); err != nil {
		return parties{}, err
	}
	if p.device, err = publicKey("device", c.DeviceCertHash, device.Cert); err != nil {
		return parties{}, err
	}
	p.certificateProblem = certificateProblem(controller, device)
	return p, nil
}

func check(block types.CipherBlockStatus) error {
	c := block.CipherContext
	switch {
	case !block.IsCipher && len(block.CipherData) == 0:
		return failure(NoData, "the block is empty: nothing is encrypted in it")
	case !block.IsCipher:
		return failure(NoCipher, "the block is not encrypted")
	case len(block.CipherData) == 0:
		return failure(NoData, "the block contains no data")
	case len(block.CipherData) > maxData:
		return failure(Invalid, "the block has %d bytes, more than %d", len(block.CipherData), maxData)
	case c == nil:
		return failure(NotReady, "the cipher context of the block is missing")
	case c.KeyExchangeScheme != types.KeyExchangeECDH:
		return failure(Invalid, "key exchange scheme %s is not supported", c.KeyExchangeScheme)
	case c.EncryptionScheme != types.EncryptionAES256CFB:
		return failure(Invalid, "encryption scheme %s is not supported", c.EncryptionScheme)
	case len(block.InitialValue) != aes.BlockSize:
		return failure(Invalid, "the initial value has %d bytes, not %d", len(block.InitialValue), aes.BlockSize)
	case len(block.ClearTextHash) != sha256.Size:
		return failure(Invalid, "the hash of the clear text has %d bytes, not %d", len(block.ClearTextHash), sha256.Size)
	}
	return nil
}

// open decrypts and compares the hash, the only thing that tells a right key
// from a wrong one.
func open(block types.CipherBlockStatus, shared point) ([]byte, error) {
	key := sha256.Sum256(shared[:])
	b, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, failure(DecryptFailed, "make a cipher of the key: %w", err)
	}
	clear := make([]byte, len(block.CipherData))
	//nolint:staticcheck // SA1019: CFB is the format's; that it authenticates nothing is made good by the hash
	stdcipher.NewCFBDecrypter(b, block.InitialValue).XORKeyStream(clear, block.CipherData)
	sum := sha256.Sum256(clear)
	if subtle.ConstantTimeCompare(sum[:], block.ClearTextHash) != 1 {
		return nil, failure(DecryptFailed, "the hash of the clear text does not match")
	}
	return clear, nil
}

// decode takes no text from the decoder's error: it may quote what it read.
func decode(clear []byte) (Secret, error) {
	var b evecommon.EncryptionBlock
	if proto.Unmarshal(clear, &b) != nil {
		return Secret{}, failure(UnmarshalFailed, "the clear text is not an EncryptionBlock")
	}
	return Secret{ClusterToken: b.GetClusterToken(), Manifest: b.GetGzipRegistrationManifestYaml()}, nil
}

// Kind says what came in the way, as the index of its counter in CipherMetrics
// (docs/wire.md, "Cipher topics").
type Kind int

// The kinds, with EVE's names. Nothing here falls back to clear text.
const (
	Invalid           Kind = iota // the block or a certificate cannot be used as it is
	NotReady                      // a certificate or the private key is not there, or does not answer
	DecryptFailed                 // it was decrypted with a key that is not the right one
	UnmarshalFailed               // it was decrypted to something else
	CleartextFallback             // EVE's: decryption failed and the configuration has it in clear text
	MissingFallback               // EVE's: and it does not
	NoCipher                      // it is not encrypted
	NoData                        // it holds nothing
	Kinds             = int(NoData) + 1
)

// Error is why a block cannot be decrypted.
type Error struct {
	Kind Kind
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of an error of Decrypt; DecryptFailed for others.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return DecryptFailed
}

func failure(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// about names the context: it is what the controller's operator knows the
// block's certificates by.
func about(block types.CipherBlockStatus, err error) error {
	if err == nil || block.CipherContextID == "" {
		return err
	}
	const longest = 64 // the controller chose it, and it goes into logs
	id := block.CipherContextID
	return failure(KindOf(err), "cipher context %q: %w", id[:min(len(id), longest)], err)
}

// maxCert bounds what is parsed: a chain of certificates takes a few KiB.
const maxCert = 64 << 10

// find finds the certificate with a hash: the controller's or the device's.
func find[C any](whose string, hash []byte, certs map[string]C) (C, error) {
	c, ok := certs[hex.EncodeToString(hash)]
	switch {
	case len(hash) == 0:
		return c, failure(Invalid, "it names no %s certificate", whose)
	case !ok:
		return c, failure(NotReady, "%s certificate %s not found", whose, short(hash))
	}
	return c, nil
}

// publicKey returns the key of the first certificate in text; controllers send
// the rest of the chain behind it.
func publicKey(whose string, hash, text []byte) (*ecdh.PublicKey, error) {
	unusable := func(why string) error {
		return failure(Invalid, "%s certificate %s %s", whose, short(hash), why)
	}
	if len(text) > maxCert {
		return nil, unusable(fmt.Sprintf("has %d bytes, more than %d", len(text), maxCert))
	}
	cert := first(text)
	if cert == nil {
		return nil, unusable("does not parse")
	}
	signing, ok := cert.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		return nil, unusable("has no elliptic curve key")
	}
	key, err := signing.ECDH()
	if err != nil || key.Curve() != ecdh.P256() {
		return nil, unusable("has no P-256 key")
	}
	return key, nil
}

func first(text []byte) *x509.Certificate {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			return cert
		}
	}
	return nil
}

// certificateProblem says which certificate does not have the hash it is named by. That is
// only told where decryption fails: EVE does not look, so controllers may have
// named certificates otherwise for ever, and what proves the right ones is the
// hash of the clear text.
func certificateProblem(c types.ControllerCert, d types.EdgeNodeCert) string {
	switch {
	case !named(c.Cert, c.CertHash, c.HashAlgo):
		return fmt.Sprintf("controller certificate %s does not match its hash", short(c.CertHash))
	case !named(d.Cert, d.CertID, d.HashAlgo):
		return fmt.Sprintf("device certificate %s does not match its hash", short(d.CertID))
	}
	return ""
}

func named(text, hash []byte, algo types.HashAlgorithm) bool {
	sum := sha256.Sum256(text)
	want := sum[:]
	if algo == types.HashAlgorithmSHA256First16 {
		want = sum[:16]
	}
	return bytes.Equal(want, hash)
}

// short is enough of a hash to find the certificate by.
func short(hash []byte) string { return hex.EncodeToString(hash[:min(len(hash), 8)]) }
