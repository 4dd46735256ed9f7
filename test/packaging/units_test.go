package packaging

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	openrc  = "../../.package/zedkube.openrc"
	systemd = "../../.package/zedkube.service"
)

// need skips a test for want of a Debian package. With CI=true it may skip only
// where .ci/run could not fetch it, and .ci/optional has to list the test.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("CI") == "true" && os.Getenv("NO_MIRROR") != "true" {
		t.Fatalf("%s is not installed", program)
	}
	t.Skipf("%s is not installed", program)
}

func TestShellcheckFindsNothing(t *testing.T) {
	need(t, "shellcheck")
	for _, args := range [][]string{
		{script},
		{"--shell=sh", "--exclude=SC2034", openrc}, // what it sets is for openrc-run
	} {
		if out, err := exec.Command("shellcheck", args...).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}

func TestSystemdTakesTheUnit(t *testing.T) {
	need(t, "systemd-analyze")
	unit, err := os.ReadFile(systemd)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "zedkube.service")
	installed := strings.ReplaceAll(string(unit), "/usr/bin/zedkube", "/bin/sh") // it wants to see the program
	if err := os.WriteFile(file, []byte(installed), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTheUnitLeavesZedkubeWhatItNeeds(t *testing.T) {
	set := settings(t, systemd)
	for key, want := range map[string]string{
		"ExecStart": "/usr/bin/zedkube run $ZEDKUBE_ARGS", "Restart": "always", "StartLimitIntervalSec": "0", "WantedBy": "multi-user.target",
	} {
		if set[key] != want {
			t.Errorf("%s=%s, want %s", key, set[key], want)
		}
	}
	// Forced drains come through /tmp, the TPM and other processes are looked at, other nodes are asked.
	for _, key := range []string{"User", "DynamicUser", "PrivateUsers", "PrivateTmp", "PrivateDevices", "PrivateNetwork", "IPAddressDeny", "ProtectProc", "ProcSubset", "RootDirectory"} {
		if v, ok := set[key]; ok {
			t.Errorf("%s=%s takes away what zedkube needs", key, v)
		}
	}
}

// settings are the assignments of a file.
func settings(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	set := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), "="); ok && !strings.HasPrefix(key, "#") {
			set[key] = value
		}
	}
	return set
}

// openRC runs words of the shell after the script, as openrc-run would with its
// functions, checkpath and the like, played.
func openRC(t *testing.T, shell []string, env []string, words string) (string, error) {
	t.Helper()
	c := exec.Command(shell[0], append(shell[1:], "-euc", `need() { echo need "$@"; }; use() { echo use "$@"; }; after() { echo after "$@"; }
checkpath() { echo checkpath "$@"; }; . "$0"; `+words, openrc)...)
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	return string(out), err
}

func TestOpenRCKnowsWhatToRun(t *testing.T) {
	for _, shell := range shells() {
		out, err := openRC(t, shell, []string{"zedkube_args=--page=off"}, `depend; echo "$supervisor" "$command" "$command_args" "$pidfile" "$respawn_max"`)
		want := []string{"need localmount", "use net k3s", "after firewall clock", "supervise-daemon /usr/bin/zedkube run --page=off /run/supervise-zedkube.pid 0"}
		if got := strings.Split(strings.TrimSpace(out), "\n"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v: %q", shell[0], err, got)
		}
	}
}

func TestOpenRCBeginsWithoutAnOldTouchFile(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "touch")
	for _, shell := range shells() {
		if err := os.WriteFile(old, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := openRC(t, shell, []string{"zedkube_touch=" + old, "zedkube_log=" + dir + "/log"}, "start_pre")
		if _, gone := os.Stat(old); err != nil || gone == nil || out != "checkpath --file --mode 0640 "+dir+"/log\n" {
			t.Errorf("%s: %v, %v: %q", shell[0], err, gone, out)
		}
	}
}

func TestOpenRCStartsAHungAgentAnew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "touch")
	for _, shell := range shells() {
		healthy := func() bool {
			_, err := openRC(t, shell, []string{"zedkube_touch=" + file}, "healthcheck")
			return err == nil
		}
		if healthy() {
			t.Errorf("%s: healthy without a touch file", shell[0])
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if !healthy() {
			t.Errorf("%s: not healthy with a new touch file", shell[0])
		}
		then := time.Now().Add(-6 * time.Minute)
		if err := os.Chtimes(file, then, then); err != nil {
			t.Fatal(err)
		}
		if healthy() {
			t.Errorf("%s: healthy with a touch file of six minutes", shell[0])
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}
