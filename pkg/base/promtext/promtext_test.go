package promtext

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyTheNamedSeriesAreRead(t *testing.T) {
	text := "# HELP up x\n# TYPE up gauge\nup 1\nupper 2\nup{a=\"b\",c=\"d,\\\"}e\\\\\\n\"} 3e+02 1700000000\nup{} 4\nup{a=\"b\",} 5\n" +
		"other{a=\"up\"} 6\nup{a=b} 7\nup x\nup\n" + "up{a=\"" + strings.Repeat("x", lineSize) + "\"} 8\nup 9\n"
	text += strings.Repeat("x", 2*lineSize) + "up 10\nup 11\n" // its last part looks like a line
	var got []Sample
	if err := Each(strings.NewReader(text), 1<<20, []string{"up"}, func(s Sample) { got = append(got, s) }); err != nil {
		t.Fatal(err)
	}
	want := []Sample{
		{"up", map[string]string{}, 1},
		{"up", map[string]string{"a": "b", "c": "d,\"}e\\\n"}, 300},
		{"up", map[string]string{}, 4},
		{"up", map[string]string{"a": "b"}, 5},
		{"up", map[string]string{}, 9},
		{"up", map[string]string{}, 11},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAnIncompleteTextIsAnError(t *testing.T) {
	for name, text := range map[string]io.Reader{
		"nothing at all":         strings.NewReader(""),
		"it ends within a line":  strings.NewReader("up 1\nup"),
		"within a long line":     strings.NewReader("up 1\n" + strings.Repeat("x", 2*lineSize)),
		"at a line, but is long": strings.NewReader(strings.Repeat("up 1\n", 20)),
		"the connection ends":    io.MultiReader(strings.NewReader("up 1\n"), broken{}),
	} {
		if err := Each(text, 99, []string{"up"}, func(Sample) {}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := Each(strings.NewReader(strings.Repeat("up 1\n", 20)), 100, nil, func(Sample) {}); err != nil {
		t.Errorf("the longest text: %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func FuzzEach(f *testing.F) {
	f.Add("up{a=\"b\"} 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		_ = Each(strings.NewReader(text), 1<<16, []string{"up"}, func(s Sample) {
			if s.Name != "up" {
				t.Errorf("%+v", s)
			}
		})
	})
}
