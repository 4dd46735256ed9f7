package terminal

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/zedkube/zedkube/test/cmdtest"
)

type sampleData struct {
	Name  string
	Big   int64
	Items []sampleItem
}

type sampleItem struct {
	Name string
	At   time.Time `json:",omitzero"`
	N    float64
}

func printed() sampleData {
	return sampleData{Name: "a\x1b[31m\u202eb", Big: 9007199254740993, Items: []sampleItem{{"x", cmdtest.Now, 1.5}, {"y", time.Time{}, 1048576}}}
}

func TestFormsOfOutput(t *testing.T) {
	for asked, want := range map[string]string{
		"jsonpath={.Big}": "9007199254740993\n", "jsonpath=.Items[*].Name": "x y\n", "jsonpath=Items[1].N": "1048576\n", "jsonpath={.Nothing}": "\n",
		`jsonpath={range .Items[*]}{.Name}{"\n"}{end}`: "x\ny\n", "jsonpath={.Name}": "a?[31m?b\n", `jsonpath={.Items[?(@.Name=="y")].N}`: "1048576\n", "jsonpath={.Items[0].At}": "2026-11-20T14:03:12Z\n",
	} {
		o := Outputs{flag: asked}
		if err := o.Parse(); err != nil {
			t.Errorf("%s: %v", asked, err)
			continue
		}
		var b bytes.Buffer
		if err := o.Encode(&b, printed(), "  "); err != nil || b.String() != want {
			t.Errorf("%s: %q, want %q (%v)", asked, b.String(), want, err)
		}
	}
	for _, asked := range []string{"xml", "json=", "json=x", "jsonpath", "jsonpath=", "jsonpath={.a", "jsonpath={[}", "table=x", "=", "yaml=1", "jsonpath={.a[}"} {
		o := Outputs{flag: asked}
		if err := o.Parse(); ExitCode(err) != ExitUsage {
			t.Errorf("%q is taken: %v", asked, err)
		}
	}
	for _, form := range []string{formJSON, formYAML} {
		o := Outputs{form: form}
		var b bytes.Buffer
		if err := o.Encode(&b, printed(), "  "); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(b.String(), "\x1b\u202e") {
			t.Errorf("%s: a terminal obeys it: %q", form, b.String())
		}
		var back sampleData
		if err := yaml.Unmarshal(b.Bytes(), &back); err != nil || back.Big != printed().Big || len(back.Items) != 2 {
			t.Errorf("%s: read back as %+v (%v)", form, back, err)
		}
	}
}

// looks plays looks, one each second, and returns what is printed.
func looks(o Outputs, live bool, each ...View) (string, error) {
	var b bytes.Buffer
	i := -1
	o.Watch = true
	err := o.Show(context.Background(), Terminal{Writer: &b, Fd: -1, Live: live}, time.Second, func(context.Context) View {
		i++
		s := each[i]
		s.Ended = i == len(each)-1
		return s
	})
	return b.String(), err
}

func look(n int, facts ...Row) View {
	return View{Data: map[string]int{"n": n, "age": 7}, Steady: n, Rows: facts, Draw: func(s *Screen) { s.Lines = []string{strings.Repeat("l", n)} }}
}

func TestWatchIntoAPipeTellsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Row{"a", "1"}, Row{"b", "1"}
		got, err := looks(Outputs{}, false, look(1, a, b), look(1, a, b), look(2, Row{"a", "2"}, b), look(3, Row{"a", "2"}), look(3, Row{"a", "2"}, b))
		want := "2000-01-01 00:00:00Z a 1\n2000-01-01 00:00:00Z b 1\n2000-01-01 00:00:02Z a 2\n2000-01-01 00:00:03Z b is gone\n2000-01-01 00:00:04Z b 1\n"
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v, want -, got +:\n%s", err, diff)
		}
		none := View{Data: 0, Err: errors.New("nobody\x1b answers")}
		got, _ = looks(Outputs{}, false, none, none, look(1, a), none)
		want = "2000-01-01 00:00:04Z nobody? answers\n2000-01-01 00:00:06Z a 1\n2000-01-01 00:00:07Z a is gone\n2000-01-01 00:00:07Z nobody? answers\n"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("where there is nothing, want -, got +:\n%s", diff)
		}
		if got, _ = looks(Outputs{}, true, none); !strings.Contains(got, "\x1b[Hnobody? answers\x1b[K\n") {
			t.Errorf("the screen of nothing was %q", got)
		}
		got, err = looks(Outputs{form: formJSON}, false, look(1), look(1), look(2))
		if diff := cmp.Diff("{\"age\":7,\"n\":1}\n{\"age\":7,\"n\":2}\n", got); diff != "" || err != nil {
			t.Errorf("%v, want -, got +:\n%s", err, diff)
		}
		got, err = looks(Outputs{form: formYAML}, false, look(1), look(2))
		if diff := cmp.Diff("---\nage: 7\n\"n\": 1\n---\nage: 7\n\"n\": 2\n", got); diff != "" || err != nil {
			t.Errorf("%v, want -, got +:\n%s", err, diff)
		}
		got, _ = looks(Outputs{}, true, look(1), look(2))
		if strings.Count(got, "\x1b[H") != 2 || !strings.HasSuffix(got, "\x1b[?1049l"+"ll\n") {
			t.Errorf("the screen was %q", got)
		}
	})
}

