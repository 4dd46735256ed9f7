//go:build linux

package applogs

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
)

// TestMoreLogsThanStreams has a real kubelet serve the logs of more containers
// than the device may follow, and rotate them all meanwhile.
func TestMoreLogsThanStreams(t *testing.T) {
	rig.NeedsPods(t)
	s := newStageOf(t, 1, "4Ki")
	s.limitStreams(t, 2)
	s.bootNode(t, 0)
	m := s.newMany(t, 6)
	f := m.watch(t, time.Minute)
	t.Log(f)
	if f.oldest > rig.Patience*time.Minute {
		t.Errorf("a line was %s old", f.oldest)
	}
	m.isWhole(t)
}

// idle is what the agent leaves of half the inotify instances.
const idle = 24

// limitStreams lets the device follow so many logs.
func (s *stage) limitStreams(t *testing.T, streams int) {
	setting := filepath.Join(s.Fleet.Members[0].Root, "proc/sys/fs/inotify/max_user_instances")
	if err := os.MkdirAll(filepath.Dir(setting), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(setting, fmt.Appendln(nil, 2*(streams+idle)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// many are applications on the first device, each of which prints a line a second.
type many struct {
	*stage
	apps []*app
}

func (s *stage) newMany(t *testing.T, apps int) *many {
	m := &many{stage: s}
	m.add(t, apps)
	return m
}

// add starts more applications, until there are so many, and waits until
// something is told of each.
func (m *many) add(t *testing.T, apps int) {
	began := time.Now()
	for n := len(m.apps); n < apps; n++ {
		m.apps = append(m.apps, m.newApp(t, fmt.Sprintf("many%03d", n), 0, devcluster.Prints{Rate: 1, Length: 120}, devcluster.Prints{}))
	}
	for _, a := range m.apps {
		rig.Until(t, 5*time.Minute, func() string { return m.runsOn(t, a, 0) })
		rig.Until(t, time.Minute, func() string {
			if m.books[0].count(a) == 0 {
				return "nothing is told of " + a.cfg.DisplayName
			}
			return ""
		})
	}
	t.Logf("%d applications run and are told of after %s", apps, rig.Since(began))
}

// figures are what was seen of a node for a while.
type figures struct {
	apps     int
	long     time.Duration
	oldest   time.Duration  // how long ago the newest line that was told of a container was printed, at most
	requests map[string]int // that the kubelet got, by path
	inotify  map[string]int // instances at the end, by program
}

func (f figures) String() string {
	return fmt.Sprintf("%d containers for %s: the newest line of a log was %s old at most; requests to the kubelet: %v; inotify instances: %v",
		f.apps, f.long, f.oldest.Round(100*time.Millisecond), f.requests, f.inotify)
}

// watch looks once a second how old the newest line is that is told of each.
func (m *many) watch(t *testing.T, long time.Duration) figures {
	t.Helper()
	f := figures{apps: len(m.apps), long: long, requests: m.requests(t)}
	for end := time.Now().Add(long); time.Now().Before(end); rig.Pause(t, time.Second) {
		for _, a := range m.apps {
			f.oldest = max(f.oldest, time.Since(m.books[0].newest(source{a.key(), "app"})))
		}
	}
	for path, n := range m.requests(t) {
		f.requests[path] = n - f.requests[path]
	}
	f.inotify = m.inotify(t)
	return f
}

// isWhole waits until all that the node has now is told, and wants nothing to be
// lost and nothing twice.
func (m *many) isWhole(t *testing.T) {
	t.Helper()
	disks := map[source]map[line]time.Time{}
	for _, a := range m.apps {
		for _, pod := range m.pods(t, a) {
			disks[source{a.key(), "app"}] = m.onDisk(t, 0, pod, "app")
		}
	}
	for of, disk := range disks {
		rig.Until(t, time.Minute, func() string { return m.untold(0, of, disk) })
	}
	told, lost := 0, 0
	for _, a := range m.apps {
		of := source{a.key(), "app"}
		l := m.books[0].judge(of, 0, 0)
		told += l.lines
		lost += m.books[0].last(of) - l.lines
		if l.marks > 0 || l.again > 0 || len(l.wrongs) > 0 {
			t.Errorf("%s: %s %v", a.cfg.DisplayName, l, l.wrongs)
		}
	}
	t.Logf("%d lines are told, %d are lost", told, lost)
}

// newest is when the newest line that was told of a container was printed.
func (b *book) newest(of source) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.lines[of]); n > 0 {
		return b.lines[of][n-1].printed
	}
	return time.Time{}
}

// last is the number of the newest line that was told of a container.
func (b *book) last(of source) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.lines[of]); n > 0 {
		return b.lines[of][n-1].n
	}
	return 0
}

// requests are those for logs that the kubelet has had, by path.
func (s *stage) requests(t *testing.T) map[string]int {
	t.Helper()
	text, err := s.Cluster.Client().CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", s.Name(0), "proxy/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "} ")
		if !strings.HasPrefix(name, "kubelet_http_requests_total{") {
			continue
		}
		for _, path := range []string{"containerLogs", "logs"} {
			if strings.Contains(name, `path="`+path+`"`) {
				n, err := strconv.ParseFloat(value, 64)
				if err != nil {
					t.Fatal(err)
				}
				all[path] += int(n)
			}
		}
	}
	return all
}

// inotify counts the instances of what runs on the first host, by program.
func (s *stage) inotify(t *testing.T) map[string]int {
	t.Helper()
	enter := append(s.Cluster.HostCommand(0), "readlink", "/proc/self/ns/net")
	network, err := exec.CommandContext(t.Context(), enter[0], enter[1:]...).Output()
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		if in, err := os.Readlink(process + "/ns/net"); err != nil || in != strings.TrimSpace(string(network)) {
			continue
		}
		name := programOf(process)
		files, _ := filepath.Glob(process + "/fd/*")
		for _, file := range files {
			if what, _ := os.Readlink(file); what == "anon_inode:inotify" {
				count[name]++
			}
		}
	}
	return count
}

// programOf names a process by its program, and by what that plays where it can
// play several.
func programOf(process string) string {
	text, _ := os.ReadFile(process + "/cmdline")
	args := strings.Split(string(text), "\x00")
	name := filepath.Base(args[0])
	if len(args) > 1 && args[1] != "" && !strings.HasPrefix(args[1], "-") {
		name += " " + filepath.Base(args[1])
	}
	return name
}
