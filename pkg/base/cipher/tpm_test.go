package cipher

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-tpm/tpm2"
)

// startTPM runs an emulator and returns its socket.
func startTPM(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("swtpm"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("swtpm is not installed")
		}
		t.Skip("swtpm is not installed")
	}
	dir, err := os.MkdirTemp("", "tpm") // not t.TempDir: a socket's path is short
	must(t, err)
	path := filepath.Join(dir, "sock")
	swtpm := exec.Command("swtpm", "socket", "--tpm2", "--tpmstate", "dir="+dir,
		"--server", "type=unixio,path="+path, "--ctrl", "type=unixio,path="+path+".ctrl", "--flags", "not-need-init,startup-clear")
	must(t, swtpm.Start())
	t.Cleanup(func() {
		_ = swtpm.Process.Kill()
		_ = swtpm.Wait()
		os.RemoveAll(dir)
	})
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			return path
		}
	}
	t.Fatal("swtpm does not listen")
	return ""
}

// makeKey makes the key that tpmmgr makes, and returns its public part.
func makeKey(t *testing.T, path string, handle tpm2.TPMHandle) *ecdsa.PublicKey {
	t.Helper()
	tpm, err := openTPM(path)
	must(t, err)
	defer tpm.Close()
	made, err := tpm2.CreatePrimary{
		PrimaryHandle: tpm2.TPMRHOwner,
		InPublic: tpm2.New2B(tpm2.TPMTPublic{
			Type: tpm2.TPMAlgECC, NameAlg: tpm2.TPMAlgSHA256,
			ObjectAttributes: tpm2.TPMAObject{
				FixedTPM: true, FixedParent: true, SensitiveDataOrigin: true, UserWithAuth: true, NoDA: true, Decrypt: true,
			},
			Parameters: tpm2.NewTPMUPublicParms(tpm2.TPMAlgECC, &tpm2.TPMSECCParms{
				CurveID: tpm2.TPMECCNistP256,
				Scheme: tpm2.TPMTECCScheme{
					Scheme:  tpm2.TPMAlgECDH,
					Details: tpm2.NewTPMUAsymScheme(tpm2.TPMAlgECDH, &tpm2.TPMSKeySchemeECDH{HashAlg: tpm2.TPMAlgSHA256}),
				},
			}),
		}),
	}.Execute(tpm)
	must(t, err)
	_, err = tpm2.EvictControl{
		Auth:             tpm2.TPMRHOwner,
		ObjectHandle:     &tpm2.NamedHandle{Handle: made.ObjectHandle, Name: made.Name},
		PersistentHandle: handle,
	}.Execute(tpm)
	must(t, err)
	area, err := made.OutPublic.Contents()
	must(t, err)
	xy, err := area.Unique.ECC()
	must(t, err)
	key, err := pointOf(xy.X.Buffer, xy.Y.Buffer)
	must(t, err)
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append([]byte{4}, key[:]...))
	must(t, err)
	return public
}

func TestADeviceReadsWithTheKeyInItsTPM(t *testing.T) {
	path := startTPM(t)
	public := makeKey(t, path, keyHandle)
	d := NewDevice("/nonexistent", path)
	for range 20 {
		c := meet(t, public, true)
		if got, err := d.Decrypt(t.Context(), c.token(secret), c.certs); err != nil || got.ClusterToken != secret {
			t.Fatal(err)
		}
	}
	c := meet(t, &newKey(t, elliptic.P256()).PublicKey, true)
	_, err := d.Decrypt(t.Context(), c.token(secret), c.certs)
	if KindOf(err) != NotReady || !strings.Contains(err.Error(), "key 0x81000005 of TPM "+path+" is not that of the device certificate") {
		t.Errorf("with another device's certificate: %v", err)
	}
}

func TestATPMWithoutTheKeySaysSo(t *testing.T) {
	path := startTPM(t)
	public := makeKey(t, path, keyHandle+1)
	c := meet(t, public, true)
	_, err := NewDevice("", path).Decrypt(t.Context(), c.token(secret), c.certs)
	if KindOf(err) != NotReady || !strings.Contains(err.Error(), "read key 0x81000005 of TPM "+path) {
		t.Errorf("got %v", err)
	}
}

// A TPM that hangs is asked by one goroutine, whatever is tried meanwhile.
func TestATPMThatHangsHoldsUpOneCallOnly(t *testing.T) {
	dir, err := os.MkdirTemp("", "tpm")
	must(t, err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "sock")
	l, err := net.Listen("unix", path)
	must(t, err)
	defer l.Close()
	conns := make(chan net.Conn, 10)
	go func() {
		defer close(conns)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns <- conn
		}
	}()
	key := newKey(t, elliptic.P256())
	c := meet(t, &key.PublicKey, true)
	d := NewDevice("", path)
	for i, want := range []string{"does not answer", "has not answered an earlier call", "has not answered an earlier call"} {
		within := 50 * time.Millisecond
		if i == 0 { // it has to come as far as the TPM
			within = time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), within)
		if _, err := d.Decrypt(ctx, c.token(secret), c.certs); KindOf(err) != NotReady || !strings.Contains(err.Error(), "TPM "+path+" "+want) {
			t.Errorf("call %d: %v", i, err)
		}
		cancel()
	}
	(<-conns).Close() // it answers after all, with nothing
	d.turn <- struct{}{}
	l.Close()
	for range conns {
		t.Error("somebody else asked it")
	}
}
