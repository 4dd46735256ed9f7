package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEveryPathIsBelowTheRoot(t *testing.T) {
	below := func(root, kubeconfig string) paths {
		return paths{
			root: root, kubeconfig: kubeconfig, hypervisor: root + "/run/eve-hv-type", pid: root + "/run/zedkube.pid", touch: root + "/run/zedkube.touch",
			hour: time.Hour, bootID: root + "/proc/sys/kernel/random/boot_id",
			forceDrain:     []string{root + "/tmp/force-NodeDrainStatus-global.json", root + "/persist/kube-status/force-NodeDrainStatus-global.json"},
			faultInjection: root + "/tmp/DrainStatus_FaultInjection_Wait",
			goingDown:      []string{root + "/persist/reboot-reason", root + "/persist/boot-reason", root + "/run/systemd/shutdown/scheduled"},
			deviceKey:      root + "/persist/certs/ecdh.key.pem", tpm: root + "/dev/tpmrm0",
			manifest: root + "/persist/vault/manifests/registration.yaml", k3sOverride: root + "/persist/vault/k3s-user-override.yaml",
			installLog: root + "/persist/kubelog/k3s-install.log", topicDirs: []string{root + "/run", root + "/persist/status"},
			console: root + "/run/edgeview/VncParams/vmiVNC.run", proc: root + "/proc", sysfs: root + "/sys",
			logJournal: root + "/run/zedkube.applogs", logCheckpoints: root + "/persist/kube-status/zedkube-applogs.jsonl", logRecord: 4096,
			audit: root + "/persist/zedkube/audit", socket: root + "/run/zedkube/zedkube.sock",
			k3sBinary: root + "/persist/vault/kube/k3s/bin/k3s", k3sPID: root + "/run/k3s.pid",
			consoleOld: root + "/run/zedkube/vmiVNC.run", kubeInit: root + "/run/kube-init",
			pageToken: root + "/run/zedkube/page-token.json", provers: root + "/persist/zedkube/all-prove",
		}
	}
	want := map[string]paths{}
	for _, root := range []string{"", "/srv/n1", "n1"} {
		want[root] = below(root, root+"/run/.kube/k3s/k3s.yaml")
	}
	p := want[""]
	p.pageAddress = "127.0.0.1:12347" // several agents on a machine, each below its root, cannot have it
	want[""] = p
	for root, want := range want {
		if d := cmp.Diff(want, options{root: root}.paths(), cmp.AllowUnexported(paths{})); d != "" {
			t.Errorf("root %q: want -, got +\n%s", root, d)
		}
	}
	if got := (options{root: "/srv/n1", kubeconfig: "/etc/kubeconfig"}).paths().kubeconfig; got != "/etc/kubeconfig" {
		t.Errorf("a given kubeconfig became %s", got)
	}
}

func TestTheBootIsNamedByTheRootAndElseByThisMachine(t *testing.T) {
	here, err := os.ReadFile(bootIDFile)
	if err != nil {
		t.Fatal(err)
	}
	file := options{root: t.TempDir()}.paths().bootID
	if got, err := readBootID(file); err != nil || got == "" || got+"\n" != string(here) {
		t.Errorf("without a file below the root it is %q, %v", got, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]string{"5d1f-own\n": "5d1f-own", "\n": ""} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readBootID(file); got != want || (err != nil) != (want == "") {
			t.Errorf("of %q it is %q, %v", content, got, err)
		}
	}
}

func TestUptimeGoesOn(t *testing.T) {
	if a, b := uptime(), uptime(); a <= 0 || b < a {
		t.Errorf("%s, then %s", a, b)
	}
}
