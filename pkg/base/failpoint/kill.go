//go:build failpoints

// Package failpoint is where the test build can be killed: before and after each
// effect of the agent on what is outside of its process (docs/contributing.md,
// "Kill points").
package failpoint

import (
	"context"
	_ "embed" // the list
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/zedkube/zedkube/types"
)

// Variable names the directory in which a test and the program talk: the program adds
// each point to the file "passed" when it first comes there; the test writes lines "3 POINT" to the
// file "kill", and the third time from then on that it comes to one of them the program adds the
// point to "killed", takes the line from "kill" and kills itself. Where the directory is missing nothing happens.
const Variable = "ZEDKUBE_FAILPOINTS"

// The ends of the name of a point.
const (
	before = "/before"
	after  = "/after"
)

// List has a line for each effect, component/effect, of which each has two points.
//
//go:embed effects.txt
var List string

// Do carries out do, which has that effect on the file at path.
func Do(effect, path string, do func() error) error { return around(ofFile(effect, path), do) }

// As carries out do, which has that effect in the name of the component in ctx.
func As(ctx context.Context, effect string, do func() error) error {
	return around(types.Acting(ctx).Component+"/"+effect, do)
}

func around(name string, do func() error) error {
	reached.at(name + before)
	err := do()
	reached.at(name + after)
	return err
}

// ofFile is the line of the list for an effect on a file. The file of a topic is named by
// its agent and its topic, any other one as the list names it, which has * for
// what differs and does not know the device's root.
func ofFile(effect, file string) string {
	if effect == "publish" || effect == "withdraw" {
		if !strings.HasSuffix(file, ".json") {
			effect = strings.NewReplacer("publish", "back up", "withdraw", "drop backup of").Replace(effect)
		}
		dir := filepath.Dir(file)
		file = filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir)
	}
	for line := range strings.Lines(List) {
		_, listed, _ := strings.Cut(strings.TrimSpace(line), "/")
		if pattern, ok := strings.CutPrefix(listed, effect+" "); ok && ends(file, pattern) {
			return strings.TrimSpace(line)
		}
	}
	return "unlisted/" + effect + " " + file
}

// ends reports whether the last elements of a path are as the pattern has them.
func ends(file, pattern string) bool {
	has, wants := strings.Split(file, "/"), strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	if len(has) < len(wants) {
		return false
	}
	ok, _ := path.Match(strings.Join(wants, "/"), strings.Join(has[len(has)-len(wants):], "/"))
	return ok
}

// points is what is known of the points since the process began.
type points struct {
	mu     sync.Mutex
	passed map[string]bool
	orders string         // which were last read
	times  map[string]int // how often each point was reached since
}

var reached = &points{passed: map[string]bool{}}

// at ends the process where it is told to.
func (p *points) at(point string) {
	dir := os.Getenv(Variable)
	if dir == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.passed[point] {
		p.passed[point] = note(filepath.Join(dir, "passed"), point)
	}
	kill := filepath.Join(dir, "kill")
	content, err := os.ReadFile(kill)
	if orders := string(content); err != nil || orders != p.orders {
		p.orders, p.times = orders, map[string]int{}
	}
	if !strings.Contains(p.orders, point) {
		return
	}
	p.times[point]++
	var others []string
	now := false
	for order := range strings.Lines(p.orders) {
		n, name, _ := strings.Cut(strings.TrimSpace(order), " ")
		if times, err := strconv.Atoi(n); !now && err == nil && name == point && p.times[point] >= times {
			now = true
		} else {
			others = append(others, order)
		}
	}
	if !now {
		return
	}
	note(filepath.Join(dir, "killed"), point)
	_ = os.Remove(kill)
	if len(others) > 0 {
		note(kill, strings.TrimSpace(strings.Join(others, "")))
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // other goroutines may go on for a moment, this one does not
}

// note adds a line to a file.
func note(file, line string) bool {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	_, err = f.WriteString(line + "\n")
	return f.Close() == nil && err == nil
}
