//go:build linux

package metrics

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// meter is how much CPU a process has really had, as the kernel tells. A busy
// machine may not give it what it wants.
type meter struct {
	flag string // by which it is found
	stop chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex
	points []point
}

type point struct {
	at   time.Time
	used time.Duration
}

func newMeter(flag string) *meter {
	m := &meter{flag: flag, stop: make(chan struct{})}
	m.done.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		pid := 0
		for {
			select {
			case <-m.stop:
				return
			case <-tick.C:
			}
			if pid == 0 {
				pid = m.find()
				continue
			}
			if used, err := cpuOf(pid); err == nil {
				m.mu.Lock()
				m.points = append(m.points, point{time.Now(), used})
				m.mu.Unlock()
			}
		}
	})
	return m
}

func (m *meter) end() { close(m.stop); m.done.Wait() }

// find looks for the process; 0 for none.
func (m *meter) find() int {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), "\x00"+m.flag+"\x00") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return pid
		}
	}
	return 0
}

// cpuOf is what a process has had since it began.
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("what is %q", text)
	}
	var ticks int
	for _, f := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// used is what it had had at a time; 0 before it is known.
func (m *meter) used(at time.Time) (used time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.points {
		if p.at.After(at) {
			return used
		}
		used = p.used
	}
	return used
}

// cores is how many it had in a while until a time.
func (m *meter) cores(until time.Time, while time.Duration) float64 {
	return (m.used(until) - m.used(until.Add(-while))).Seconds() / while.Seconds()
}
