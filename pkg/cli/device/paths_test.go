package device

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEveryPathIsBelowTheRoot(t *testing.T) {
	for _, root := range []string{"", "/srv/n1", "n1"} {
		want := Paths{
			Options: Options{Root: root, Kubeconfig: root + "/run/.kube/k3s/k3s.yaml", Hour: time.Hour, LogRecord: 4096},
			PID:     root + "/run/zedkube.pid", Touch: root + "/run/zedkube.touch", BootID: root + "/proc/sys/kernel/random/boot_id",
			ForceDrain: []string{root + "/tmp/force-NodeDrainStatus-global.json", root + "/persist/kube-status/force-NodeDrainStatus-global.json"},
			Proc:       root + "/proc", Sysfs: root + "/sys", Audit: root + "/persist/zedkube/audit",
			Socket: root + "/run/zedkube/zedkube.sock", PageToken: root + "/run/zedkube/page-token.json",
		}
		got := Options{Root: root}.Paths()
		if d := cmp.Diff(want, got, cmp.AllowUnexported(pageFlag{})); d != "" {
			t.Errorf("root %q: want -, got +\n%s", root, d)
		}
		if file := got.PersistentFile("zedkube", "ClusterPeers"); file != root+"/persist/status/zedkube/ClusterPeers/global.json" {
			t.Errorf("root %q: a persistent topic is in %s", root, file)
		}
		address := map[string]string{"": "127.0.0.1:12347"}[root] // several agents on a machine, each below its root, cannot have it
		if got.PageAddress() != address || got.PageToo() || got.ClusterPort() != 0 {
			t.Errorf("root %q: the page is at %q, %t, %d", root, got.PageAddress(), got.PageToo(), got.ClusterPort())
		}
	}
	if got := (Options{Root: "/srv/n1", Kubeconfig: "/etc/kubeconfig"}).Paths().Kubeconfig; got != "/etc/kubeconfig" {
		t.Errorf("a given kubeconfig became %s", got)
	}
}

func TestTheBootIsNamedByTheRootAndElseByThisMachine(t *testing.T) {
	here, err := os.ReadFile(bootIDFile)
	if err != nil {
		t.Fatal(err)
	}
	file := Options{Root: t.TempDir()}.Paths().BootID
	if got, err := ReadBootID(file); err != nil || got == "" || got+"\n" != string(here) {
		t.Errorf("without a file below the root it is %q, %v", got, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]string{"5d1f-own\n": "5d1f-own", "\n": ""} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadBootID(file); got != want || (err != nil) != (want == "") {
			t.Errorf("of %q it is %q, %v", content, got, err)
		}
	}
}

func TestUptimeGoesOn(t *testing.T) {
	if a, b := Uptime(), Uptime(); a <= 0 || b < a {
		t.Errorf("%s, then %s", a, b)
	}
}
