package console

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

// kernel makes tables of sockets.
func kernel(t *testing.T, tables map[string]string) string {
	proc := t.TempDir()
	must(t, os.Mkdir(filepath.Join(proc, "net"), 0o755))
	for name, text := range tables {
		must(t, os.WriteFile(filepath.Join(proc, "net", name), []byte(text), 0o644))
	}
	return proc
}

func socket(local, remote, state string) string {
	return fmt.Sprintf("   0: %s %s %s 00000000:00000000 00:00000000 00000000     0        0 31337 1 0000000000000000 100 0 0 10 0\n", local, remote, state)
}

func TestWhetherAPortIsInUse(t *testing.T) {
	const any6 = "00000000000000000000000000000000"
	for name, row := range map[string]struct {
		tables map[string]string
		want   use
	}{
		"nobody listens":                     {map[string]string{"tcp": heading, "tcp6": heading}, silent},
		"somebody listens":                   {map[string]string{"tcp": heading + socket("0100007F:1713", "00000000:0000", "0A"), "tcp6": heading}, served},
		"somebody listens on IPv6":           {map[string]string{"tcp": heading, "tcp6": heading + socket(any6+":1713", any6+":0000", "0A")}, served},
		"its one client is connected":        {map[string]string{"tcp": heading + socket("0100007F:1713", "0100007F:B2C4", "01")}, served},
		"a connection of old has not ended":  {map[string]string{"tcp": heading + socket("0100007F:1713", "0100007F:B2C4", "06")}, silent},
		"the far end has that number":        {map[string]string{"tcp": heading + socket("0100007F:B2C4", "0100007F:1713", "01")}, silent},
		"another port is listened on":        {map[string]string{"tcp": heading + socket("0100007F:1714", "00000000:0000", "0A")}, silent},
		"there is no IPv6":                   {map[string]string{"tcp": heading}, silent},
		"there are no tables":                {nil, unknown},
		"a table is too long":                {map[string]string{"tcp": strings.Repeat(socket("0100007F:B2C4", "0100007F:1714", "01"), 40000)}, unknown},
		"a line is too long":                 {map[string]string{"tcp": strings.Repeat("x", 1<<17)}, unknown},
		"it is listened on before that line": {map[string]string{"tcp": socket("0100007F:1713", "00000000:0000", "0A") + strings.Repeat("x", 1<<17)}, served},
	} {
		if got := portUse(kernel(t, row.tables), 5907); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}

func TestTheKernelsOwnTablesAreUnderstood(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	port := uint32(listener.Addr().(*net.TCPAddr).Port)
	if got := portUse(DefaultProc, port); got != served {
		t.Errorf("somebody listens: %d", got)
	}
	must(t, listener.Close())
	if got := portUse(DefaultProc, port); got != silent {
		t.Errorf("nobody listens: %d", got)
	}
	for _, pid := range []int{os.Getpid(), 1 << 30} {
		if edgeviewLives(DefaultProc, pid) {
			t.Errorf("process %d is no edgeview", pid)
		}
	}
}

func TestWhetherAnEdgeviewLives(t *testing.T) {
	proc := kernel(t, nil)
	comm := func(pid, text string) {
		must(t, os.Mkdir(filepath.Join(proc, pid), 0o755), os.WriteFile(filepath.Join(proc, pid, "comm"), []byte(text), 0o644))
	}
	comm("1", "edge-view\n")
	comm("2", "edge-view-init\n")
	must(t, os.MkdirAll(filepath.Join(proc, "3", "comm"), 0o755)) // cannot be read
	for pid, want := range map[int]bool{1: true, 2: false, 3: true, 4: false} {
		if got := edgeviewLives(proc, pid); got != want {
			t.Errorf("process %d: %v", pid, got)
		}
	}
	if !edgeviewLives(filepath.Join(proc, "none"), 4) {
		t.Error("nobody can tell, and it is called dead")
	}
}
