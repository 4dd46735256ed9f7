package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
)

// idle watches the agents while nothing happens.
func (b *bench) idle(ctx context.Context) error {
	reporter := b.fleet.Reporter()
	if reporter == nil {
		return errors.New("idle: no node reports")
	}
	// What the phases before left behind settles: watches resume, the lease is renewed.
	if err := pause(ctx, 30*time.Second); err != nil {
		return err
	}
	began := time.Now()
	before := map[*player.Member]float64{}
	for _, m := range b.fleet.Members {
		before[m] = cpuSeconds(m.PID())
	}
	if err := pause(ctx, idleTime); err != nil {
		return err
	}
	calls, err := b.calls(began, time.Now())
	if err != nil {
		return err
	}
	minutes := time.Since(began).Minutes()
	for _, m := range b.fleet.Members {
		requests := float64(len(calls[m.IP.String()])) / minutes
		cpu := (cpuSeconds(m.PID()) - before[m]) / minutes
		rss := residentMB(m.PID())
		switch {
		case m == reporter:
			b.add("API requests/min, idle leader, 30 apps", "235-286", "≤ 20", "%.0f", requests)
			b.add("CPU s/min, idle leader, 30 apps", "0.385", "≤ 0.06", "%.3f", cpu)
			b.add("RSS MB, idle leader, 30 apps", "80", "≤ 42", "%.0f", rss)
		case m == b.fleet.Members[0] || reporter == b.fleet.Members[0] && m == b.fleet.Members[1]:
			b.add("API requests/min, idle follower, 30 apps", "84-95", "≤ 15", "%.0f", requests)
			b.add("of them for the lease, idle follower", "one per retry period", "0", "%.0f", float64(forLeases(calls[m.IP.String()]))/minutes)
			b.add("CPU s/min, idle follower, 30 apps", "0.23", "≤ 0.04", "%.3f", cpu)
			b.add("RSS MB, idle follower, 30 apps", "80", "≤ 42", "%.0f", rss)
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// calls returns the API requests between two times by the address of the node
// that made them; watches count when they begin.
func (b *bench) calls(from, to time.Time) (map[string][]devcluster.Call, error) {
	all, err := b.cluster.Calls()
	if err != nil {
		return nil, err
	}
	by := map[string][]devcluster.Call{}
	for _, c := range all {
		if c.At.After(from) && c.At.Before(to) && strings.HasPrefix(c.UserAgent, "zedkube") {
			by[c.From] = append(by[c.From], c)
		}
	}
	return by, nil
}

// forLeases counts the calls about Leases; a watch tells of them without any.
func forLeases(calls []devcluster.Call) int {
	n := 0
	for _, c := range calls {
		if c.Resource == "leases" && c.Verb != "watch" {
			n++
		}
	}
	return n
}

// cpuSeconds is the CPU time of a process so far.
func cpuSeconds(pid int) float64 {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	// Fields 14 and 15, counted from after the name in parentheses, in ticks of 10 ms.
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100
}

// residentMB is the resident memory of a process.
func residentMB(pid int) float64 {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}
