package device

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEveryPathIsBelowTheRoot(t *testing.T) {
	below := func(root, kubeconfig string) Paths {
		return Paths{
			Root: root, Kubeconfig: kubeconfig, Hypervisor: root + "/run/eve-hv-type", PID: root + "/run/zedkube.pid", Touch: root + "/run/zedkube.touch",
			Hour: time.Hour, BootID: root + "/proc/sys/kernel/random/boot_id",
			ForceDrain:     []string{root + "/tmp/force-NodeDrainStatus-global.json", root + "/persist/kube-status/force-NodeDrainStatus-global.json"},
			FaultInjection: root + "/tmp/DrainStatus_FaultInjection_Wait",
			GoingDown:      []string{root + "/persist/reboot-reason", root + "/persist/boot-reason", root + "/run/systemd/shutdown/scheduled"},
			DeviceKey:      root + "/persist/certs/ecdh.key.pem", TPM: root + "/dev/tpmrm0",
			Manifest: root + "/persist/vault/manifests/registration.yaml", K3sOverride: root + "/persist/vault/k3s-user-override.yaml",
			InstallLog: root + "/persist/kubelog/k3s-install.log", TopicDirs: []string{root + "/run", root + "/persist/status"},
			Console: root + "/run/edgeview/VncParams/vmiVNC.run", Proc: root + "/proc", Sysfs: root + "/sys",
			LogJournal: root + "/run/zedkube.applogs", LogCheckpoints: root + "/persist/kube-status/zedkube-applogs.jsonl", LogRecord: 4096,
			Audit: root + "/persist/zedkube/audit", Socket: root + "/run/zedkube/zedkube.sock",
			K3sBinary: root + "/persist/vault/kube/k3s/bin/k3s", K3sPID: root + "/run/k3s.pid",
			ConsoleOld: root + "/run/zedkube/vmiVNC.run", KubeInit: root + "/run/kube-init",
			PageToken: root + "/run/zedkube/page-token.json", Provers: root + "/persist/zedkube/all-prove",
		}
	}
	want := map[string]Paths{}
	for _, root := range []string{"", "/srv/n1", "n1"} {
		want[root] = below(root, root+"/run/.kube/k3s/k3s.yaml")
	}
	p := want[""]
	p.PageAddress = "127.0.0.1:12347" // several agents on a machine, each below its root, cannot have it
	want[""] = p
	for root, want := range want {
		if d := cmp.Diff(want, Options{Root: root}.Paths(), cmp.AllowUnexported(Paths{})); d != "" {
			t.Errorf("root %q: want -, got +\n%s", root, d)
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
