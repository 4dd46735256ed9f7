package appscmd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

func TestVMIDetachWithoutAnAgentRequestsNothing(t *testing.T) {
	t.Parallel()
	s := &detachStage{T: t, root: t.TempDir()}
	began := time.Now()
	if code, err := s.run(t.Context(), "n3", detachDomain); code != terminal.ExitNotPublished || len(s.lies()) != 0 {
		t.Errorf("exit code %d: %v; left: %v", code, err, s.lies())
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("that took %s", took)
	}
	if strings.Contains(s.logFile(), "requested:") {
		t.Errorf("it says that it requested something: %s", s.logFile())
	}
	if !strings.Contains(s.logFile(), "ended: the agent on this device does not answer") {
		t.Errorf("logged %s", s.logFile())
	}
}

func TestVMIDetachRefusesWordsThatNameNothing(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{},
		{"n3"},
		{"n3", detachDomain, "more"},
		{"", detachDomain},
		{"N3", detachDomain},
		{"../n3", detachDomain},
		{"n3\n", detachDomain},
		{"-", detachDomain},
		{strings.Repeat("n", 254), detachDomain},
		{"n3", ""},
		{"n3", "camera"},
		{"n3", detachApp + "/.."},
		{"n3", "../" + detachApp},
		{"n3", "." + detachApp},
		{"n3", "{" + detachApp + "}"},
		{"n3", "00000000-0000-0000-0000-000000000000.1.1"},
		{detachDomain, "n3"},
		{"--timeout", "-1s", "n3", detachDomain},
		{"--timeout", "soon", "n3", detachDomain},
	} {
		s := &detachStage{T: t, root: t.TempDir()}
		if code, err := s.run(t.Context(), args...); code != terminal.ExitUsage {
			t.Errorf("%q: exit code %d: %v", args, code, err)
		}
		if files, _ := os.ReadDir(s.root); len(files) != 0 {
			t.Errorf("%q left %v", args, files)
		}
	}
}

func TestVMIDetachGoesOnWhereItsLogCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := detachWith(t, types.AppRepairStatus{Phase: types.RepairRefused, Reason: "no"})
	if err := os.MkdirAll(filepath.Join(s.root, "persist"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.root, "persist/kubelog"), nil, 0o600); err != nil { // in the folder's place
		t.Fatal(err)
	}
	if code, err := s.run(t.Context(), "n3", detachDomain); code != terminal.ExitDetachRefused {
		t.Errorf("exit code %d: %v", code, err)
	}
	if !strings.Contains(s.err.String(), "The log file could not be written") {
		t.Errorf("it does not say so: %q", s.err.String())
	}
}

// closed is an output that nobody reads any more.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestVMIDetachThatCannotTellAsksForNothing(t *testing.T) {
	t.Parallel()
	s := detachWith(t)
	c := device.NewRoot(&device.Options{}, NewVMIDetachCommand)
	c.SetArgs([]string{"--root", s.root, "vmiDetach", "n3", detachDomain})
	c.SetOut(closed{})
	if err := c.ExecuteContext(t.Context()); err == nil || len(s.lies()) != 0 {
		t.Errorf("%v, left: %v", err, s.lies())
	}
}

func TestVMIDetachTakesItsRequestBackWhenItsReaderGoes(t *testing.T) {
	t.Parallel()
	s := detachWith(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	c := device.NewRoot(&device.Options{}, NewVMIDetachCommand)
	c.SetArgs([]string{"--root", s.root, "vmiDetach", "n3", detachDomain})
	c.SetOut(write)
	ended := make(chan error, 1)
	go func() { ended <- c.ExecuteContext(t.Context()) }()
	<-s.heard
	read.Close() // and nothing is written from now on
	if err := <-ended; terminal.ExitCode(err) != terminal.ExitUsage || len(s.lies()) != 0 {
		t.Errorf("%v, left: %v", err, s.lies())
	}
}
