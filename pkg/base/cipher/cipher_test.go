package cipher

import (
	"bytes"
	"context"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/lf-edge/eve-api/go/evecommon"
	"google.golang.org/protobuf/proto"
)

const secret = "K10cafe::server:s3cr3t"

func TestADeviceReadsWhatItsControllerEncrypted(t *testing.T) {
	key := newKey(t, elliptic.P256())
	parameters := pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7}})
	for name, text := range map[string][]byte{
		"a SEC 1 key":                       sec1(t, key),
		"a PKCS 8 key":                      pkcs8(t, key),
		"a key behind its curve":            append(parameters, sec1(t, key)...),
		"a key with words around it":        slicesJoin([]byte("the key:\n"), pkcs8(t, key), []byte("end\n")),
		"a key file that ends in newlines ": append(sec1(t, key), "\n\n"...),
	} {
		t.Run(name, func(t *testing.T) {
			c := meet(t, &key.PublicKey, false)
			clear, err := proto.Marshal(&evecommon.EncryptionBlock{
				ClusterToken: secret, GzipRegistrationManifestYaml: []byte{0x1f, 0x8b, 0}, WifiPassword: "no matter",
			})
			must(t, err)
			got, err := NewDevice(keyFile(t, text), "/nonexistent").Decrypt(t.Context(), c.encrypt(clear), c.certs)
			if err != nil || got.ClusterToken != secret || !bytes.Equal(got.Manifest, []byte{0x1f, 0x8b, 0}) {
				t.Errorf("token of %d bytes, manifest of %d: %v", len(got.ClusterToken), len(got.Manifest), err)
			}
		})
	}
}

func slicesJoin(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// A coordinate begins with a zero byte once in 256 points, a public key's as
// well as the shared one's.
func TestCoordinatesKeepTheirLeadingZeros(t *testing.T) {
	key := newKey(t, elliptic.P256())
	d := NewDevice(keyFile(t, sec1(t, key)), "")
	scalar, err := key.Bytes()
	must(t, err)
	for _, short := range []string{"X", "Y"} {
		c := meet(t, &key.PublicKey, false)
		for {
			c.own = newKey(t, elliptic.P256())
			//nolint:staticcheck // SA1019: as in the program
			x, y := elliptic.P256().ScalarMult(c.own.X, c.own.Y, scalar)
			if (map[string]*big.Int{"X": x, "Y": y})[short].BitLen() <= 248 {
				break
			}
		}
		cert := c.certs.Controller[hex.EncodeToString(c.cHash)]
		cert.Cert = certify(t, &c.own.PublicKey)
		c.certs.Controller[cert.Key()] = cert
		if got, err := d.Decrypt(t.Context(), c.token(secret), c.certs); err != nil || got.ClusterToken != secret {
			t.Errorf("with a short %s: %v", short, err)
		}
	}
}

func TestACertificateMayBeTheFirstOfAChain(t *testing.T) {
	key := newKey(t, elliptic.P256())
	c := meet(t, &key.PublicKey, false)
	cert := c.certs.Controller[hex.EncodeToString(c.cHash)]
	cert.Cert = append(cert.Cert, certify(t, &newKey(t, elliptic.P384()).PublicKey)...)
	sum := sha256.Sum256(cert.Cert)
	c.cHash = sum[:16]
	cert.CertHash = c.cHash
	c.certs.Controller[cert.Key()] = cert
	if got, err := NewDevice(keyFile(t, sec1(t, key)), "").Decrypt(t.Context(), c.token(secret), c.certs); err != nil || got.ClusterToken != secret {
		t.Error(err)
	}
}

// EVE never compares the two.
func TestAHashThatDoesNotNameItsCertificateIsToldOnlyWhereDecryptionFails(t *testing.T) {
	key := newKey(t, elliptic.P256())
	c := meet(t, &key.PublicKey, false)
	d := NewDevice(keyFile(t, sec1(t, key)), "")
	cert := c.certs.Controller[hex.EncodeToString(c.cHash)]
	cert.Cert = append(cert.Cert, '\n')
	c.certs.Controller[cert.Key()] = cert
	if got, err := d.Decrypt(t.Context(), c.token(secret), c.certs); err != nil || got.ClusterToken != secret {
		t.Error(err)
	}
	block := c.token(secret)
	cert.Cert = certify(t, &newKey(t, elliptic.P256()).PublicKey)
	c.certs.Controller[cert.Key()] = cert
	_, err := d.Decrypt(t.Context(), block, c.certs)
	want := `cipher context "ctx-1": the hash of the clear text does not match, and controller certificate ` +
		hex.EncodeToString(c.cHash[:8]) + " does not match its hash"
	if err == nil || err.Error() != want || KindOf(err) != DecryptFailed {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestASecretIsNotPrinted(t *testing.T) {
	s := Secret{ClusterToken: "s3cr3t", Manifest: []byte("s3cr3t")}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, s) + fmt.Sprintf(verb, &s); strings.Contains(text, "s3cr3t") || strings.Contains(text, "115 51") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}

func TestACallEndsWithItsContextAndTheNextOneWaitsItsTurn(t *testing.T) {
	key := newKey(t, elliptic.P256())
	c := meet(t, &key.PublicKey, false)
	d := NewDevice(keyFile(t, sec1(t, key)), "")
	d.turn <- struct{}{} // someone's call hangs
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := d.Decrypt(ctx, c.token(secret), c.certs); KindOf(err) != NotReady || !strings.Contains(err.Error(), "has not answered an earlier call") {
		t.Errorf("got %v", err)
	}
	<-d.turn
	if _, err := d.Decrypt(t.Context(), c.token(secret), c.certs); err != nil {
		t.Error(err)
	}
}
