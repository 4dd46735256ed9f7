package cipher

import (
	"crypto/aes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	stdcipher "crypto/cipher"

	"github.com/lf-edge/eve-api/go/evecommon"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// controller is the other side: it encrypts for a device.
type controller struct {
	*testing.T
	own    *ecdsa.PrivateKey
	device *ecdsa.PublicKey
	certs  Certificates
	cHash  []byte
	dHash  []byte
}

func newKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	must(t, err)
	return key
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// certify makes a certificate in PEM of a public key.
func certify(t *testing.T, public any) []byte {
	t.Helper()
	signer := newKey(t, elliptic.P256())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"}, NotAfter: time.Unix(1<<32, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, signer)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// meet introduces a controller to the device with this public key.
func meet(t *testing.T, device *ecdsa.PublicKey, inTPM bool) *controller {
	t.Helper()
	c := &controller{T: t, own: newKey(t, elliptic.P256()), device: device}
	cert := types.ControllerCert{
		HashAlgo: types.HashAlgorithmSHA256First16, Type: types.ControllerCertECDH, Cert: certify(t, &c.own.PublicKey),
	}
	sum := sha256.Sum256(cert.Cert)
	c.cHash = sum[:16]
	cert.CertHash = c.cHash
	mine := types.EdgeNodeCert{
		HashAlgo: types.HashAlgorithmSHA256, CertType: types.EdgeNodeCertEcdhXchange, Cert: certify(t, device), IsTpm: inTPM,
	}
	sum = sha256.Sum256(mine.Cert)
	c.dHash = sum[:]
	mine.CertID = c.dHash
	c.certs = Certificates{
		Controller: map[string]types.ControllerCert{cert.Key(): cert},
		Device:     map[string]types.EdgeNodeCert{mine.Key(): mine},
	}
	return c
}

// encrypt does what docs/wire.md, "Token decryption" says, the other way round.
func (c *controller) encrypt(clear []byte) types.CipherBlockStatus {
	c.Helper()
	scalar, err := c.own.Bytes()
	must(c.T, err)
	//nolint:staticcheck // SA1019: as in the program
	x, y := elliptic.P256().ScalarMult(c.device.X, c.device.Y, scalar)
	var shared [64]byte
	x.FillBytes(shared[:32])
	y.FillBytes(shared[32:])
	key := sha256.Sum256(shared[:])
	b, err := aes.NewCipher(key[:])
	must(c.T, err)
	block := types.CipherBlockStatus{
		CipherBlockID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8", CipherContextID: "ctx-1", IsCipher: true,
		InitialValue: make([]byte, aes.BlockSize), CipherData: make([]byte, len(clear)),
		CipherContext: &types.CipherContext{
			ContextID: "ctx-1", HashScheme: types.HashAlgorithmSHA256First16, KeyExchangeScheme: types.KeyExchangeECDH,
			EncryptionScheme: types.EncryptionAES256CFB, ControllerCertHash: c.cHash, DeviceCertHash: c.dHash,
		},
	}
	_, err = rand.Read(block.InitialValue)
	must(c.T, err)
	//nolint:staticcheck // SA1019: as in the program
	stdcipher.NewCFBEncrypter(b, block.InitialValue).XORKeyStream(block.CipherData, clear)
	sum := sha256.Sum256(clear)
	block.ClearTextHash = sum[:]
	return block
}

func (c *controller) token(token string) types.CipherBlockStatus {
	c.Helper()
	clear, err := proto.Marshal(&evecommon.EncryptionBlock{ClusterToken: token})
	must(c.T, err)
	return c.encrypt(clear)
}

// keyFile writes a device's key in PEM.
func keyFile(t *testing.T, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ecdh.key.pem")
	must(t, os.WriteFile(path, text, 0o600))
	return path
}

func sec1(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func pkcs8(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
