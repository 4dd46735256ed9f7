package pubsub

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/test/seeds"
)

// crashRoot names the environment variable that turns the test binary into
// the process that is killed.
const crashRoot = "PUBSUB_CRASH_ROOT"

// crashing publishes ever higher counts and writes each to out once it is
// published, until it is killed. The values differ in length, so that one
// written over another would leave the end of the longer.
func crashing(root string, out io.Writer) error {
	bus := NewBus(root, logrus.New())
	plain := NewPublication[Part](bus, "agent")
	kept := NewPublication[Sample](bus, "agent", Persistent())
	if err := bus.Open(); err != nil {
		return err
	}
	last, _ := kept.Get("k")
	for n := last.Count + 1; ; n++ {
		if err := kept.Publish("k", Sample{Count: n, Name: filler(n)}); err != nil {
			return err
		}
		if err := plain.Publish("k", Part{ID: strconv.FormatInt(n, 10)}); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, n); err != nil {
			return err
		}
	}
}

func filler(n int64) string { return strings.Repeat("x", int(n*7919%9000)) }

// killed runs the crashing process for about that long and returns the last
// count that it reported, or before if it came to none.
func killed(t *testing.T, root string, after time.Duration, before int64) int64 {
	t.Helper()
	cmd := itself()
	cmd.Env = append(os.Environ(), crashRoot+"="+root)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	// The time begins with the first word, so that the start is not all that is killed.
	for lines.Scan() {
		if before, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
			t.Fatal(err)
		}
		if after > 0 {
			timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
			after = 0
		}
	}
	_ = cmd.Wait()
	return before
}

// A process that is killed at any point of writing leaves the last value that
// it was told is published, or the one that it was publishing.
func TestAProcessKilledWhileItPublishesLosesNothing(t *testing.T) {
	t.Parallel()
	killOften(t, 60)
}

func killOften(t *testing.T, rounds int) {
	t.Helper()
	root := t.TempDir()
	kept := filepath.Join(root, "persist/status/agent/Sample/k.json")
	plain := filepath.Join(root, "run/agent/Part/k.json")
	last := int64(0)
	rng := seeds.Rand(t)
	for round := range rounds {
		after := time.Duration(rng.Int64N(int64(25 * time.Millisecond)))
		last = killed(t, root, 1+after, last)
		seeds.Count(t, "kills", 1)
		for what, count := range map[string]func() (int64, error){
			"the persistent file": func() (int64, error) {
				v, err := decodeFile[Sample](kept)
				if err == nil && v.Name != filler(v.Count) {
					err = fmt.Errorf("it mixes two values: count %d, %d bytes of name", v.Count, len(v.Name))
				}
				return v.Count, err
			},
			"the plain file": func() (int64, error) {
				v, err := decodeFile[Part](plain)
				if err != nil {
					return 0, err
				}
				return strconv.ParseInt(v.ID, 10, 64)
			},
			"a publication": func() (int64, error) {
				s := newSide(root)
				p := NewPublication[Sample](s.Bus, "agent", Persistent())
				err := s.Open()
				p.store.close()
				v, _ := p.Get("k")
				return v.Count, err
			},
			"a subscription": func() (int64, error) {
				s := newSide(root)
				sub := NewSubscription[Sample](s.Bus, "agent", Persistent())
				err := s.Open()
				v, _ := sub.Get("k")
				return v.Count, err
			},
		} {
			if got, err := count(); err != nil || got != last && got != last+1 {
				t.Fatalf("round %d: %s holds %d, %v; the last published was %d", round, what, got, err, last)
			}
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(kept), "tmp*"))
	must(t, err)
	if len(left) > 0 {
		t.Errorf("the killed left %v", left)
	}
	t.Logf("%d values published by 60 processes", last)
}

func decodeFile[T any](path string) (T, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		var none T
		return none, err
	}
	return decodeRow[T](data)
}
