package player

import (
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"time"

	"github.com/lf-edge/eve-api/go/evecommon"
	"google.golang.org/protobuf/proto"

	"github.com/zedkube/zedkube/types"
)

// keyPair is one side of the exchange of a key (docs/wire.md, "Token
// decryption").
type keyPair struct {
	key  *ecdsa.PrivateKey
	cert []byte // PEM
	hash []byte // the first 16 bytes of the SHA-256 of cert
}

func newKeyPair(name string) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0), KeyUsage: x509.KeyUsageKeyAgreement,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return keyPair{}, err
	}
	k := keyPair{key: key, cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	sum := sha256.Sum256(k.cert)
	k.hash = sum[:16]
	return k, nil
}

// keyPEM is the private key as a device keeps it in a file.
func (k keyPair) keyPEM() ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(k.key)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

func (k keyPair) controllerCert() types.ControllerCert {
	return types.ControllerCert{
		HashAlgo: types.HashAlgorithmSHA256First16, Type: types.ControllerCertECDH, Cert: k.cert, CertHash: k.hash,
	}
}

func (k keyPair) deviceCert() types.EdgeNodeCert {
	return types.EdgeNodeCert{
		HashAlgo: types.HashAlgorithmSHA256First16, CertID: k.hash, CertType: types.EdgeNodeCertEcdhXchange, Cert: k.cert,
	}
}

// seal encrypts clear as a controller does for a device. The block's name is
// zedagent's to give.
func seal(controller, device keyPair, clear *evecommon.EncryptionBlock) (types.CipherBlockStatus, error) {
	plain, err := proto.Marshal(clear)
	if err != nil {
		return types.CipherBlockStatus{}, err
	}
	scalar, err := controller.key.Bytes()
	if err != nil {
		return types.CipherBlockStatus{}, err
	}
	//nolint:staticcheck // SA1019: both coordinates are needed, and crypto/ecdh gives X alone
	x, y := elliptic.P256().ScalarMult(device.key.X, device.key.Y, scalar)
	var shared [64]byte
	x.FillBytes(shared[:32])
	y.FillBytes(shared[32:])
	key := sha256.Sum256(shared[:])
	b, err := aes.NewCipher(key[:])
	if err != nil {
		return types.CipherBlockStatus{}, err
	}
	iv := make([]byte, aes.BlockSize)
	if _, err := rand.Read(iv); err != nil {
		return types.CipherBlockStatus{}, err
	}
	sealed := make([]byte, len(plain))
	//nolint:staticcheck // SA1019: EVE's scheme is CFB
	cipher.NewCFBEncrypter(b, iv).XORKeyStream(sealed, plain)
	sum := sha256.Sum256(plain)
	context := "controller-" + hex.EncodeToString(controller.hash[:4])
	return types.CipherBlockStatus{
		CipherContextID: context, InitialValue: iv, CipherData: sealed, ClearTextHash: sum[:], IsCipher: true,
		CipherContext: &types.CipherContext{
			ContextID: context, HashScheme: types.HashAlgorithmSHA256First16, KeyExchangeScheme: types.KeyExchangeECDH,
			EncryptionScheme: types.EncryptionAES256CFB, ControllerCertHash: controller.hash, DeviceCertHash: device.hash,
		},
	}, nil
}

// newToken is a token as random as k3s's own.
func newToken() (string, error) {
	token := make([]byte, 16)
	_, err := rand.Read(token)
	return hex.EncodeToString(token), err
}

// packed is a registration manifest as a controller sends it.
func packed(manifest string) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(manifest)); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}
