package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// median of some durations; of an even number the higher middle one.
func median(ds []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(ds))
	return sorted[len(sorted)/2]
}

// spread gives the median and the maximum of several runs.
func spread(ds []time.Duration) string {
	return fmt.Sprintf("median %s, max %s of %d", short(median(ds)), short(slices.Max(ds)), len(ds))
}

// percentiles gives p50 and p99 of several runs, the median of each, and the
// maximum of all.
func percentiles(runs [][]time.Duration) string {
	var p50, p99, most []time.Duration
	for _, run := range runs {
		sorted := slices.Sorted(slices.Values(run))
		n := len(sorted)
		p50, p99, most = append(p50, sorted[n/2]), append(p99, sorted[n*99/100]), append(most, sorted[n-1])
	}
	return fmt.Sprintf("p50 %s, p99 %s (medians of %d runs of %d), max %s",
		short(median(p50)), short(median(p99)), len(runs), len(runs[0]), short(slices.Max(most)))
}

func short(d time.Duration) string {
	if d < 100*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// document is docs/performance.md.
func (b *bench) document() string {
	var s strings.Builder
	fmt.Fprintf(&s, `# Performance

Written by `+"`make bench`"+` on %s (%d CPUs, %s/%s). Absolute times move with the machine;
what is compared within a row of "measured" was measured in the same run. The column "EVE's zedkube" holds figures measured earlier,
on another machine, against a control plane of the same kind: it gives the scale, not a ratio.

The control plane is the devcluster: a real etcd and API server, and kubelets that kwok simulates, which finish a deletion after
one second. API requests are counted from the API server's audit log, by user agent and by the address of the node that made
them. Both drains have the same pods of the same node, in turn, in the same run; kubectl's time includes the start of its process.
Clients of /status open a new connection each time, from the addresses of joining nodes. The disturbing load is
a process of its own, on the same CPUs: the CPU that it takes is in the times too.

Each container of the idle agents' applications writes a line every ten seconds; the nodes allow 512 inotify instances, so that
all logs are followed. A pod's phase is changed through the API; the time runs from that request until the file says so. Among the idle agents'
applications are virtual machines; of two followers the one that takes more counts. Containers that write are on a real
kubelet with containerd, on the same CPUs. Each of their lines has a number and the time at which it was written, and it counts
as there once the agent's output has grown beyond it. Each log is rotated once; what the kubelet has not served by then it may
hold back until the container ends. Longhorn is simulated: the size of each volume that is written changes every five seconds. A
message to zedagent is what a subscriber of the agent's socket receives; zedagent sends the whole report to the controller at each.

The load is the average of the machine's last minute when the figure was taken, this program and the control plane included.

| figure | EVE's zedkube | goal | measured | load |
|---|---|---|---|---|
`, time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	for _, f := range b.figures {
		fmt.Fprintf(&s, "| %s | %s | %s | %s | %.1f |\n", f.name, f.baseline, f.goal, f.ours, f.load)
	}
	return s.String()
}

const (
	historyTitle = "History"
	historyHead  = "One line for each release and figure, of `make bench`; the newest release comes last. A figure that " +
		"has grown is a regression\nunless its load has, too.\n\n| figure | release | measured | load |\n|---|---|---|---|\n"
)

// write writes the document, keeps the sections of the old one, and adds the
// figures to their history.
func (b *bench) write(path, release string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	text := b.document()
	if _, sections, found := strings.Cut(string(old), "\n## "); found {
		text += "\n## " + sections
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	_, history, _ := strings.Cut(string(old), "\n## "+historyTitle+"\n")
	history, _, _ = strings.Cut(history, "\n## ")
	return putSection(path, historyTitle, historyHead+b.history(history, release))
}

// history is the lines of a former history with those of this run, in place of those
// of the same release. The lines of a figure follow one another.
func (b *bench) history(former, release string) string {
	lines, order := map[string][]string{}, []string{}
	put := func(figure, line string) {
		if _, known := lines[figure]; !known {
			order = append(order, figure)
		}
		lines[figure] = append(lines[figure], line)
	}
	for line := range strings.Lines(former) {
		cells := strings.Split(line, " | ")
		if len(cells) < 4 || strings.HasPrefix(line, "| figure |") || cells[1] == release {
			continue
		}
		put(strings.TrimPrefix(cells[0], "| "), line)
	}
	subject, last := "", ""
	for _, f := range b.figures {
		name := f.name
		switch {
		case strings.HasPrefix(name, "CPU and RSS"): // while the figure before was taken
			name = last + "; " + name
		case dependent(name):
			name = subject + "; " + name
			last = name
		default:
			subject, last = name, name
		}
		put(name, fmt.Sprintf("| %s | %s | %s | %.1f |\n", name, release, f.ours, f.load))
	}
	var s strings.Builder
	for _, figure := range order {
		s.WriteString(strings.Join(lines[figure], ""))
	}
	return s.String()
}

// dependent reports whether a figure's name says something only after another one.
func dependent(name string) bool {
	for _, begin := range []string{"the same", "of it", "of them", "API requests of it"} {
		if strings.HasPrefix(name, begin) {
			return true
		}
	}
	return false
}

// putSection puts a section into the document, in place of the one of that title.
func putSection(path, title, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, _ := strings.Cut(string(old), "\n## "+title+"\n")
	if _, after, found := strings.Cut(rest, "\n## "); found {
		text += "\n## " + after
	}
	return os.WriteFile(path, []byte(strings.TrimRight(before, "\n")+"\n\n## "+title+"\n\n"+text), 0o644)
}
