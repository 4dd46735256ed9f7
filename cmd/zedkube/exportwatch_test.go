package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/test/cmdtest"
)

// exporting runs export --watch into a pipe on a device whose report is larger than that.
func exporting(t *testing.T) (cmd *exec.Cmd, pipe *os.File, said *bytes.Buffer, root string) {
	t.Helper()
	root = t.TempDir()
	cmdtest.LayFiles(t, root, map[string]string{
		"run/zedkube.pid": fmt.Sprint(os.Getpid()), "run/zedkube.touch": "",
		"run/zedagent/EdgeNodeInfo/global.json":                `{"DeviceName":"Node_1","DeviceID":"6ba7b810-9dad-41d1-80b4-00c04fd430c8"}`,
		"persist/status/zedkube/ClusterMembership/global.json": `{"State":"never"}`,
		"run/zedkube/ClusterNodeStatus/global.json":            `{"Status":1}`,
		"run/zedkube/KubeReportHealth/global.json":             `{"Reports":true}`,
		"run/zedkube/KubeClusterInfo/global.json":              `{"Nodes":[{"Name":"` + strings.Repeat("n", 64<<10) + `"}]}`,
	})
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(write.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("zedkube") // testscript's main puts it there
	if err != nil {
		program = os.Args[0]
	}
	cmd, said = exec.Command(program, "--root", root, "export", "--watch", "cluster-node", "cluster"), &bytes.Buffer{}
	cmd.Args[0] = "zedkube"
	cmd.Stdout, cmd.Stderr = write, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), read.Close() })
	return cmd, read, said, root
}

func TestAnExportEndsAtOnceThoughNobodyReadsItsPipe(t *testing.T) {
	for _, end := range []struct {
		name string
		do   func(*exec.Cmd, *os.File) error
		code int
	}{
		{"SIGTERM", func(c *exec.Cmd, _ *os.File) error { return c.Process.Signal(syscall.SIGTERM) }, 1},
		{"SIGINT", func(c *exec.Cmd, _ *os.File) error { return c.Process.Signal(syscall.SIGINT) }, 1},
		{"the reader goes", func(_ *exec.Cmd, pipe *os.File) error { return pipe.Close() }, 141},
	} {
		cmd, pipe, said, _ := exporting(t)
		if wrong := eventually(func() string {
			if n, err := unix.IoctlGetInt(int(pipe.Fd()), unix.TIOCINQ); err != nil || n < 4096 {
				return fmt.Sprintf("the pipe has %d bytes, %v", n, err)
			}
			return ""
		}); wrong != nil {
			t.Fatalf("%v; said %s", wrong, said)
		}
		if err := end.do(cmd, pipe); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != end.code || said.Len() > 0 {
			t.Errorf("%s: %v, said %s", end.name, err, said)
		}
	}
}

func TestAnExportFeedsAPipeAcrossRestartsOfTheAgent(t *testing.T) {
	cmd, pipe, said, root := exporting(t)
	lines := bufio.NewReader(pipe)
	next := func(want string) {
		t.Helper()
		if err := pipe.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, want) {
			t.Fatalf("%.200s, %v; want %s; said %s", line, err, want, said)
		}
	}
	next(`"name":"cluster-node"`)
	next(`"name":"cluster"`)
	lay := func(status string) {
		cmdtest.LayFiles(t, root, map[string]string{"run/zedkube/ClusterNodeStatus/global.json": status})
	}
	lay(`{"Status":`)
	lay(`{"Status":3}`)
	next("Z_INFO_CLUSTER_NODE_STATUS_DOWN")
	if err := os.RemoveAll(filepath.Join(root, "run/zedkube/ClusterNodeStatus")); err != nil { // as a new agent may
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(root, "run/zedkube.pid")); err != nil {
		t.Fatal(err)
	}
	cmdtest.LayFiles(t, root, map[string]string{"run/zedkube.pid": fmt.Sprint(os.Getpid())})
	lay(`{"Status":2}`)
	next("Z_INFO_CLUSTER_NODE_STATUS_NOTREADY")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v, said %s", err, said)
	}
}
