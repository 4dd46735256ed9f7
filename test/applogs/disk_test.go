//go:build linux

package applogs

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/test/rig"
)

// onDisk are the lines that a node has of a container, rotated ones too, and when
// the runtime took them.
func (s *stage) onDisk(t *testing.T, i int, pod corev1.Pod, container string) map[line]time.Time {
	t.Helper()
	pattern := s.Cluster.HostPath(i, filepath.Join("/var/log/pods", pod.Namespace+"_"+pod.Name+"_"+string(pod.UID), container, "*.log*"))
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[line]time.Time{}
	for _, file := range files {
		if strings.HasSuffix(file, ".tmp") {
			continue // it is being packed
		}
		if err := readLog(file, lines); err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
	}
	return lines
}

// readLog reads a file of the runtime's: "<time> <stream> F <line>".
func readLog(file string, lines map[line]time.Time) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	in := io.Reader(f)
	if strings.HasSuffix(file, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
	}
	for r := bufio.NewReader(in); ; {
		text, err := r.ReadString('\n')
		if err != nil {
			return nil // the last one may be half
		}
		f := strings.SplitN(text, " ", 4)
		if len(f) < 4 {
			return fmt.Errorf("read %s: %q", file, text)
		}
		at, err := time.Parse(time.RFC3339Nano, f[0])
		l, ok := parse(f[3])
		if err != nil || !ok {
			return fmt.Errorf("read %s: %q", file, text)
		}
		lines[l] = at
	}
}

// isTold: each line that the nodes have of pods that are there is told, with its
// time, or stands under a mark. It waits for the last of them.
func (s *stage) isTold(t *testing.T, quiet time.Duration) {
	t.Helper()
	end := time.Now().Add(rig.Patience * quiet)
	slowest := time.Duration(0)
	for _, name := range slices.Sorted(maps.Keys(s.apps)) {
		a := s.apps[name]
		for _, pod := range s.pods(t, a) {
			for i := range s.Fleet.Members {
				if s.Name(i) != pod.Spec.NodeName {
					continue
				}
				for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
					of := source{a.key(), c.Name}
					disk := s.onDisk(t, i, pod, c.Name)
					s.books[i].seen(of, disk)
					took := rig.Within(t, time.Until(end), func() string { return s.untold(i, of, disk) })
					slowest = max(slowest, took)
					l := s.books[i].judge(of, a.stderr(c.Name), a.last(c.Name))
					if runs := s.books[i].toldRuns(of, l.runs); runs < int(c.RestartCount)+1 {
						t.Errorf("%s/%s: of %d runs %d are told or marked", name, c.Name, c.RestartCount+1, runs)
					}
				}
			}
		}
	}
	t.Logf("all that the nodes have is told after %s", slowest)
}

// untold says which line of those on a disk was not told, "" for none.
func (s *stage) untold(i int, of source, disk map[line]time.Time) string {
	told := s.books[i].known(of)
	for l, at := range disk {
		was, ok := told[l]
		switch {
		case !ok && !s.books[i].covers(of, at):
			return fmt.Sprintf("%s: line %d of %v, which the runtime took at %s, is not told", s.Name(i), l.n, of, at.Format(rig.Clock))
		case ok && !was.Equal(at):
			return fmt.Sprintf("%s: line %d of %v has the time %s, want %s", s.Name(i), l.n, of, was, at)
		}
	}
	return ""
}

func (a *app) stderr(container string) int {
	if container == "init" {
		return a.init.Stderr
	}
	return a.prints.Stderr
}

func (a *app) last(container string) int {
	if container == "init" {
		return a.init.Exit
	}
	return a.prints.Exit
}

// allIsWell judges all that was told of all applications, of pods that are gone too.
func (s *stage) allIsWell(t *testing.T, apps ...*app) {
	t.Helper()
	for _, a := range apps {
		for i, b := range s.books {
			for _, container := range []string{"init", "app"} {
				l := b.judge(source{a.key(), container}, a.stderr(container), a.last(container))
				if l.lines == 0 {
					continue
				}
				t.Logf("%s on %s, %s: %s", a.cfg.DisplayName, s.Name(i), container, l)
				for _, wrong := range l.wrongs {
					t.Errorf("%s on %s: %s", a.cfg.DisplayName, s.Name(i), wrong)
				}
			}
		}
	}
}
