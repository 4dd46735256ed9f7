package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zedkube/zedkube/test/logjudge"
	"github.com/zedkube/zedkube/test/player"
)

// observed is what is seen of an agent and its output while containers write.
type observed struct {
	m       *player.Member
	file    string
	from    int64 // where the output began
	growth  []size
	took    time.Duration // until nothing came any more
	cpu     float64       // of the agent, in seconds
	busy    float64       // of the machine
	rss     float64
	before  float64
	spent   float64
	machine float64
}

// size is how long the output was at a time.
type size struct {
	at time.Time
	n  int64
}

func observe(m *player.Member) *observed {
	o := &observed{m: m, file: filepath.Join(m.Root, "zedkube.log"), before: residentMB(m.PID())}
	if info, err := os.Stat(o.file); err == nil {
		o.from = info.Size()
	}
	o.spent, o.machine = cpuSeconds(m.PID()), busySeconds()
	return o
}

// watch looks until nothing comes any more.
func (o *observed) watch(ctx context.Context) error {
	began := time.Now()
	last := size{began, o.from}
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for time.Since(last.at) < silence {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		info, err := os.Stat(o.file)
		if err != nil {
			return err
		}
		if now := (size{time.Now(), info.Size()}); now.n > last.n {
			last = now
			o.growth = append(o.growth, now)
			o.took, o.cpu, o.busy = now.at.Sub(began), cpuSeconds(o.m.PID())-o.spent, busySeconds()-o.machine
			o.rss = max(o.rss, residentMB(o.m.PID()))
		}
	}
	return nil
}

// heard is what the output holds of the containers' lines.
type heard struct {
	lines       int // different ones
	doubled     int
	late        int       // of the lines, those that came after the silence
	torn        int       // parts of lines whose beginning has not come
	words       []string  // of the agent among them
	lateWords   int       // so many of them, too
	first, last time.Time // when lines were written, by the containers' word
	delays      []time.Duration
	said        int
	seen        map[string][]bool // by application: the lines that have come, the first at 0
}

// rate is what the containers wrote, in MB/s.
func (h heard) rate() float64 {
	return h.megabytes() / h.last.Sub(h.first).Seconds()
}

func (h heard) megabytes() float64 { return float64(h.lines*(lineLength+1)) / 1e6 }

// judge reads what has come of containers that wrote so many lines each.
func (o *observed) judge(said int) (heard, error) {
	h := heard{said: said, seen: map[string][]bool{}}
	file, err := os.Open(o.file)
	if err != nil {
		return h, err
	}
	defer file.Close()
	if _, err := file.Seek(o.from, io.SeekStart); err != nil {
		return h, err
	}
	lines := bufio.NewReaderSize(file, 1<<20)
	for end, growth := o.from, o.growth; ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break // the rest is no line
		}
		end += int64(len(line))
		for len(growth) > 1 && growth[0].n < end {
			growth = growth[1:]
		}
		if err := h.take(line, growth[0].at, end > growth[0].n); err != nil {
			return h, fmt.Errorf("the agent's output before byte %d: %w", end, err)
		}
	}
	if h.lines == 0 {
		return h, errors.New("no line of a container came out of the agent")
	}
	return h, nil
}

// take counts a line of the output that was there at that time, or came later.
func (h *heard) take(line []byte, at time.Time, late bool) error {
	var record struct{ Appuuid, Containername, Msg string }
	if err := json.Unmarshal(line, &record); err != nil {
		return err
	}
	if record.Appuuid == "" {
		return nil // the agent's own
	}
	number, rest, _ := strings.Cut(record.Msg, " ")
	stamp, _, _ := strings.Cut(rest, " ")
	written, err := time.Parse(time.RFC3339Nano, stamp)
	n, wrong := strconv.Atoi(number)
	if err != nil || wrong != nil || n < 1 || n > h.said {
		if !strings.HasSuffix(record.Containername, logjudge.Ours) {
			h.torn++
			return nil
		}
		h.words = append(h.words, record.Appuuid[:8]+" "+record.Msg)
		if late {
			h.lateWords++
		}
		return nil
	}
	of := h.seen[record.Appuuid]
	if of == nil {
		of = make([]bool, h.said)
		h.seen[record.Appuuid] = of
	}
	if of[n-1] {
		h.doubled++
		return nil
	}
	of[n-1] = true
	h.lines++
	if late {
		h.late++
	} else {
		h.delays = append(h.delays, at.Sub(written))
	}
	if h.first.IsZero() || written.Before(h.first) {
		h.first = written
	}
	if written.After(h.last) {
		h.last = written
	}
	return nil
}

// missing tells which lines have not come, of some applications.
func (h *heard) missing() []string {
	var ranges []string
	for _, app := range slices.Sorted(maps.Keys(h.seen)) {
		of := h.seen[app]
		for n := 0; n < len(of) && len(ranges) < 20; n++ {
			first := n
			for n < len(of) && !of[n] {
				n++
			}
			if n > first {
				ranges = append(ranges, fmt.Sprintf("%s lost lines %d to %d", app[:8], first+1, n))
			}
		}
	}
	return ranges
}

// busySeconds is the CPU time that the machine has spent on anything.
func busySeconds() float64 {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	// cpu user nice system idle iowait irq softirq steal, in ticks of 10 ms.
	fields := strings.Fields(string(content))
	sum := 0.0
	for _, i := range []int{1, 2, 3, 6, 7} {
		ticks, _ := strconv.ParseFloat(fields[i], 64)
		sum += ticks
	}
	return sum / 100
}
