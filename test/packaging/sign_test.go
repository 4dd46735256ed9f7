package packaging

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const revision = "0123456789012345678901234567890123456789"

// keys are made for one test.
type keys struct {
	settings []string                               // name them, as variables
	verify   map[string]func(file string) *exec.Cmd // by the kind of signature
}

// makeKeys makes one for gpg, and one for cosign where that is installed.
func makeKeys(t *testing.T) keys {
	t.Helper()
	need(t, "gpg")
	home, err := os.MkdirTemp("/tmp", "") // gpg's agent listens there, and the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run()
		_ = os.RemoveAll(home)
	})
	t.Setenv("GNUPGHOME", home)
	t.Setenv("COSIGN_PASSWORD", "")
	run := func(name string, args ...string) {
		c := exec.Command(name, args...)
		c.Dir = home
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	const who = "release@example.org"
	run("gpg", "--batch", "--passphrase", "", "--quick-generate-key", who, "ed25519", "sign")
	k := keys{[]string{"GPG_KEY=" + who}, map[string]func(string) *exec.Cmd{
		"asc": func(file string) *exec.Cmd { return exec.Command("gpg", "--verify", file+".asc", file) },
	}}
	if _, err := exec.LookPath("cosign"); err != nil {
		return k
	}
	run("cosign", "generate-key-pair")
	k.settings = append(k.settings, "COSIGN_KEY="+filepath.Join(home, "cosign.key"))
	k.verify["sigstore.json"] = func(file string) *exec.Cmd {
		return exec.Command("cosign", "verify-blob", "--key", filepath.Join(home, "cosign.pub"), "--insecure-ignore-tlog", "--bundle", file+".sigstore.json", file)
	}
	return k
}

// check verifies both files with each key, and that they cannot be changed.
func (k keys) check(t *testing.T, sums, statement string) {
	t.Helper()
	content, err1 := os.ReadFile(statement)
	list, err2 := os.ReadFile(sums)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for field := range strings.FieldsSeq(string(list) + revision) {
		if !strings.Contains(string(content), `"`+field+`"`) {
			t.Errorf("%s is not in %s", field, statement)
		}
	}
	for _, file := range []string{sums, statement} {
		for kind, command := range k.verify {
			if out, err := command(file).CombinedOutput(); err != nil {
				t.Errorf("%s by %s: %v: %s", file, kind, err, out)
			}
		}
		was, err := os.ReadFile(file)
		if err := errors.Join(err, os.WriteFile(file, append(was, '\n'), 0o600)); err != nil {
			t.Fatal(err)
		}
		for kind, command := range k.verify {
			if out, err := command(file).CombinedOutput(); err == nil {
				t.Errorf("%s was changed, and is verified by %s: %s", file, kind, out)
			}
		}
	}
}

func TestSignaturesAreOfTheKeyThatIsGiven(t *testing.T) {
	keys := makeKeys(t)
	dir := t.TempDir()
	sums, statement := filepath.Join(dir, "SHA256SUMS"), filepath.Join(dir, "provenance.json")
	put(t, dir, map[string]string{"SHA256SUMS": strings.Repeat("a", 64) + "  zedkube.tar.gz\n"})
	sign := func(version string) ([]byte, error) {
		c := exec.Command(".ci/sign", sums, statement)
		c.Dir = "../.."
		c.Env = append(append(os.Environ(), "GPG_KEY=", "COSIGN_KEY=", "VERSION="+version, "REVISION="+revision), keys.settings...)
		return c.CombinedOutput()
	}
	out, err := sign("v1.2.3-dirty")
	if made, _ := filepath.Glob(sums + ".*"); err == nil || len(made) > 0 {
		t.Errorf("a tree with changes was signed, %q: %v: %s", made, err, out)
	}
	if out, err := sign("v1.2.3"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	keys.check(t, sums, statement)
}
