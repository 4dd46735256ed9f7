package cipher

import (
	"bytes"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/types"
)

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
