package draincmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

// deviceWith makes a device's directory with this NodeDrainProgress.
func deviceWith(t testing.TB, content string) device.Paths {
	t.Helper()
	p := device.Options{Root: t.TempDir()}.Paths()
	cmdtest.Lay(t, p.TopicFile(device.Self, "NodeDrainProgress"), content)
	return p
}

// hostile are records that nobody should write.
func hostile() map[string]string {
	ugly := `\u001b[2J\u001b]0;owned\u0007\r\nnext\u0000\u007f\u009b31m\u202e\u2028` + "\x80\xff"
	long := strings.Repeat("a", 60000)
	return map[string]string{
		"empty":     ``,
		"null":      `null`,
		"truncated": `{"Phase":"Emptying","Blockers":[{"Pod":"a/`,
		"list":      `[1,2,3]`,
		"numbers":   `{"Phase":7}`,
		"huge counts": `{"Phase":"Emptying","Attempt":9223372036854775807,"Attempts":-1,"Pods":{"Total":9223372036854775807,"Evicted":-9223372036854775808,
			"Terminating":9223372036854775807,"Waiting":-5},"BlockersOmitted":9223372036854775807,"VolumesOmitted":-1,"StrandedOmitted":9223372036854775807,
			"Volumes":[{"Name":"v","Rebuilding":"n","Percent":9223372036854775807,"ETA":9223372036854775807,"Replicas":-1,"Healthy":99999999999}]}`,
		"more than whole":   `{"Phase":"Emptying","Pods":{"Total":1,"Evicted":500}}`,
		"numbers too large": `{"Phase":"Emptying","Pods":{"Total":99999999999999999999999}}`,
		"times": `{"Phase":"NotEmpty","Since":"0001-01-01T00:00:00Z","Started":"9999-12-31T23:59:59Z","Deadline":"0000-01-01T00:00:00Z","Ended":"1000-01-01T00:00:00+23:59",
			"Blockers":[{"Pod":"a/b","Since":"9999-12-31T23:59:59Z"}],"Lock":{"Holder":"x","Since":"0000-01-01T00:00:00Z"}}`,
		"bad time": `{"Phase":"Emptying","Since":"yesterday"}`,
		"escapes": `{"Phase":"` + ugly + `","Reason":"` + ugly + `","Requesters":["` + ugly + `"],"Blockers":[{"Pod":"` + ugly + `","Cause":"` + ugly + `","Why":"` + ugly +
			`","Outlook":"` + ugly + `","Remedy":"` + ugly + `"}],"Volumes":[{"Name":"` + ugly + `","Claim":"` + ugly + `","Why":"` + ugly + `","Rebuilding":"` + ugly + `","Remedy":"` + ugly +
			`"}],"Stranded":["` + ugly + `"],"Lock":{"Holder":"` + ugly + `","Waits":"` + ugly + `"},"Quorum":"` + ugly + `","Cordon":"` + ugly + `"}`,
		"long":     `{"Phase":"Gates","Reason":"` + long + `","Lock":{"Holder":"` + long + `"}}`,
		"wide":     `{"Phase":"Gates","Reason":"` + strings.Repeat("日本語", 200) + `"}`,
		"combined": `{"Phase":"Gates","Reason":"` + strings.Repeat("a\u0300", 500) + `"}`,
		"many":     `{"Phase":"Emptying","Blockers":[` + strings.Repeat(`{"Pod":"a/b"},`, 20000) + `{}],"Stranded":[` + strings.Repeat(`"a/b",`, 20000) + `""]}`,
		"too long": `{"Reason":"` + strings.Repeat("a", 2<<20) + `"}`,
		"deep":     strings.Repeat(`{"Lock":`, 20000),
	}
}

func TestNoRecordCanHarmTheTerminal(t *testing.T) {
	for name, content := range hostile() {
		p := deviceWith(t, content)
		cmdtest.Lay(t, p.TopicFile(device.Self, "NodeDrainStatus"), `{"Status":255,"RequestedBy":250}`)
		cmdtest.Lay(t, p.TopicFile("zedagent", "EdgeNodeInfo"), `{"DeviceName":"\u001b[31mnode`+"\x9b"+`"}`)
		checkShown(t, name, readDrain(p, cmdtest.Now))
	}
}

