package localserver

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
)

func TestCommandsAskOverTheSocket(t *testing.T) {
	c := component(t)
	end := run(t, c)
	client := boundedhttp.NewSocketClient(c.Socket)
	eventually(t, answers(client, "http://zedkube/metrics", "200 numbers"))
	eventually(t, answers(client, "http://zedkube/debug/pprof/heap", "200 profile"))
	file, err := os.Lstat(c.Socket)
	if err != nil || file.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket is %v, %v", file.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Dir(c.Socket) + "/.*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	end()
	if _, err := os.Lstat(c.Socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the end there is still a socket: %v", err)
	}
}

func TestASocketFarDownIsReached(t *testing.T) {
	c := component(t)
	c.Socket = filepath.Join(t.TempDir(), strings.Repeat("d", 100), strings.Repeat("e", 100), "zedkube.sock")
	run(t, c)
	eventually(t, answers(boundedhttp.NewSocketClient(c.Socket), "http://zedkube/metrics", "200 numbers"))
}

func TestASocketThatADeadAgentLeftIsReplaced(t *testing.T) {
	c := component(t)
	if err := os.MkdirAll(filepath.Dir(c.Socket), 0o755); err != nil {
		t.Fatal(err)
	}
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: c.Socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	run(t, c)
	eventually(t, answers(boundedhttp.NewSocketClient(c.Socket), "http://zedkube/metrics", "200 numbers"))
}

func TestWhatAKilledAgentBeganIsRemoved(t *testing.T) {
	c := component(t)
	dir := filepath.Dir(c.Socket)
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, ".socket-123"), 0o700), os.WriteFile(filepath.Join(dir, ".socket-123", "s"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := c.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.stop(t.Context(), onSocket)
	c.ending.Wait()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v is left", err, left)
	}
}

func TestASecondAgentDoesNotTakeTheSocket(t *testing.T) {
	first := component(t)
	run(t, first)
	eventually(t, answers(boundedhttp.NewSocketClient(first.Socket), "http://zedkube/metrics", "200 numbers"))
	second := component(t)
	second.Socket = first.Socket
	second.Routes["/metrics"] = Route{Handler: says("usurper"), Access: Always}
	if err := second.Step(t.Context()); !errors.Is(err, errInUse) {
		t.Errorf("the second says %v", err)
	}
	eventually(t, answers(boundedhttp.NewSocketClient(first.Socket), "http://zedkube/metrics", "200 numbers"))
}

func TestASocketThatSomebodyRemovedComesBack(t *testing.T) {
	c := component(t)
	step := func() {
		t.Helper()
		if err := c.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	step()
	defer func() { c.stop(t.Context(), onSocket); c.ending.Wait() }()
	if err := os.Remove(c.Socket); err != nil {
		t.Fatal(err)
	}
	step()
	eventually(t, answers(boundedhttp.NewSocketClient(c.Socket), "http://zedkube/metrics", "200 numbers"))
}

func TestTheEndLeavesTheSocketOfTheNextAgent(t *testing.T) {
	first, next := component(t), component(t)
	next.Socket = first.Socket
	if err := first.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(first.Socket); err != nil {
		t.Fatal(err)
	}
	run(t, next)
	eventually(t, answers(boundedhttp.NewSocketClient(next.Socket), "http://zedkube/metrics", "200 numbers"))
	first.stop(t.Context(), onSocket)
	first.ending.Wait()
	eventually(t, answers(boundedhttp.NewSocketClient(next.Socket), "http://zedkube/metrics", "200 numbers"))
}

func TestAFileThatIsNoSocketStays(t *testing.T) {
	c := component(t)
	if err := os.MkdirAll(filepath.Dir(c.Socket), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Socket, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Step(t.Context()); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		t.Errorf("got %v", err)
	}
	if content, _ := os.ReadFile(c.Socket); string(content) != "precious" {
		t.Errorf("the file says %q", content)
	}
}
