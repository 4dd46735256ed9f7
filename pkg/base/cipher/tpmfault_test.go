package cipher

import (
	"bytes"
	"crypto/elliptic"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// actTPM listens on the returned path; what answer gives for a question goes
// back, nothing for nil.
func actTPM(t testing.TB, answer func(question []byte) []byte) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tpm") // not t.TempDir: a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var acting sync.WaitGroup
	acting.Go(func() { // each question comes on a connection of its own
		for buffer := make([]byte, 4096); ; {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if n, err := conn.Read(buffer); err == nil {
				_, _ = conn.Write(answer(buffer[:n]))
			}
			conn.Close()
		}
	})
	t.Cleanup(func() { l.Close(); acting.Wait(); os.RemoveAll(dir) })
	return path
}

// inTurn gives one answer after the other, and then none.
func inTurn(answers ...[]byte) func([]byte) []byte {
	return func([]byte) (a []byte) {
		if len(answers) > 0 {
			a, answers = answers[0], answers[1:]
		}
		return a
	}
}

// ask is what a TPM answers, nil for nothing.
func ask(path string, question []byte) []byte {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil
	}
	defer conn.Close()
	answer := make([]byte, 4096)
	if _, err := conn.Write(question); err != nil {
		return nil
	}
	n, _ := conn.Read(answer)
	return answer[:n]
}

var busy = []byte{0x80, 1, 0, 0, 0, 10, 0, 0, 9, 0x22} // TPM_RC_RETRY

func TestATPMThatIsBusyForAMomentIsWaitedFor(t *testing.T) {
	path := startTPM(t)
	c := meet(t, makeKey(t, path, keyHandle), true)
	asked := 0
	front := actTPM(t, func(question []byte) []byte {
		if asked++; asked%4 != 0 {
			return busy
		}
		return ask(path, question)
	})
	if got, err := NewDevice("", front).Decrypt(t.Context(), c.token(secret), c.certs); err != nil || got.ClusterToken != secret {
		t.Error(err)
	}
}

func TestATPMThatDoesNotWorkNowIsAskedLater(t *testing.T) {
	for name, r := range map[string]struct{ answer, text string }{ // in hex
		"in a self-test":               {"8001 0000000a 0000090a", "TPM_RC_TESTING"},
		"locked out":                   {"8001 0000000a 00000921", "TPM_RC_LOCKOUT"},
		"without memory":               {"8001 0000000a 00000902", "TPM_RC_OBJECT_MEMORY"},
		"half a header":                {"8001 0000", "read key"},
		"longer than it says":          {"8001 0000000a 00000921 00", "read key"},
		"shorter than it says":         {"8001 ffffffff 00000000", "key 0x81000005"},
		"success and nothing else":     {"8001 0000000a 00000000", "key 0x81000005"},
		"success and an empty key":     {"8001 00000010 00000000 0000 0000 0000", "key 0x81000005"},
		"success and a key of no kind": {"8001 00000014 00000000 0004 ffffffff 0000 0000", "key 0x81000005"},
	} {
		t.Run(name, func(t *testing.T) {
			key := newKey(t, elliptic.P256())
			c := meet(t, &key.PublicKey, true)
			answer, err := hex.DecodeString(strings.ReplaceAll(r.answer, " ", ""))
			must(t, err)
			s, err := NewDevice("", actTPM(t, inTurn(answer))).Decrypt(t.Context(), c.token(secret), c.certs)
			if KindOf(err) != NotReady || !strings.Contains(err.Error(), r.text) || s.ClusterToken != "" {
				t.Errorf("got %v", err)
			}
		})
	}
	key := newKey(t, elliptic.P256())
	c := meet(t, &key.PublicKey, true)
	if _, err := NewDevice("", actTPM(t, inTurn())).Decrypt(t.Context(), c.token(secret), c.certs); KindOf(err) != NotReady {
		t.Errorf("one that hangs up: %v", err)
	}
}

// FuzzTPM: whatever a TPM answers, it is no panic and no secret.
func FuzzTPM(f *testing.F) {
	key := newKey(&testing.T{}, elliptic.P256())
	c := meet(&testing.T{}, &key.PublicKey, true)
	block := c.token(secret)
	f.Add([]byte{0x80, 1, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, []byte{0x80, 2})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		if bytes.Contains(first, []byte{9, 0x22}) || bytes.Contains(second, []byte{9, 0x22}) { // a busy one is waited for
			return
		}
		_, err := NewDevice("", actTPM(t, inTurn(first, second))).Decrypt(t.Context(), block, c.certs)
		var known *Error
		if !errors.As(err, &known) {
			t.Errorf("got %v", err)
		}
	})
}
