package agentlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
)

func TestLogLinesCarryTheFieldsOfEVE(t *testing.T) {
	var out bytes.Buffer
	log := New(&out)
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
	New(&out).WithFields(fields).WithError(errors.New("no " + acts)).Warn("one " + acts + "\ntwo é")
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
