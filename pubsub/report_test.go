package pubsub

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
)

// reports are the errors that were logged, each with topic, key and text.
func reports(s *side) (all []string) {
	for _, e := range s.logs.AllEntries() {
		if e.Level <= logrus.ErrorLevel {
			all = append(all, fmt.Sprintf("%v %v: %v", e.Data["topic"], e.Data["key"], e.Data[logrus.ErrorKey]))
		}
	}
	return all
}

// bad are values that cannot be used, with what a report says of them.
var bad = []struct{ value, says string }{
	{`{"Name":"n","Count":"seven"}`, "at byte 27: json: cannot unmarshal string into Go struct field Sample.Count of type int64"},
	{`{"Name":"n",,}`, "at byte 13: invalid character ','"},
	{`{"Name":"n`, "at byte 10: unexpected end of JSON input"},
	{`{"Name":"n"} {}`, "at byte 14: invalid character '{' after top-level value"},
	{`{"Count":18446744073709552000}`, "at byte 29: json: cannot unmarshal number 18446744073709552000"},
	{`{"pubsub-file-Items":"\"/x\"",,}`, "at byte 31: invalid character ','"},
	{`{"pubsub-file-Items":"\"/x\"`, "at byte 28: unexpected EOF"},
	{`{"pubsub-file-Items":"\"/x\""}{`, "at byte 31: data after the end"},
	{`{"Count":7.5}`, "at byte 12: json: cannot unmarshal number 7.5"},
	{`{"Count":7e300}`, "at byte 14: json: cannot unmarshal number 7e300"},
}

func TestAReportOfABadMessageNamesTopicKeyAndOffset(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	srv := rawListen(t, root)
	sub, s := subscriber(t, root)
	c := srv.accept("hello Sample", update("key 1", sorted(1)), "complete Sample")
	for i, b := range bad {
		c.say(update("key 1", b.value))
		c.say(update("mark", sorted(i)))
		eventually(t, "the mark after it", has(sub, "mark", int64(i)))
		all := reports(s)
		if len(all) != i+1 || !strings.HasPrefix(all[i], "agent/Sample key 1: "+b.says) {
			t.Errorf("%s: reports are %q, want the last to say %q", b.value, all, b.says)
		}
	}
	if !has(sub, "key 1", 1)() {
		t.Error("the last good value is gone")
	}
}

func TestAReportOfABadFileNamesTopicKeyAndOffset(t *testing.T) {
	t.Parallel()
	for _, b := range bad {
		if strings.Contains(b.value, "pubsub-file-") {
			continue // an unknown name in a file
		}
		root := t.TempDir()
		writeText(t, filepath.Join(runDir(root), "key 1.json"), b.value)
		_, reader := subscriber(t, root)
		_, writer := publisher(t, root)
		for who, s := range map[string]*side{"subscription": reader, "publication": writer} {
			if all := reports(s); len(all) != 1 || !strings.HasPrefix(all[0], "agent/Sample key 1: "+b.says) {
				t.Errorf("%s: %s: reports are %q, want %q", who, b.value, all, b.says)
			}
		}
	}
}

// EVE's publishers round integers above 2^53 on their way through the socket.
func TestARoundedIntegerIsTakenAsItArrives(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeText(t, filepath.Join(runDir(root), "k.json"), `{"Name":"n","Count":9007199254740993,"List":[]}`)
	srv := rawListen(t, root)
	sub, s := subscriber(t, root)
	eventually(t, "the file's exact integer", has(sub, "k", 9007199254740993))
	srv.accept("hello Sample", update("k", `{"Count":9007199254740992,"List":null,"Name":"n","Parts":null,"pubsub-large-Items":null}`), "complete Sample")
	eventually(t, "the socket's rounded one", has(sub, "k", 9007199254740992))
	if n := s.complaints(); n != 0 {
		t.Errorf("%d errors: %v", n, reports(s))
	}
}

// EVE's subscribers take every value through a generic map, so they know no
// difference between 7, 7.0 and 7e0; and null leaves a struct as it was made.
func TestWhatEVETakesIsTaken(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		value string
		want  Sample
	}{
		{`{"Name":"n","Count":7.0}`, Sample{Name: "n", Count: 7}},
		{`{"Name":"n","Count":7e0}`, Sample{Name: "n", Count: 7}},
		{`{"Name":"7.0","Count":-0.7E1}`, Sample{Name: "7.0", Count: -7}},
		{`{"Name":null,"Count":null}`, Sample{}},
		{`null`, Sample{}},
		{`{}`, Sample{}},
	} {
		root := t.TempDir()
		writeText(t, filepath.Join(runDir(root), "file.json"), tc.value)
		srv := rawListen(t, root)
		sub, s := subscriber(t, root)
		eventually(t, tc.value+" from a file", func() bool { v, ok := sub.Get("file"); return ok && reflect.DeepEqual(v, tc.want) })
		srv.accept("hello Sample", update("file", tc.value), update("socket", tc.value), "complete Sample")
		eventually(t, tc.value+" from the socket", func() bool { v, ok := sub.Get("socket"); return ok && reflect.DeepEqual(v, tc.want) })
		if n := s.complaints(); n != 0 {
			t.Errorf("%s: %v", tc.value, reports(s))
		}
	}
}