// broken fails after some bytes, as a pipe whose reader has gone.
type broken struct{ left int }

func (b *broken) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("broken pipe")
	}
	return len(p), nil
}

func TestAReaderThatGoesEndsTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Outputs{Watch: true, form: formJSON}
		n := 0
		err := o.Show(t.Context(), Terminal{Writer: &broken{30}, Fd: -1}, time.Second, func(context.Context) View {
			n++
			return look(n)
		})
		if err == nil || n > 3 {
			t.Errorf("ended with %v after %d looks", err, n)
		}
	})
}

func TestTablesFitTheirWidth(t *testing.T) {
	long := strings.Repeat("word ", 30)
	tab := Table{
		Columns: []Column{{Title: "NAME"}, {Title: "N", Keep: 2, Right: true}, {Title: "LESS", Keep: 1}, {Title: "WHY", Keep: 3}},
		Rows:    [][]Cell{{{Text: "a"}, {Text: "5"}, {Text: "x"}, {Text: long}}, {{Text: strings.Repeat("世", 20)}, {}, {}, {}}, {{Text: "short row"}}},
	}
	for width := 1; width < 250; width++ {
		for _, line := range Draw(width, false, tab.Draw) {
			if width >= 20 && Cells(line) >= width {
				t.Fatalf("width %d: a line of %d columns: %q", width, Cells(line), line)
			}
		}
	}
	want := []string{"NAME       N  LESS  WHY", "a          5  x     because", "short row"}
	tab.Rows = [][]Cell{{{Text: "a"}, {Text: "5"}, {Text: "x"}, {Text: "because"}}, {{Text: "short row"}}}
	if diff := cmp.Diff(want, Draw(80, false, tab.Draw)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if got := Draw(80, true, tab.Draw)[0]; !strings.HasPrefix(got, "\x1b[1mNAME\x1b[0m      ") {
		t.Errorf("with colour: %q", got)
	}
}

func TestShortAges(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 5 * time.Second: "5s", 99 * time.Second: "99s", 100 * time.Second: "1m", 99 * time.Minute: "99m", 100 * time.Minute: "1h",
		47 * time.Hour: "47h", 48 * time.Hour: "2d", 999 * 24 * time.Hour: "999d", 1000 * 24 * time.Hour: "2y", 1<<63 - 1: "292y",
	} {
		if got := short(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	if got := ShortAge(time.Time{}, cmdtest.Now); got != Unknown {
		t.Errorf("an unknown time: %q", got)
	}
}

// FuzzOutput: whatever stands after -o is taken or refused, and what is taken
// prints.
func FuzzOutput(f *testing.F) {
	for _, s := range []string{"json", "jsonpath={.Items[*].Name}", "jsonpath={range .Items[*]}{.N}{end}", "jsonpath={.Items[?(@.N>1)]}", "jsonpath={..}", "jsonpath={.Items[::0]}", "jsonpath={.Items[-1:]}", "jsonpath={end}", `jsonpath={"\q"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, asked string) {
		o := Outputs{flag: asked}
		if err := o.Parse(); err != nil {
			if ExitCode(err) != ExitUsage {
				t.Errorf("%q: %v", asked, err)
			}
			return
		}
		var b bytes.Buffer
		_ = o.Encode(&b, printed(), "")
		if strings.ContainsAny(b.String(), "\x1b\u202e") {
			t.Errorf("%q prints %q", asked, b.String())
		}
	})
}

func TestYAMLOfNamesWithControlCharactersIsWritten(t *testing.T) {
	name := "a\x7fb\u009bc\u202ed\x1be\U000e0001f\u00e9 \"g\""
	raw, err := marshalYAML(map[string]any{"name": name, "list": []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	var back struct{ Name string }
	if err := yaml.Unmarshal(raw, &back); err != nil || back.Name != name {
		t.Errorf("%q reads as %q, %v", raw, back.Name, err)
	}
}

func TestNamesAreShortenedInTheMiddle(t *testing.T) {
	for _, c := range []struct {
		name  string
		width int
		gap   string
		want  string
	}{
		{"camera-line-3-9f27b", 11, "…", "camer…9f27b"},
		{"camera-line-3-9f27b", 10, "~", "camer~f27b"},
		{"camera", 1, "…", "…"},
		{"工場の検査カメラ", 9, "…", "工場…メラ"},
	} {
		if got := shorten(c.name, c.width, c.gap); got != c.want {
			t.Errorf("%s in %d: got %q, want %q", c.name, c.width, got, c.want)
		}
	}
}
