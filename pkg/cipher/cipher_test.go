package cipher

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lf-edge/eve-api/go/evecommon"
	"google.golang.org/protobuf/proto"

	"github.com/zedkube/zedkube/types"
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
	want := `cipher context "ctx-1": the clear text does not have the hash it should have, and controller certificate ` +
		hex.EncodeToString(c.cHash[:8]) + " is not the one its hash names"
	if err == nil || err.Error() != want || KindOf(err) != DecryptFailed {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// flawed is a device and its controller's block with one thing wrong.
type flawed struct {
	*controller
	key   *ecdsa.PrivateKey
	block types.CipherBlockStatus
	file  string
}

func (f *flawed) controllerCert(change func(*types.ControllerCert)) {
	cert := f.certs.Controller[hex.EncodeToString(f.cHash)]
	change(&cert)
	f.certs.Controller[hex.EncodeToString(f.cHash)] = cert
}

func (f *flawed) deviceCert(change func(*types.EdgeNodeCert)) {
	cert := f.certs.Device[hex.EncodeToString(f.dHash)]
	change(&cert)
	f.certs.Device[hex.EncodeToString(f.dHash)] = cert
}

func TestWhatIsWrongIsNamedAndCounted(t *testing.T) {
	other := newKey(t, elliptic.P256())
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	for name, r := range map[string]struct {
		flaw func(*flawed)
		kind Kind
		text string // a part of it; <C> and <D> stand for the certificates' hashes
	}{
		"an empty block":            {func(f *flawed) { f.block = types.CipherBlockStatus{} }, NoData, "the block is empty"},
		"clear text":                {func(f *flawed) { f.block.IsCipher = false }, NoCipher, "the block is not encrypted"},
		"no data":                   {func(f *flawed) { f.block.CipherData = nil }, NoData, "no data"},
		"too much data":             {func(f *flawed) { f.block.CipherData = make([]byte, maxData+1) }, Invalid, "1048577 bytes"},
		"no context":                {func(f *flawed) { f.block.CipherContext = nil }, NotReady, "without its cipher context"},
		"no key exchange":           {func(f *flawed) { f.block.CipherContext.KeyExchangeScheme = 0 }, Invalid, "key exchange scheme"},
		"another encryption":        {func(f *flawed) { f.block.CipherContext.EncryptionScheme = 2 }, Invalid, "encryption scheme"},
		"no initial value":          {func(f *flawed) { f.block.InitialValue = nil }, Invalid, "initial value has 0 bytes"},
		"a long initial value":      {func(f *flawed) { f.block.InitialValue = make([]byte, 17) }, Invalid, "initial value has 17 bytes"},
		"no hash of the clear text": {func(f *flawed) { f.block.ClearTextHash = nil }, Invalid, "hash of the clear text has 0 bytes"},
		"half of that hash":         {func(f *flawed) { f.block.ClearTextHash = f.block.ClearTextHash[:16] }, Invalid, "has 16 bytes"},
		"no controller named":       {func(f *flawed) { f.block.CipherContext.ControllerCertHash = nil }, Invalid, "names no controller certificate"},
		"no device named":           {func(f *flawed) { f.block.CipherContext.DeviceCertHash = nil }, Invalid, "names no device certificate"},
		"no controller certificate": {func(f *flawed) { f.certs.Controller = nil }, NotReady, "controller certificate <C> is not there"},
		"no device certificate":     {func(f *flawed) { f.certs.Device = nil }, NotReady, "device certificate <D> is not there"},
		"a signing certificate":     {func(f *flawed) { f.controllerCert(func(c *types.ControllerCert) { c.Type = 1 }) }, Invalid, "<C> is of type Signing"},
		"a certificate of nothing":  {func(f *flawed) { f.controllerCert(func(c *types.ControllerCert) { c.Cert = []byte("x") }) }, Invalid, "<C> does not parse"},
		"a broken certificate":      {func(f *flawed) { f.deviceCert(func(c *types.EdgeNodeCert) { c.Cert = c.Cert[:200] }) }, Invalid, "<D> does not parse"},
		"an endless certificate":    {func(f *flawed) { f.deviceCert(func(c *types.EdgeNodeCert) { c.Cert = make([]byte, 1<<17) }) }, Invalid, "<D> has 131072 bytes"},
		"a certificate of RSA": {func(f *flawed) {
			f.controllerCert(func(c *types.ControllerCert) { c.Cert = certify(t, &rsaKey.PublicKey) })
		}, Invalid, "no key on an elliptic curve"},
		"a certificate on P-384": {func(f *flawed) {
			f.deviceCert(func(c *types.EdgeNodeCert) { c.Cert = certify(t, &newKey(t, elliptic.P384()).PublicKey) })
		}, Invalid, "<D> has no key on P-256"},
		"another device's key":        {func(f *flawed) { f.file = keyFile(t, sec1(t, other)) }, NotReady, "is not that of the device certificate"},
		"no key file":                 {func(f *flawed) { must(t, os.Remove(f.file)) }, NotReady, "no such file"},
		"an empty key file":           {func(f *flawed) { f.file = keyFile(t, nil) }, NotReady, "holds no EC private key"},
		"half a key file":             {func(f *flawed) { f.file = keyFile(t, sec1(t, f.key)[:120]) }, NotReady, "holds no EC private key"},
		"an RSA key file":             {func(f *flawed) { f.file = keyFile(t, pkcs8(t, rsaKey)) }, NotReady, "holds no EC private key"},
		"a directory for a key file":  {func(f *flawed) { f.file = t.TempDir() }, NotReady, "is not a regular file"},
		"a pipe for a key file":       {func(f *flawed) { f.file = pipe(t) }, NotReady, "is not a regular file"},
		"another controller's key":    {func(f *flawed) { f.own = other; f.block = f.token(secret) }, DecryptFailed, "does not have the hash it should have"},
		"changed data":                {func(f *flawed) { f.block.CipherData[3] ^= 1 }, DecryptFailed, "does not have the hash it should have"},
		"a changed initial value":     {func(f *flawed) { f.block.InitialValue[3] ^= 1 }, DecryptFailed, "does not have the hash it should have"},
		"no EncryptionBlock":          {func(f *flawed) { f.block = f.encrypt([]byte(secret + secret)) }, UnmarshalFailed, "is no EncryptionBlock"},
		"a TPM where there is none":   {func(f *flawed) { f.deviceCert(func(c *types.EdgeNodeCert) { c.IsTpm = true }) }, NotReady, "open the TPM"},
		"a context with a long title": {func(f *flawed) { f.block.CipherContextID = strings.Repeat("x", 1000); f.block.InitialValue = nil }, Invalid, `xx": the initial`},
	} {
		t.Run(name, func(t *testing.T) {
			key := newKey(t, elliptic.P256())
			c := meet(t, &key.PublicKey, false)
			f := &flawed{controller: c, key: key, block: c.token(secret), file: keyFile(t, sec1(t, key))}
			r.flaw(f)
			s, err := NewDevice(f.file, filepath.Join(t.TempDir(), "tpm")).Decrypt(t.Context(), f.block, f.certs)
			text := strings.NewReplacer("<C>", hex.EncodeToString(f.cHash[:8]), "<D>", hex.EncodeToString(f.dHash[:8])).Replace(r.text)
			if err == nil || KindOf(err) != r.kind || !strings.Contains(err.Error(), text) || len(err.Error()) > 300 {
				t.Errorf("kind %d: %v", KindOf(err), err)
			}
			if s.ClusterToken != "" || s.Manifest != nil {
				t.Error("there is a secret beside the error")
			}
			if err != nil && (strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "cafe")) {
				t.Errorf("the error tells the secret: %v", err)
			}
		})
	}
}

func pipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(path, 0o600))
	return path
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
	d.turn <- struct{}{} // somebody's call hangs
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

func FuzzDecrypt(f *testing.F) {
	t := &testing.T{}
	key := newKey(t, elliptic.P256())
	c := meet(t, &key.PublicKey, false)
	dir := f.TempDir()
	path := filepath.Join(dir, "key")
	if err := os.WriteFile(path, sec1(t, key), 0o600); err != nil {
		f.Fatal(err)
	}
	d := NewDevice(path, filepath.Join(dir, "tpm"))
	good, err := json.Marshal(c.token(secret))
	if err != nil {
		f.Fatal(err)
	}
	cert, mine := c.certs.Controller[hex.EncodeToString(c.cHash)], c.certs.Device[hex.EncodeToString(c.dHash)]
	f.Add(good, cert.Cert, mine.Cert)
	f.Add([]byte(`{"IsCipher":true}`), []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, text, controllerPEM, devicePEM []byte) {
		var block types.CipherBlockStatus
		if json.Unmarshal(text, &block) != nil {
			return
		}
		cert.Cert, mine.Cert = controllerPEM, devicePEM
		certs := Certificates{Controller: map[string]types.ControllerCert{}, Device: map[string]types.EdgeNodeCert{}}
		if block.CipherContext != nil {
			certs.Controller[hex.EncodeToString(block.CipherContext.ControllerCertHash)] = cert
			certs.Device[hex.EncodeToString(block.CipherContext.DeviceCertHash)] = mine
		}
		s, err := d.Decrypt(t.Context(), block, certs)
		sum := sha256.Sum256(nil)
		switch {
		case err == nil && bytes.Equal(block.ClearTextHash, sum[:]):
			t.Error("nothing was decrypted to nothing")
		case err == nil && s.ClusterToken != secret:
			t.Error("another token came out of a hash that holds")
		case err != nil && strings.Contains(err.Error(), "s3cr3t"):
			t.Errorf("the error tells the secret: %v", err)
		}
	})
}
