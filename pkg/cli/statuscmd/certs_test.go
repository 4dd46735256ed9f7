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
	"github.com/zedkube/zedkube/pkg/cluster/k3scerts"
	"github.com/zedkube/zedkube/types"
)

const day = 24 * time.Hour

// certs is what zedkube k3s certs prints on a device where the agent has published that.
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
	for _, want := range []string{"expired", "Urgent", "Due", "/a/server-ca.crt", "not read: /a/b.crt", "The clock", "zedkube k3s certs reset", "Rotating the CA"} {
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

func TestCertsResetAsksWhereThereIsSomethingToRenew(t *testing.T) {
	for name, row := range map[string]struct {
		days    time.Duration
		doubt   string
		force   bool
		missing bool
		code    int
		says    string
	}{
		"one expires soon":     {days: 100, says: "It does without: Turn.\nk3s is restarted under the drain lock"},
		"none does":            {days: 200, code: exitNothing, says: "none of 1 certificates expires within 120 days"},
		"and it is forced":     {days: 200, force: true, says: "This file is moved aside: server/tls/client-admin.crt\nIt does without"},
		"the clock is doubted": {days: 10, doubt: "It says\x1b 2031.", code: exitNothing, says: "clock may be wrong"},
		"no agent has run":     {missing: true, code: terminal.ExitNotPublished, says: "read what is known"},
	} {
		p := device.Options{Root: t.TempDir()}.Paths()
		if !row.missing {
			write(t, p.PersistentFile(device.Self, "K3sCertificates"), types.K3sCertificates{Leaves: []types.K3sCertificate{{NotAfter: time.Now().Add(row.days * day)}}, ClockDoubt: row.doubt})
			write(t, filepath.Join(p.In(k3scerts.DefaultDir), "server/tls/client-admin.crt"), "")
			write(t, p.TopicFile(device.Self, "K3sVersionStatus"), types.K3sVersionStatus{Version: "v1.34.2+k3s1"})
			write(t, p.TopicFile(device.Self, "KubeLifecycle"), types.KubeLifecycle{Restart: types.K3sRestartStatus{Preconditions: []types.KubeLifecyclePrecondition{{Name: "Turn", Release: true}, {Name: "Lock"}}}})
		}
		var out bytes.Buffer
		err := resetCerts(&out, p, row.force, time.Now())
		said := out.String()
		if err != nil {
			said += err.Error()
		}
		if !row.force && strings.Contains(said, "moved aside") {
			t.Errorf("%s: %s", name, said)
		}
		if code := terminal.ExitCode(err); code != row.code || !strings.Contains(said, row.says) || strings.Contains(said, "\x1b") {
			t.Errorf("%s: exit code %d, %v: %s", name, code, err, out.String())
		}
		raw, err := os.ReadFile(p.TopicFile(device.CommandAgent, "CertsResetRequest"))
		if (err == nil) != (row.code == 0) || err == nil && !strings.Contains(string(raw), `"Without":["Turn"]`) {
			t.Errorf("%s: the request is %s, %v", name, raw, err)
		}
	}
}

func TestCertsShowsWhatARestartWaitsForAndThatOneDidNotHelp(t *testing.T) {
	o := device.Options{Root: t.TempDir()}
	p := o.Paths()
	write(t, p.PersistentFile(device.Self, "K3sCertificates"), types.K3sCertificates{Leaves: []types.K3sCertificate{{Name: "a", NotAfter: time.Now().Add(50 * day), State: types.CertDue}}})
	write(t, p.TopicFile(device.Self, "KubeLifecycle"), types.KubeLifecycle{Restart: types.K3sRestartStatus{Wish: types.RestartDue, Reason: "It waits.", Failed: "It did not renew\x1b a."}})
	var out bytes.Buffer
	c := NewCertsCommand(&o)
	c.SetArgs(nil)
	c.SetOut(&out)
	if err := c.Execute(); err != nil || !strings.Contains(out.String(), "It waits.") || !strings.Contains(out.String(), "It did not renew") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v: %q", err, out.String())
	}
}

func write(t *testing.T, path string, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
