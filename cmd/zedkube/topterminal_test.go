package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

// busyDevice is a device whose agent says what one pod has used for 40 seconds.
func busyDevice(t *testing.T) (root string) {
	t.Helper()
	pod := types.PodMetrics{Namespace: "eve-kube-app", Name: "camera-inspection-line-3-9f27b", UID: "a"}
	for i := range uint64(8) {
		cpu, memory := 100_000_000*(i+1), (200+10*i)<<20
		pod.Samples = append(pod.Samples, types.PodSample{At: cmdtest.Ago(time.Duration(2+5*(7-i)) * time.Second), CPU: &cpu, MemoryWorking: &memory})
	}
	said, err := json.Marshal(types.KubeNodeMetrics{Node: "node-2", At: time.Now(), Every: 5 * time.Second, Pods: []types.PodMetrics{pod}})
	if err != nil {
		t.Fatal(err)
	}
	root = t.TempDir()
	cmdtest.LayFiles(t, root, map[string]string{"run/zedkube.pid": fmt.Sprint(os.Getpid()), "run/zedkube.touch": "", "run/zedkube/KubeNodeMetrics/global.json": string(said)})
	return root
}

func TestTopOnATerminalTakesKeysAndGivesItBack(t *testing.T) {
	for end, code := range map[string]int{"q": 0, "\x03": 1} {
		root := busyDevice(t)
		p := cmdtest.NewTerminal(t, 100, 24)
		before, err := unix.IoctlGetTermios(int(p.Other.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		program, err := exec.LookPath("zedkube") // testscript's main puts it there
		if err != nil {
			program = os.Args[0]
		}
		cmd := exec.Command(program, "--root", root, "top", "pods")
		cmd.Args[0] = "zedkube"
		cmd.Env = append(os.Environ(), "TERM=xterm", "LC_ALL=C.UTF-8", "NO_COLOR=1")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Other, p.Other, p.Other
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // so that it gets Ctrl-C, and news of the size
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		at := p.Sees("\x1b[?1049h", 0)
		at = p.Sees("▂▃▄▅▅▆▇█", at)
		p.Types("n")
		at = p.Sees("by name", at)
		p.Resize(50, 24)
		at = p.Sees("camera-inspe…line-3-9f27b   800m   270Mi", at)
		if looks, _ := filepath.Glob(filepath.Join(root, "run/zedkube-cli/MetricsLook/*.json")); len(looks) != 1 {
			t.Errorf("%v lie there for the agent", looks)
		}
		p.Types(end)
		p.Sees("\x1b[?1049l", at)
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != code {
			t.Errorf("%q: %v: %s", end, err, p.Text()[at:])
		}
		after, err := unix.IoctlGetTermios(int(p.Other.Fd()), unix.TCGETS)
		if err != nil || *after != *before {
			t.Errorf("%q: the terminal is not as it was: %v", end, err)
		}
		if looks, _ := filepath.Glob(filepath.Join(root, "run/zedkube-cli/MetricsLook/*.json")); len(looks) != 0 {
			t.Errorf("%q: left behind: %v", end, looks)
		}
	}
}

func TestEveryWatchOnATerminalKnowsQ(t *testing.T) {
	for _, words := range [][]string{{"status", "--watch"}, {"apps", "--watch"}, {"audit", "--watch"}} {
		p := cmdtest.NewTerminal(t, 80, 24)
		program, err := exec.LookPath("zedkube")
		if err != nil {
			program = os.Args[0]
		}
		cmd := exec.Command(program, append([]string{"--root", busyDevice(t)}, words...)...)
		cmd.Args[0] = "zedkube"
		cmd.Env = append(os.Environ(), "TERM=xterm")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Other, p.Other, p.Other
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		at := p.Sees("\x1b[?1049h", 0)
		p.Types("q")
		p.Sees("\x1b[?1049l", at)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v: %s", words, err, p.Text()[at:])
		}
	}
}
