package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
)

// idleFew and idleMany watch the agents while nothing happens, with few
// applications and with many.
func (b *bench) idleFew(ctx context.Context) error {
	return b.idle(ctx, fewApps, map[string]string{
		"API requests/min, idle leader": "235-286", "kB/min from the API server, idle leader": "2,672-2,833", "CPU s/min, idle leader": "0.385", "RSS MB, idle leader": "80",
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
	if err := b.logged(ctx); err != nil {
		return err
	}
	// What the phases before left behind settles: watches resume, the lease is renewed. An agent that is a minute old
	// gives back the pages that only its start has used.
	if err := pause(ctx, 70*time.Second); err != nil {
		return err
	}
	w, err := b.watch(ctx, leader, func(ctx context.Context) error { return pause(ctx, b.idling) })
	if err != nil {
		return err
	}
	row := func(name, goal, format string, value any) {
		was, known := baseline[name]
		if !known {
			was = "not measured"
		}
		b.add(fmt.Sprintf("%s, %d apps, a third of them here", name, apps), was, goal, format, value)
	}
	row("API requests/min, idle leader", "≤ 30", "%.0f", w.led.requests)
	row("kB/min from the API server, idle leader", "≤ 50", "%.0f", w.led.received)
	row("CPU s/min, idle leader", "≤ 0.06", "%.3f", w.led.cpu)
	row("RSS MB, idle leader", memory, "%.0f", w.led.rss)
	row("API requests/min, idle follower", "≤ 20", "%.0f", w.followed.requests)
	row("of them for logs, idle follower", "—", "%.0f", w.followed.logs)
	row("of them for the lease, idle follower", "0", "%.0f", w.followed.leases)
	row("kB/min from the API server, idle follower", "—", "%.0f", w.followed.received)
	row("CPU s/min, idle follower", "≤ 0.04", "%.3f", w.followed.cpu)
	row("RSS MB, idle follower", memory, "%.0f", w.followed.rss)
	row("what the three idle agents asked for meanwhile", "no list", "%s", verbs(w.calls))
	return nil
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
