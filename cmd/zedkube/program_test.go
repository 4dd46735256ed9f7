package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/cli"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/agent"
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

func TestOfAgentsThatStartAtTheSameMomentOneRuns(t *testing.T) {
	log, _ := test.NewNullLogger()
	path := filepath.Join(t.TempDir(), "zedkube.lock")
	for range 50 {
		running := make(chan func(), 4)
		var starting sync.WaitGroup
		for range 4 {
			starting.Go(func() {
				if unlock, err := lockAgent(log, path); err == nil {
					running <- unlock
				} else if !errors.Is(err, pubsub.ErrInUse) {
					t.Error(err)
				}
			})
		}
		starting.Wait()
		if n := len(running); n != 1 {
			t.Fatalf("%d of 4 run", n)
		}
		(<-running)()
	}
}

func TestALockFileThatCannotBeMadeKeepsNoAgentFromRunning(t *testing.T) {
	log, said := test.NewNullLogger()
	unlock, err := lockAgent(log, filepath.Join(t.TempDir(), "full/zedkube.lock"))
	if err != nil || len(said.AllEntries()) != 1 {
		t.Fatalf("%v, and it says %v", err, said.AllEntries())
	}
	unlock()
}

func TestAnHourIsAnHourInTheProgram(t *testing.T) {
	if flag := cli.New("devel", nil).PersistentFlags().Lookup("hour"); flag != nil {
		t.Errorf("the program has a flag that only tests may have: %+v", flag)
	}
	if got := (device.Options{}).Paths().Hour; got != time.Hour {
		t.Errorf("an hour is %s", got)
	}
}

// Where anything in the program calls methods by names that the linker cannot know, it keeps every method of
// everything that is linked: a template did this, and the program became half as large again.
func TestTheLinkerLeavesOutWhatIsNotUsed(t *testing.T) {
	program, err := os.ReadFile(agent.Build(t))
	if err != nil {
		t.Fatal(err)
	}
	has := func(function string) bool { return bytes.Contains(program, []byte("\x00"+function+"\x00")) }
	if !has("main.main") {
		t.Error("its table of functions was not understood")
	}
	if has("k8s.io/client-go/kubernetes/typed/flowcontrol/v1.(*flowSchemas).Watch") {
		t.Error("it has a method that nothing uses: see what imports text/template, or calls reflect's MethodByName")
	}
}
