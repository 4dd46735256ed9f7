//go:build linux

package applogs

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheJudgeFindsWhatIsWrong(t *testing.T) {
	at := func(second int) string {
		return time.Date(2026, 5, 3, 6, 0, second, 0, time.UTC).Format(time.RFC3339Nano)
	}
	record := func(stamp, msg string) string {
		return fmt.Sprintf(`{"appuuid":"a","containername":"app","eventtime":%q,"level":"info","msg":%q,"time":%q}`, stamp, msg, stamp)
	}
	line := func(n int) string { return record(at(n), fmt.Sprintf("%d %s", n, at(n))) }
	run := func(n, second int) string { return record(at(second), fmt.Sprintf("%d %s", n, at(second))) }
	mark := func(from, to int) string {
		return strings.Replace(record(at(to), fmt.Sprintf("zedkube: lines from %s to %s may be missing: they are gone (gap 1 of this container)", at(from), at(to))), `"app"`, `"app.zedkube"`, 1)
	}
	for _, row := range []struct {
		rule  string
		told  []string
		last  int
		wrong string
	}{
		{"all are there", []string{line(1), line(2), line(3)}, 0, ""},
		{"one is missing", []string{line(1), line(3)}, 0, "nothing says so"},
		{"one is missing under a mark", []string{line(1), mark(1, 3), line(3)}, 0, ""},
		{"a mark stands elsewhere", []string{line(1), line(3), mark(3, 4), line(4)}, 0, "nothing says so"},
		{"the first is missing", []string{line(2)}, 0, "nothing says so"},
		{"the last of a run is missing", []string{run(1, 1), run(1, 5)}, 2, "nothing says so"},
		{"two whole runs", []string{run(1, 1), run(2, 2), run(1, 5), run(2, 6)}, 2, ""},
		{"one is told twice", []string{line(1), line(2), line(2)}, 0, "told twice"},
		{"one is told twice about a kill", []string{line(1), line(2), killMark, line(2), line(3)}, 0, ""},
		{"one is told twice about a kill, and again", []string{line(1), line(2), killMark, line(2), line(2)}, 0, "told twice"},
		{"two are in the wrong order", []string{line(1), line(3), line(2)}, 0, "was told after"},
		{"the time is not the event's", []string{strings.Replace(line(1), at(1), at(2), 1)}, 0, "newlogd"},
		{"it is no JSON", []string{`{"appuuid":"a"`}, 0, "EVE's lines"},
		{"a part is left of it", []string{record(at(1), "1")}, 0, "nobody printed"},
	} {
		b, err := newBook(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range row.told {
			fmt.Fprintln(b.pipe, text)
		}
		faults := b.end()
		wrongs := strings.Join(append(b.judge(source{"a", "app"}, 0, row.last).wrongs, faults...), "; ")
		if row.wrong == "" && wrongs != "" || !strings.Contains(wrongs, row.wrong) {
			t.Errorf("%s: found %q", row.rule, wrongs)
		}
	}
}
