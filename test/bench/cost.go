package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
)

// cost is what an agent takes: each minute, but for rss.
type cost struct {
	requests, leases float64
	logs             float64 // requests for logs of pods
	received         float64 // kB of the API server, as TCP carried them
	cpu              float64 // seconds
	rss              float64 // MB, the most that was seen
}

func (c cost) worse(d cost) cost {
	return cost{max(c.requests, d.requests), max(c.leases, d.leases), max(c.logs, d.logs), max(c.received, d.received), max(c.cpu, d.cpu), max(c.rss, d.rss)}
}

// core is the CPU time as a share of one processor, in percent.
func (c cost) core() float64 { return 100 * c.cpu / 60 }

// watched is what the agents took while something went on. Of two followers the
// one that costs more counts.
type watched struct {
	led, followed cost
	calls         map[string][]devcluster.Call // by the node's address
}

// watch measures the agents while something goes on.
func (b *bench) watch(ctx context.Context, leader *player.Member, meanwhile func(context.Context) error) (watched, error) {
	members := b.fleet.Members
	before := make([]cost, len(members))
	look := func(i int) cost {
		return cost{
			received: float64(b.cluster.NodeTraffic(i).Received) / 1000, cpu: cpuSeconds(members[i].PID()),
			rss: max(before[i].rss, residentMB(members[i].PID())),
		}
	}
	began := time.Now()
	for i := range members {
		before[i] = look(i)
	}
	running, stop := context.WithCancel(ctx)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		for pause(running, time.Second) == nil {
			for i := range members {
				before[i].rss = look(i).rss
			}
		}
	}()
	err := meanwhile(ctx)
	stop()
	<-looked
	var w watched
	if err == nil {
		w.calls, err = b.calls(began, time.Now())
	}
	minutes := time.Since(began).Minutes()
	for i, m := range members {
		now, calls := look(i), w.calls[m.IP.String()]
		took := cost{
			requests: float64(len(calls)) / minutes, leases: float64(forLeases(calls)) / minutes, logs: float64(logRequests(calls)) / minutes,
			received: (now.received - before[i].received) / minutes, cpu: (now.cpu - before[i].cpu) / minutes, rss: now.rss,
		}
		if m == leader {
			w.led = took
		} else {
			w.followed = w.followed.worse(took)
		}
	}
	return w, err
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
func residentMB(pid int) float64 { return memoryMB(pid, "VmRSS:") }

// memoryMB is what the kernel says of the memory of a process in one line.
func memoryMB(pid int, line string) float64 {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	for text := range strings.Lines(string(content)) {
		if rest, ok := strings.CutPrefix(text, line); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}
