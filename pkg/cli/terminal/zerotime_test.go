package terminal

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestNoFormOfDataHasATimeInTheYear1(t *testing.T) {
	type row struct {
		First, Second time.Time
		Name          string
		Last          time.Time
	}
	at := time.Date(2026, 5, 3, 8, 0, 0, 0, time.UTC)
	odd := `","Last":"0001-01-01T00:00:00Z","` // that somebody gave to something
	for name, c := range map[string]struct {
		data any
		want string
	}{
		"all of them":    {struct{ A, B time.Time }{}, `{}`},
		"those in rows":  {[]row{{Name: "a", Second: at}, {Name: odd}}, ""},
		"the only value": {map[string]any{"row": row{Last: at}}, `{"row":{"Name":"","Last":"2026-05-03T08:00:00Z"}}`},
		"the last":       {map[string]any{"a": 1, "b": time.Time{}}, `{"a":1}`},
		"html stays":     {map[string]any{"a": "<&>"}, `{"a":"<&>"}`},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := marshal(c.data)
			if err != nil || c.want != "" && string(raw) != c.want {
				t.Errorf("%s, %v; want %s", raw, err, c.want)
			}
			if name != "those in rows" {
				return
			}
			var back []row
			if err := json.Unmarshal(raw, &back); err != nil || len(back) != 2 || back[0].Second != at || back[1].Name != odd {
				t.Errorf("%s became %+v, %v", raw, back, err)
			}
			if n := strings.Count(string(raw), "0001-01-01"); n != 1 { // that within the name
				t.Errorf("%d times in %s", n, raw)
			}
		})
	}
	for _, form := range []string{"json", "yaml", "jsonpath={[*]}"} {
		o := Outputs{flag: form}
		if err := o.Parse(); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := o.Encode(&out, []row{{Name: "a"}}, "  "); err != nil || strings.Contains(out.String(), "0001") || !strings.Contains(out.String(), "Name") {
			t.Errorf("-o %s: %q, %v", form, out.String(), err)
		}
	}
}
