package main

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/types"
)

// asksFor are the operations of the audit that are requests over the socket.
func asksFor(t *testing.T, p device.Paths) (all []types.Operation) {
	t.Helper()
	found, _, err := audit.Read(p.Audit)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range found {
		if strings.HasPrefix(o.Target, "topic/") {
			all = append(all, o)
		}
	}
	return all
}

func TestARequestGoesThroughTheAgentWhereOneRuns(t *testing.T) {
	_, p := runLocal(t)
	request := types.NodeDrainRequest{RequestedAt: time.Unix(1_000_000, 0).UTC(), RequestedBy: types.DrainRequesterNone, Context: "new disk"}
	topic, err := device.OperatorTopic[types.NodeDrainRequest](p)
	if err != nil {
		t.Fatal(err)
	}
	// What the agent writes is read by the next command.
	if err := topic.Publish(types.Global, request); err != nil {
		t.Fatal(err)
	}
	if topic, err = device.OperatorTopic[types.NodeDrainRequest](p); err != nil {
		t.Fatal(err)
	}
	if got, ok := topic.Get(types.Global); !ok || got != request {
		t.Errorf("%+v, %v", got, ok)
	}
	if err := topic.Unpublish(types.Global); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(p.TopicFile(device.CommandAgent, "NodeDrainRequest")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("taken back: %v", err)
	}
	asked := asksFor(t, p)
	if len(asked) != 2 || asked[0].Op != "ask" || asked[1].Op != "ask no more" {
		t.Fatalf("%+v", asked)
	}
	for _, o := range asked {
		if o.Target != "topic/NodeDrainRequest/global" || o.By != "OPERATOR" || !strings.HasPrefix(o.From, "uid 0") && os.Getuid() == 0 || o.Outcome != types.OperationOK {
			t.Errorf("%+v", o)
		}
	}
}

func TestWithoutAnAgentACommandLeavesTheRequestItself(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, socket string){
		"none has run":   func(*testing.T, string) {},
		"one was killed": leftSocket,
	} {
		p := device.Options{Root: t.TempDir()}.Paths()
		before(t, p.Socket)
		topic, err := device.OperatorTopic[types.ClusterLeaveRequest](p)
		if err != nil {
			t.Fatal(err)
		}
		if err := topic.Publish(types.Global, types.ClusterLeaveRequest{Context: "it moves"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if content, err := os.ReadFile(p.TopicFile(device.CommandAgent, "ClusterLeaveRequest")); err != nil || !strings.Contains(string(content), "it moves") {
			t.Errorf("%s: %q, %v", name, content, err)
		}
		if asked := asksFor(t, p); len(asked) != 1 || !strings.HasPrefix(asked[0].From, "uid ") || asked[0].Outcome != types.OperationOK {
			t.Errorf("%s: the audit has %+v", name, asked)
		}
	}
}

func leftSocket(t *testing.T, socket string) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

func TestAnAgentThatRefusesIsBelieved(t *testing.T) {
	for says, code := range map[string]int{"another version": http.StatusMethodNotAllowed, "has another version": http.StatusNotFound, "only root": http.StatusForbidden, "disk is full": http.StatusInternalServerError} {
		p := device.Options{Root: t.TempDir()}.Paths()
		if err := os.MkdirAll(filepath.Dir(p.Socket), 0o755); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", p.Socket)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, says, code) })}
		go func() { _ = server.Serve(l) }()
		topic, err := device.OperatorTopic[types.NodeDrainRequest](p)
		if err != nil {
			t.Fatal(err)
		}
		if err := topic.Publish(types.Global, types.NodeDrainRequest{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%d: %v", code, err)
		}
		if _, err := os.Lstat(p.TopicFile(device.CommandAgent, "NodeDrainRequest")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%d: it was written all the same: %v", code, err)
		}
		server.Close()
	}
}
