package peer

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestTheKernelSaysWhoOpenedTheSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p, err := Of(conn)
	if err != nil || p != Self() || p.PID != os.Getpid() || !p.IsTrusted() {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestOnlyRootAndTheOwnUserAreTrusted(t *testing.T) {
	own := Self().UID
	for uid, want := range map[uint32]bool{0: true, own: true, own + 1: false, 65534: own == 65534} {
		if got := (Peer{UID: uid}).IsTrusted(); got != want {
			t.Errorf("uid %d: %v", uid, got)
		}
	}
	if _, err := Of(&net.TCPConn{}); err == nil {
		t.Error("a connection without credentials has some")
	}
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	if _, err := Of(here); err == nil {
		t.Error("a pipe has credentials")
	}
}

func TestWhoIsToldAsTheKernelAndTheEnvironmentHaveIt(t *testing.T) {
	stat := func(tty string) string { return "42 (a b) c) S 1 42 42 " + tty + " 42 4194304 1" }
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing is known":          {nil, "uid 0"},
		"no login, no terminal":     {map[string]string{"loginuid": "4294967295", "stat": stat("0")}, "uid 0"},
		"a login over ssh":          {map[string]string{"loginuid": "1000", "stat": stat("34817"), "environ": "A=b\x00SSH_CONNECTION=10.0.0.5 5000 10.0.0.9 22\x00SUDO_USER=anna\x00"}, "uid 0, login uid 1000, terminal pts/1, ssh from 10.0.0.5, sudo by anna"},
		"a serial line":             {map[string]string{"loginuid": "0", "stat": stat("1088")}, "uid 0, login uid 0, terminal ttyS0"},
		"the console":               {map[string]string{"stat": stat("1025")}, "uid 0, terminal tty1"},
		"a terminal far out":        {map[string]string{"stat": stat(strconv.Itoa(136<<8 | 1<<20 | 4))}, "uid 0, terminal pts/260"},
		"files that make no sense":  {map[string]string{"loginuid": "me", "stat": ") ) (", "environ": "SSH_CONNECTION\x00SUDO_USER="}, "uid 0"},
		"what would move a cursor":  {map[string]string{"environ": "SUDO_USER=\x1b[2J, uid 7"}, "uid 0, sudo by ?[2J??uid?7"},
		"more than is worth a line": {map[string]string{"environ": "SUDO_USER=" + strings.Repeat("a", 999)}, "uid 0, sudo by " + strings.Repeat("a", maxWord)},
	} {
		proc := t.TempDir()
		dir := filepath.Join(proc, "42")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, content := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := (Peer{PID: 42}).who(proc); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAProcessSaysWhoItIs(t *testing.T) {
	if got, want := Self().Who(), "uid "+strconv.Itoa(os.Geteuid()); !strings.HasPrefix(got, want) {
		t.Errorf("%q", got)
	}
}
