//go:build linux

package applogs

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestTheJudgeFindsWhatIsWrong(t *testing.T) {
	stamp := func(second int) time.Time { return time.Date(2026, 5, 3, 6, 0, second, 0, time.UTC) }
	at := func(second int) string { return stamp(second).Format(time.RFC3339Nano) }
	disk := func(numbers ...int) string { return "disk " + strings.Trim(fmt.Sprint(numbers), "[]") }
	record := func(stamp, msg string) string {
		return fmt.Sprintf(`{"appuuid":"a","containername":"app","eventtime":%q,"level":"info","msg":%q,"time":%q}`, stamp, msg, stamp)
	}
	told := func(n int) string { return record(at(n), fmt.Sprintf("%d %s", n, at(n))) }
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
		{"all are there", []string{told(1), told(2), told(3)}, 0, ""},
		{"one is missing", []string{told(1), told(3)}, 0, "nothing says so"},
		{"one is missing under a mark", []string{told(1), mark(1, 3), told(3)}, 0, ""},
		{"a mark stands elsewhere", []string{told(1), told(3), mark(3, 4), told(4)}, 0, "nothing says so"},
		{"the first is missing", []string{told(2)}, 0, "nothing says so"},
		{"the last of a run is missing", []string{run(1, 1), run(1, 5)}, 2, "nothing says so"},
		{"two whole runs", []string{run(1, 1), run(2, 2), run(1, 5), run(2, 6)}, 2, ""},
		{"one is told twice", []string{told(1), told(2), told(2)}, 0, "told twice"},
		{"one is told twice about a kill", []string{told(1), told(2), killMark, told(2), told(3)}, 0, ""},
		{"one is told twice about a kill, and again", []string{told(1), told(2), killMark, told(2), told(2)}, 0, "told twice"},
		{"two are in the wrong order", []string{told(1), told(3), told(2)}, 0, "was told after"},
		{"the time is not the event's", []string{strings.Replace(told(1), at(1), at(2), 1)}, 0, "newlogd"},
		{"it is no JSON", []string{`{"appuuid":"a"`}, 0, "EVE's lines"},
		{"a part is left of it", []string{record(at(1), "1")}, 0, "nobody printed"},
		{"one is missing that the runtime does not have either", []string{told(1), told(3), disk(1, 3)}, 0, ""},
		{"one is missing that the runtime has", []string{told(1), told(3), disk(1, 2, 3)}, 0, "nothing says so"},
		{"one is missing of which nobody knows whether the runtime had it", []string{told(1), told(3), disk(1)}, 0, "nothing says so"},
	} {
		b, err := newBook(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range row.told {
			numbers, isDisk := strings.CutPrefix(text, "disk ")
			if !isDisk {
				fmt.Fprintln(b.pipe, text)
				continue
			}
			lines := map[line]time.Time{}
			for number := range strings.FieldsSeq(numbers) {
				n, err := strconv.Atoi(number)
				if err != nil {
					t.Fatal(err)
				}
				lines[line{n, stamp(n)}] = stamp(n)
			}
			b.seen(source{"a", "app"}, lines)
		}
		faults := b.end()
		wrongs := strings.Join(append(b.judge(source{"a", "app"}, 0, row.last).wrongs, faults...), "; ")
		if row.wrong == "" && wrongs != "" || !strings.Contains(wrongs, row.wrong) {
			t.Errorf("%s: found %q", row.rule, wrongs)
		}
	}
}
