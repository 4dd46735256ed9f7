package cipher

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zedkube/zedkube/types"
)

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
		"one byte of data":          {func(f *flawed) { f.block = f.encrypt([]byte{0}) }, UnmarshalFailed, "is not an EncryptionBlock"},
		"a megabyte of noise":       {func(f *flawed) { f.block.CipherData = make([]byte, maxData) }, DecryptFailed, "hash of the clear text does not match"},
		"a token that is no text":   {func(f *flawed) { f.block = f.encrypt([]byte("\x42\x02\xff\xfe")) }, UnmarshalFailed, "is not an EncryptionBlock"},
		"too much data":             {func(f *flawed) { f.block.CipherData = make([]byte, maxData+1) }, Invalid, "1048577 bytes"},
		"no context":                {func(f *flawed) { f.block.CipherContext = nil }, NotReady, "the cipher context of the block is missing"},
		"no key exchange":           {func(f *flawed) { f.block.CipherContext.KeyExchangeScheme = 0 }, Invalid, "key exchange scheme"},
		"another encryption":        {func(f *flawed) { f.block.CipherContext.EncryptionScheme = 2 }, Invalid, "encryption scheme"},
		"no initial value":          {func(f *flawed) { f.block.InitialValue = nil }, Invalid, "initial value has 0 bytes"},
		"a long initial value":      {func(f *flawed) { f.block.InitialValue = make([]byte, 17) }, Invalid, "initial value has 17 bytes"},
		"no hash of the clear text": {func(f *flawed) { f.block.ClearTextHash = nil }, Invalid, "hash of the clear text has 0 bytes"},
		"half of that hash":         {func(f *flawed) { f.block.ClearTextHash = f.block.ClearTextHash[:16] }, Invalid, "has 16 bytes"},
		"no controller named":       {func(f *flawed) { f.block.CipherContext.ControllerCertHash = nil }, Invalid, "names no controller certificate"},
		"no device named":           {func(f *flawed) { f.block.CipherContext.DeviceCertHash = nil }, Invalid, "names no device certificate"},
		"no controller certificate": {func(f *flawed) { f.certs.Controller = nil }, NotReady, "controller certificate <C> not found"},
		"no device certificate":     {func(f *flawed) { f.certs.Device = nil }, NotReady, "device certificate <D> not found"},
		"a signing certificate":     {func(f *flawed) { f.controllerCert(func(c *types.ControllerCert) { c.Type = 1 }) }, Invalid, "<C> is of type Signing"},
		"a certificate of nothing":  {func(f *flawed) { f.controllerCert(func(c *types.ControllerCert) { c.Cert = []byte("x") }) }, Invalid, "<C> does not parse"},
		"a broken certificate":      {func(f *flawed) { f.deviceCert(func(c *types.EdgeNodeCert) { c.Cert = c.Cert[:200] }) }, Invalid, "<D> does not parse"},
		"an endless certificate":    {func(f *flawed) { f.deviceCert(func(c *types.EdgeNodeCert) { c.Cert = make([]byte, 1<<17) }) }, Invalid, "<D> has 131072 bytes"},
		"a certificate of RSA": {func(f *flawed) {
			f.controllerCert(func(c *types.ControllerCert) { c.Cert = certify(t, &rsaKey.PublicKey) })
		}, Invalid, "no elliptic curve key"},
		"a certificate on P-384": {func(f *flawed) {
			f.deviceCert(func(c *types.EdgeNodeCert) { c.Cert = certify(t, &newKey(t, elliptic.P384()).PublicKey) })
		}, Invalid, "<D> has no P-256 key"},
		"another device's key":        {func(f *flawed) { f.file = keyFile(t, sec1(t, other)) }, NotReady, "is not that of the device certificate"},
		"no key file":                 {func(f *flawed) { must(t, os.Remove(f.file)) }, NotReady, "no such file"},
		"an empty key file":           {func(f *flawed) { f.file = keyFile(t, nil) }, NotReady, "contains no EC private key"},
		"half a key file":             {func(f *flawed) { f.file = keyFile(t, sec1(t, f.key)[:120]) }, NotReady, "contains no EC private key"},
		"an RSA key file":             {func(f *flawed) { f.file = keyFile(t, pkcs8(t, rsaKey)) }, NotReady, "contains no EC private key"},
		"a directory for a key file":  {func(f *flawed) { f.file = t.TempDir() }, NotReady, "is not a regular file"},
		"a pipe for a key file":       {func(f *flawed) { f.file = pipe(t) }, NotReady, "is not a regular file"},
		"another controller's key":    {func(f *flawed) { f.own = other; f.block = f.token(secret) }, DecryptFailed, "does not match"},
		"changed data":                {func(f *flawed) { f.block.CipherData[3] ^= 1 }, DecryptFailed, "does not match"},
		"a changed initial value":     {func(f *flawed) { f.block.InitialValue[3] ^= 1 }, DecryptFailed, "does not match"},
		"not an EncryptionBlock":      {func(f *flawed) { f.block = f.encrypt([]byte(secret + secret)) }, UnmarshalFailed, "is not an EncryptionBlock"},
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
