package statuscmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

const day = 24 * time.Hour

// certs is what zedkube certs prints on a device where the agent has published that.
func certs(t *testing.T, published string, args ...string) (string, error) {
	t.Helper()
	o := device.Options{Root: t.TempDir()}
	file := o.Paths().PersistentFile(device.Self, "K3sCertificates")
	for _, dir := range []string{filepath.Dir(file), filepath.Join(o.Root, "run")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if published != "" {
		if err := os.WriteFile(file, []byte(published), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	c := NewCertsCommand(&o)
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.Execute()
	return out.String(), err
}

func TestCertsShowsEachCertificateAndWhatIsToBeDone(t *testing.T) {
	now := time.Now()
	content, err := json.Marshal(types.K3sCertificates{
		Leaves: []types.K3sCertificate{
			{Name: "kubelet\x1b[2J", Where: "10.0.0.1:10250", NotAfter: now.Add(-time.Hour), State: types.CertUrgent},
			{Name: "etcd", Where: "/a/etcd.crt", NotAfter: now.Add(50*day + time.Hour), State: types.CertDue},
		},
		Authorities: []types.K3sCertificate{{Name: "server-ca", Where: "/a/server-ca.crt", NotAfter: now.Add(100 * day), State: types.CertUrgent}},
		Unread:      []string{"/a/b.crt: permission denied"}, ClockDoubt: "It was set.",
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := certs(t, string(content))
	for _, want := range []string{"expired", "Urgent", "Due", "/a/server-ca.crt", "not read: /a/b.crt", "The clock", "zedkube certs reset", "Rotating the CA"} {
		want = strings.Replace(want, "The clock", "clock may be wrong. It was set.", 1)
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if err != nil || strings.Contains(text, "\x1b") {
		t.Errorf("%v, %q", err, text)
	}
	text, err = certs(t, string(content), "-o", "jsonpath={.Leaves[1].Name} {.Authorities[0].State}")
	if err != nil || strings.TrimSpace(text) != "etcd Urgent" {
		t.Errorf("%v, %q", err, text)
	}
}

func TestCertsThatAreFineAskForNothing(t *testing.T) {
	content, _ := json.Marshal(types.K3sCertificates{Leaves: []types.K3sCertificate{{Name: "kubelet", NotAfter: time.Now().Add(300 * day), State: types.CertFine}}})
	text, err := certs(t, string(content))
	if err != nil || strings.Contains(text, "estart") || strings.Contains(text, "Rotating") || strings.Contains(text, "clock") {
		t.Errorf("%v, %s", err, text)
	}
}

func TestCertsWithoutAnyEndsWithItsCode(t *testing.T) {
	for published, code := range map[string]int{"": terminal.ExitNotPublished, "{}": terminal.ExitNotPublished, "{": 1} {
		if text, err := certs(t, published); err == nil || terminal.ExitCode(err) != code {
			t.Errorf("%q: %v, %s", published, err, text)
		}
	}
}
