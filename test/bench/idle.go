package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
)

// idleFew and idleMany watch the agents while nothing happens, with few
// applications and with many.
func (b *bench) idleFew(ctx context.Context) error {
	return b.idle(ctx, fewApps, map[string]string{
		"API requests/min, idle leader": "235-286", "CPU s/min, idle leader": "0.385", "RSS MB, idle leader": "80",
		"API requests/min, idle follower": "84-95", "CPU s/min, idle follower": "0.23", "RSS MB, idle follower": "80",
		"of them for the lease, idle follower": "one per retry period", "what the three idle agents asked for meanwhile": "lists",
	}, "≤ 42")
}

func (b *bench) idleMany(ctx context.Context) error {
	return b.idle(ctx, manyApps, map[string]string{
		"API requests/min, idle leader": "575", "RSS MB, idle leader": "91-103",
		"API requests/min, idle follower": "218", "RSS MB, idle follower": "91-103",
		"of them for the lease, idle follower": "one per retry period", "what the three idle agents asked for meanwhile": "lists",
	}, "≤ 50")
}

// idle watches the agents with so many applications. Of two followers the one
// that costs more counts.
func (b *bench) idle(ctx context.Context, apps int, baseline map[string]string, memory string) error {
	leader := b.fleet.Reporter()
	if leader == nil {
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
	if err := pause(ctx, b.idling); err != nil {
		return err
	}
	calls, err := b.calls(began, time.Now())
	if err != nil {
		return err
	}
	minutes := time.Since(began).Minutes()
	var led, followed idleCost
	for _, m := range b.fleet.Members {
		cost := idleCost{
			requests: float64(len(calls[m.IP.String()])) / minutes, leases: float64(forLeases(calls[m.IP.String()])) / minutes,
			cpu: (cpuSeconds(m.PID()) - before[m]) / minutes, rss: residentMB(m.PID()),
		}
		if m == leader {
			led = cost
		} else {
			followed = followed.worse(cost)
		}
	}
	row := func(name, goal, format string, value any) {
		was, known := baseline[name]
		if !known {
			was = "not measured"
		}
		b.add(fmt.Sprintf("%s, %d apps", name, apps), was, goal, format, value)
	}
	row("API requests/min, idle leader", "≤ 20", "%.0f", led.requests)
	row("CPU s/min, idle leader", "≤ 0.06", "%.3f", led.cpu)
	row("RSS MB, idle leader", memory, "%.0f", led.rss)
	row("API requests/min, idle follower", "≤ 15", "%.0f", followed.requests)
	row("of them for the lease, idle follower", "0", "%.0f", followed.leases)
	row("CPU s/min, idle follower", "≤ 0.04", "%.3f", followed.cpu)
	row("RSS MB, idle follower", memory, "%.0f", followed.rss)
	row("what the three idle agents asked for meanwhile", "no list", "%s", verbs(calls))
	return nil
}

// idleCost is what an idle agent takes, each minute.
type idleCost struct{ requests, leases, cpu, rss float64 }

func (c idleCost) worse(d idleCost) idleCost {
	return idleCost{max(c.requests, d.requests), max(c.leases, d.leases), max(c.cpu, d.cpu), max(c.rss, d.rss)}
}

// verbs counts calls by verb; what was listed is named.
func verbs(calls map[string][]devcluster.Call) string {
	counts := map[string]int{}
	for _, of := range calls {
		for _, c := range of {
			what := c.Verb
			if what == "list" {
				what += " of " + c.Resource
			}
			counts[what]++
		}
	}
	return listed(counts)
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

// cpuSeconds is the CPU time of a process so far, of all its threads.
func cpuSeconds(pid int) float64 {
	var spent unix.Timespec
	// The number of a process's own CPU clock, as clock_getcpuclockid(3) makes it.
	if err := unix.ClockGettime(int32(^pid<<3|2), &spent); err != nil {
		return 0
	}
	return time.Duration(spent.Nano()).Seconds()
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
