//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/zedkube/zedkube/test/seeds"
)

// goTest runs the scene's test in the module's directory.
func (s Scene) goTest(ctx context.Context, r *Run) error {
	book := filepath.Join(r.Dir, "counts")
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-timeout=24h",
		"-tags=kustomize_disable_go_plugin_support,soak,failpoints", "-run=^"+s.Test+"$", "./"+s.Package)
	often := filepath.Join(r.Dir, "often")
	if err := os.WriteFile(often, []byte(strings.Join(r.often(), "\n")), 0o600); err != nil {
		return err
	}
	cmd.Env = append(os.Environ(), seeds.Book+"="+book, seeds.Often+"="+often, fmt.Sprintf("%s=%d", seeds.First, r.Seed))
	if r.Short {
		cmd.Env = append(cmd.Env, seeds.Brief+"=true")
	}
	if plays := s.Plays; plays > 0 {
		if r.Short {
			plays = max(plays/5, min(plays, 100))
		}
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", seeds.Many, plays))
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		all := os.WriteFile(filepath.Join(r.Dir, "output"), out, 0o600)
		return errors.Join(fmt.Errorf("%s in %s: %w: %s", s.Test, s.Package, err, failure(string(out))), all, r.readBook(book, s.Test))
	case strings.Contains(string(out), "[no tests to run]"):
		return fmt.Errorf("%s has no test %s", s.Package, s.Test)
	}
	return r.readBook(book, s.Test)
}

// often are the kill points that runs before this one have hit often enough.
func (r *Run) often() (points []string) {
	for point, n := range r.Earlier.Kills {
		if n >= enough {
			points = append(points, point)
		}
	}
	return points
}

// storyFailed is where a story says what is wrong. Of other tests it is taken to be the first line that
// they say: the output does not tell what they log from what they complain of.
var (
	storyFailed = regexp.MustCompile(`(?m)^ +FAIL: testdata/.*$`)
	said        = regexp.MustCompile(`(?m)^ +\w+_test\.go:\d+: .*$`)
)

// failure is the first thing that a test complains of, as far as its output shows that.
func failure(out string) string {
	for _, where := range []*regexp.Regexp{storyFailed, said} {
		if line := where.FindString(out); line != "" {
			return strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(out[max(0, len(out)-300):])
}

// readBook counts what the test has counted.
func (r *Run) readBook(book, test string) error {
	content, err := os.ReadFile(book)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	r.Checked(test, 1)
	for line := range strings.Lines(string(content)) {
		what, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		number, point, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("read the counts of %s: %w", test, err)
		}
		if point == "" { // none of the list
			point = test
		}
		switch what {
		case "histories":
			r.Simulated(n)
		case "operations":
			r.Operated(n)
		case "kills":
			r.count(func(c *Counts) { c.Kills[point] += n })
		case "faults":
			r.count(func(c *Counts) { c.Faults[test] += n })
		default:
			return fmt.Errorf("the counts of %s: what is %q?", test, what)
		}
	}
	return nil
}
