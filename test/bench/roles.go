package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/zedkube/zedkube/pubsub"
)

// written is how many values the roles under strace publish.
const written = 100

// play is this program as the other process of a measurement.
func play(ctx context.Context, role, root string) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if role == "hoard" || role == "molest" {
		return surround(ctx, role, root)
	}
	bus := pubsub.NewBus(root, quiet())
	switch role {
	case "write":
		return publish(pubsub.NewPublication[benchRow](bus, "bench"), bus)
	case "keep":
		return publish(pubsub.NewPublication[benchRow](bus, "bench", pubsub.Persistent()), bus)
	case "follow", "count":
		sub := pubsub.NewSubscription[benchRow](bus, "bench", pubsub.SocketOnly())
		bell := make(chan struct{}, 1)
		sub.Notify(bell)
		if err := bus.Open(); err != nil {
			return err
		}
		running, end := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() { defer close(done); bus.Run(running) }()
		seen, err := listen(ctx, sub, bell, role == "count")
		end()
		<-done
		return errors.Join(err, json.NewEncoder(os.Stdout).Encode(seen))
	}
	return fmt.Errorf("there is no role %q", role)
}

func publish(pub *pubsub.Publication[benchRow], bus *pubsub.Bus) error {
	err := bus.Open()
	for range written {
		err = errors.Join(err, pub.Publish(rowKey(0), row(716)))
	}
	return err
}

// listen handles changes until it has seen the last, and to count every key. It
// returns how long each change was under way; rows of the snapshot do not count, but
// where keys are counted, of which each comes once. A component looks at all rows at
// each bell, and so does this.
func listen(ctx context.Context, sub *pubsub.Subscription[benchRow], bell <-chan struct{}, count bool) (took []time.Duration, err error) {
	seen, last := map[string]int64{}, false
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-bell:
		}
		now := time.Now().UnixNano()
		for key, r := range sub.All() {
			if sent, known := seen[key]; count && !known || known && sub.Synced() && sent != r.Sent {
				took = append(took, time.Duration(now-r.Sent))
			}
			seen[key] = r.Sent
			last = last || r.Last
		}
		if last && (!count || len(seen) == burstKeys) {
			return took, nil
		}
	}
}
