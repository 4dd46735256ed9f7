package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sirupsen/logrus"
)

// TestProgramAlone plays testdata/alone/*.txtar: the program without a cluster.
func TestProgramAlone(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/alone",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"await": await},
	})
}

// await FILE: waits until the file is there.
func await(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	ts.Check(eventually(func() string {
		if _, err := os.Stat(path); err != nil {
			return err.Error()
		}
		return ""
	}))
}

func TestTheHypervisorDecidesWhetherThereIsKubernetes(t *testing.T) {
	for content, want := range map[string]bool{
		"k": true, "k\n": true, "kubevirt": true, "kubevirt\n": true,
		"kvm": false, "kvm\n": false, "xen": false, "acrn\n": false, "": false,
	} {
		path := filepath.Join(t.TempDir(), "eve-hv-type")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := runsKubernetes(path); got != want {
			t.Errorf("%q: got %v, want %v", content, got, want)
		}
	}
	if !runsKubernetes(filepath.Join(t.TempDir(), "eve-hv-type")) {
		t.Error("a device that does not say its hypervisor gets no agent")
	}
}

func TestLogLinesCarryTheFieldsOfEVE(t *testing.T) {
	var out bytes.Buffer
	log := newLogger(&out)
	log.WithField("app", "cam").WithError(errors.New("no")).Warn("one line")
	log.WithField("component", "drain").Info("and another")
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	if len(lines) != 2 {
		t.Fatalf("%d lines: %s", len(lines), out.String())
	}
	var line map[string]any
	if err := json.Unmarshal(lines[0], &line); err != nil {
		t.Fatal(err)
	}
	want := []string{"app", "err", "level", "msg", "pid", "source", "time"}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(line))); d != "" {
		t.Error("fields: want -, got +\n" + d)
	}
	if line["level"] != "warning" || line["msg"] != "one line" || line["source"] != "zedkube" || line["pid"] != float64(os.Getpid()) {
		t.Errorf("got %v", line)
	}
	at, err := time.Parse(time.RFC3339Nano, line["time"].(string))
	if err != nil || time.Since(at) > time.Minute {
		t.Errorf("time %v: %v", line["time"], err)
	}
}

// What other programs wrote is in errors and names, and newlogd writes the text of
// a line as JSON, which leaves most of this raw.
func TestATerminalActsUponNothingInALogLine(t *testing.T) {
	const acts, text = "\u009b\x7f\u202e\x1b", `\u009b\u007f\u202e\u001b`
	var out bytes.Buffer
	fields := logrus.Fields{"app": "cam" + acts, "n": 7}
	newLogger(&out).WithFields(fields).WithError(errors.New("no " + acts)).Warn("one " + acts + "\ntwo é")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]any{"msg": "one " + text + "\ntwo é", "err": "no " + text, "app": "cam" + text, "n": 7.0} {
		if line[field] != want {
			t.Errorf("%s: %q, want %q", field, line[field], want)
		}
	}
}

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

func TestAnHourIsAnHourInTheProgram(t *testing.T) {
	if flag := newCommand("devel", nil).PersistentFlags().Lookup("hour"); flag != nil {
		t.Errorf("the program has a flag that only tests may have: %+v", flag)
	}
	if got := (options{}).paths().hour; got != time.Hour {
		t.Errorf("an hour is %s", got)
	}
}
