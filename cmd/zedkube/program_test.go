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

	"github.com/zedkube/zedkube/pkg/cli"
	"github.com/zedkube/zedkube/pkg/cli/device"
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

func TestAnHourIsAnHourInTheProgram(t *testing.T) {
	if flag := cli.New("devel", nil).PersistentFlags().Lookup("hour"); flag != nil {
		t.Errorf("the program has a flag that only tests may have: %+v", flag)
	}
	if got := (device.Options{}).Paths().Hour; got != time.Hour {
		t.Errorf("an hour is %s", got)
	}
}
