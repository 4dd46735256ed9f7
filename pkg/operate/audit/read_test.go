package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// put writes a file of lines and returns its directory.
func put(t testing.TB, content string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "operations-00000001.jsonl"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestLinesThatMakeNoSenseAreCountedAndLeftOut(t *testing.T) {
	good := `{"id":"a","at":"2026-01-01T00:00:00Z","op":"cordon","target":"node/n1"}`
	for name, row := range map[string]struct {
		content string
		lines   []string
		want    Problems
	}{
		"nothing":                    {"", []string{}, Problems{}},
		"empty lines":                {"\n\n" + good + "\n\n", []string{"cordon node/n1 "}, Problems{}},
		"a line without its end":     {good, []string{"cordon node/n1 "}, Problems{}},
		"half a line":                {good + "\n" + good[:30], []string{"cordon node/n1 "}, Problems{Torn: 1}},
		"half a line in the middle":  {good[:30] + "\n" + good + "\n", []string{"cordon node/n1 "}, Problems{Torn: 1}},
		"zeros, as after a crash":    {strings.Repeat("\x00", 4096) + "\n" + good + "\n", []string{"cordon node/n1 "}, Problems{Torn: 1}},
		"no JSON":                    {"hello\n", []string{}, Problems{Torn: 1}},
		"another object":             {`{"kind":"Pod"}` + "\n", []string{}, Problems{Torn: 1}},
		"wrong types":                {`{"id":5,"op":["x"]}` + "\n", []string{}, Problems{Torn: 1}},
		"no operation":               {`{"id":"a"}` + "\n", []string{}, Problems{Torn: 1}},
		"a huge line":                {`{"id":"a","op":"` + strings.Repeat("x", maxLine) + `"}` + "\n" + good, []string{"cordon node/n1 "}, Problems{Torn: 1}},
		"lost lines":                 {`{"at":"2026-01-01T00:00:00Z","lost":7}` + "\n" + good + "\n" + `{"lost":2}` + "\n", []string{"cordon node/n1 "}, Problems{Lost: 9}},
		"an end without a beginning": {`{"id":"b","op":"evict","target":"pod/a","outcome":"ok"}` + "\n", []string{"evict pod/a ok"}, Problems{}},
		"a beginning after its end":  {`{"id":"a","op":"cordon","target":"node/n1","outcome":"ok"}` + "\n" + good + "\n", []string{"cordon node/n1 ok"}, Problems{}},
		"an outcome of a later time": {`{"id":"a","op":"cordon","target":"node/n1","outcome":"postponed","more":{}}` + "\n", []string{"cordon node/n1 postponed"}, Problems{}},
	} {
		all, problems, err := Read(put(t, row.content))
		if err != nil || problems != row.want {
			t.Errorf("%s: %+v, %v", name, problems, err)
		}
		if diff := cmp.Diff(row.lines, lines(all)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestADirectoryThatIsNotThereHoldsNothing(t *testing.T) {
	all, problems, err := Read(filepath.Join(t.TempDir(), "none"))
	if len(all) > 0 || problems != (Problems{}) || err != nil {
		t.Errorf("read %v, %+v, %v", all, problems, err)
	}
}

func TestOtherFilesAreNotRead(t *testing.T) {
	dir := put(t, "")
	for _, name := range []string{"operations-1.jsonl", "operations-00000002.jsonl.bak", "notes", "operations-0000000x.jsonl"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`{"id":"a","op":"x"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if all, _, err := Read(dir); len(all) > 0 || err != nil {
		t.Errorf("read %v, %v", all, err)
	}
}

func TestAHugeFileIsReadInPart(t *testing.T) {
	line := `{"id":"a","op":"cordon"}` + "\n"
	dir := put(t, line+strings.Repeat(" ", maxFile)+line)
	if all, _, err := Read(dir); len(all) != 1 || err != nil {
		t.Errorf("read %v, %v", lines(all), err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"id":"a","at":"2026-01-01T00:00:00Z","op":"cordon","target":"node/n1"}` + "\n" + `{"id":"a","op":"cordon","outcome":"ok","took":5}`)
	f.Add(`{"lost":7}` + "\n\x00\x00")
	f.Add(`{"id":"a","op":"b","times":-1,"took":1e99}`)
	f.Fuzz(func(t *testing.T, content string) {
		all, problems, err := Read(put(t, content))
		if err != nil || problems.Torn < 0 || problems.Lost < 0 {
			t.Fatalf("%+v, %v", problems, err)
		}
		ids := map[string]bool{}
		for _, o := range all {
			if o.ID == "" || o.Op == "" || ids[o.ID] {
				t.Fatalf("%+v", o)
			}
			ids[o.ID] = true
		}
	})
}