// checkShown shows a record in every way and looks at what came out.
func checkShown(t *testing.T, name string, r drainRecord) {
	t.Helper()
	for _, width := range []int{0, 20, 80, 200} {
		lines := drainLines(r, width, false)
		if len(lines) == 0 || len(lines) > 2000 {
			t.Errorf("%s: %d lines", name, len(lines))
		}
		for _, line := range append(lines, summary(r)) {
			if i := strings.IndexFunc(line, func(c rune) bool { return !unicode.IsPrint(c) }); i >= 0 || !utf8.ValidString(line) {
				t.Fatalf("%s: not for a terminal: %q", name, line)
			}
		}
		for _, line := range lines {
			if terminal.Cells(line) >= max(width, 40) {
				t.Errorf("%s: %d columns on a screen of %d: %q", name, terminal.Cells(line), width, line)
			}
		}
	}
	var out bytes.Buffer
	if err := terminal.WriteJSON(&out, r, ""); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	text := strings.TrimSuffix(out.String(), "\n")
	if strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
		t.Errorf("%s: not for a terminal: %q", name, text)
	}
	var back drainRecord
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Errorf("%s: %v", name, err)
	} else if r.Progress != nil && back.Progress.Reason != r.Progress.Reason {
		t.Errorf("%s: the reason %q came out as %q", name, r.Progress.Reason, back.Progress.Reason)
	}
	_, _ = r.ending() // it has to come back, whatever it says
}

func TestAFifoOrADirectoryInPlaceOfARecordHoldsNobodyUp(t *testing.T) {
	p := device.Options{Root: t.TempDir()}.Paths()
	fifo, dir := p.TopicFile(device.Self, "NodeDrainProgress"), p.TopicFile(device.Self, "NodeDrainStatus")
	for _, d := range []string{filepath.Dir(fifo), dir} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	r := readDrain(p, cmdtest.Now)
	if len(r.Problems) != 2 || r.Progress != nil || r.Status != nil {
		t.Errorf("got %+v", r)
	}
}

func TestTheMembershipSaysThatTheNodeHasLeftAfterItsDrain(t *testing.T) {
	for text, want := range map[string]bool{`{"State":"left"}`: true, `{"State":"leaving"}`: false, `{"State":"left","Without":{}}`: false, "{": false} {
		p := deviceWith(t, `{"Phase":"Idle"}`)
		cmdtest.Lay(t, p.PersistentFile(device.Self, "ClusterMembership"), text)
		if r := readDrain(p, cmdtest.Now); r.left != want || len(r.Problems) > 0 {
			t.Errorf("%s: %+v", text, r)
		}
	}
}

func TestALeftoverIsToldFromALivingAgent(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		pid   string
		touch time.Duration // age; -1 for no file
		runs  bool
		why   string
	}{
		"alive":           {strconv.Itoa(os.Getpid()), time.Second, true, ""},
		"no pid file":     {"", time.Second, false, "no pid file"},
		"gone":            {"2147483646", time.Second, false, "process 2147483646 is gone"},
		"no number":       {"\x1b[2J", time.Second, false, "no number"},
		"negative":        {"-1", time.Second, false, "no number"},
		"hung":            {strconv.Itoa(os.Getpid()), time.Hour, false, "its last heartbeat was"},
		"never fed":       {strconv.Itoa(os.Getpid()), -1, false, "no heartbeat yet"},
		"another process": {"1", time.Hour, false, "its last heartbeat was"},
	} {
		p := deviceWith(t, `{"Phase":"Idle"}`)
		if c.pid != "" {
			cmdtest.Lay(t, p.PID, c.pid+"\n")
		}
		if c.touch >= 0 {
			cmdtest.Lay(t, p.Touch, "")
			if err := os.Chtimes(p.Touch, now.Add(-c.touch), now.Add(-c.touch)); err != nil {
				t.Fatal(err)
			}
		}
		r := readDrain(p, now)
		if r.Agent.Runs != c.runs || !strings.Contains(r.Agent.Why, c.why) {
			t.Errorf("%s: got %+v", name, r.Agent)
		}
		if said := strings.Contains(strings.Join(drainLines(r, 100, false), "\n"), "is NOT running"); said == c.runs {
			t.Errorf("%s: the screen says so: %v", name, said)
		}
	}
}

func TestOnlyNamesOfKubernetesAreOfferedForPasting(t *testing.T) {
	r := emptying()
	r.Progress.Phase = types.PhaseGates
	r.Progress.Lock = types.DrainLockView{Holder: "node-1; reboot"}
	for _, a := range adviseFor(r, device.Options{}.Paths()) {
		if strings.Contains(a.Command, "; reboot") {
			t.Errorf("offered: %s", a.Command)
		}
	}
}

func TestSomebodyElsesCordonIsAskedAboutBeforeItIsUndone(t *testing.T) {
	for cordon, want := range map[string][]string{
		"operator": {"zedkube audit --op cordon,uncordon", "zedkube uncordon node-2"},
		"kept":     {"zedkube uncordon node-2"},
	} {
		r := emptying()
		r.Progress = &types.NodeDrainProgress{Phase: types.PhaseIdle, Cordon: cordon}
		var got []string
		for _, a := range adviseFor(r, device.Options{}.Paths()) {
			if !strings.Contains(a.Command, "drain") {
				got = append(got, a.Command)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", cordon, got, want)
		}
	}
}
