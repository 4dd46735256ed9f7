package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pubsub"
)

// paced is how many publications are timed one by one, a millisecond apart.
const paced = 1000

// benchRow is a topic of nested objects, as EVE's are.
type benchRow struct {
	Sent  int64 // ns since 1970
	Last  bool  // nothing follows
	Parts []benchPart
}

type benchPart struct {
	ID, Name string
	On       bool
	Count    int
}

// row returns a row of about size bytes of JSON.
func row(size int) benchRow {
	const id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	r := benchRow{Sent: time.Now().UnixNano(), Parts: make([]benchPart, (size-50)/83)}
	for i := range r.Parts {
		r.Parts[i] = benchPart{id, "part", i%2 == 0, i}
	}
	return r
}

func rowKey(i int) string { return fmt.Sprintf("%05d", i) }

// pubsub measures the way from a publication to a subscription in another
// process, which is this program once more. The files are on a tmpfs where
// there is one, as /run is.
func (b *bench) pubsub(ctx context.Context) error {
	if err := b.burst(ctx); err != nil {
		return err
	}
	for _, c := range []struct {
		size, keys           int
		baseline, goal, rate string
	}{
		{716, 1, "p50 309 µs, p99 2.0 ms", "p50 ≤ 150 µs, p99 ≤ 1 ms", "2,121/s"},
		{716, 300, "p50 48 ms", "as with one key", "19.7/s"},
		{2800, 1, "3.4 ms", "≤ 0.4 ms", "—"},
		{2800, 300, "473 ms", "≤ 0.4 ms", "—"},
	} {
		took, err := b.latency(ctx, c.size, c.keys)
		if err != nil {
			return err
		}
		rate, seen, err := b.throughput(ctx, c.size, c.keys)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("publish → handler in another process, one each ms, %d B, %d keys in the topic", c.size, c.keys)
		b.add(what, c.baseline, c.goal, "p50 %d µs, p99 %d µs of %d", micros(took, 50), micros(took, 99), len(took))
		b.add("the same without a pause", c.rate, "—", "%.0f/s published, %.0f/s handled (the newest counts)", rate, seen)
	}
	return b.syncs(ctx)
}

func micros(ds []time.Duration, percent int) int64 {
	return slices.Sorted(slices.Values(ds))[len(ds)*percent/100].Microseconds()
}

// stage is a publication with a subscriber in another process.
type stage struct {
	pub     *pubsub.Publication[benchRow]
	listens *exec.Cmd
	answer  io.Reader
	close   func()
}

// setUp publishes keys rows and starts the subscriber, which follows once this
// returns.
func setUp(ctx context.Context, role string, size, keys int) (*stage, error) {
	root, err := os.MkdirTemp(memory(), "zedkube-bench-")
	if err != nil {
		return nil, err
	}
	bus := pubsub.NewBus(root, quiet())
	s := &stage{pub: pubsub.NewPublication[benchRow](bus, "bench")}
	if err := bus.Open(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); bus.Run(running) }()
	s.close = func() { stop(); <-done; os.RemoveAll(root) }
	for i := range keys {
		err = errors.Join(err, s.pub.Publish(rowKey(i), row(size)))
	}
	if err == nil {
		s.listens, s.answer, err = again(ctx, role, root)
	}
	if err == nil {
		err = until(ctx, "a subscriber", time.Millisecond, func() bool {
			st := bus.Stats()[0]
			return st.Clients == 1 && st.Messages == uint64(keys)
		})
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, pause(ctx, 50*time.Millisecond)
}

// again starts this program in another role.
func again(ctx context.Context, role, root string) (*exec.Cmd, io.Reader, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-role", role, "-root", root)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return cmd, out, cmd.Start()
}

// end returns what the subscriber measured.
func (s *stage) end() (seen []time.Duration, err error) {
	err = json.NewDecoder(s.answer).Decode(&seen)
	return seen, errors.Join(err, s.listens.Wait())
}

func (b *bench) latency(ctx context.Context, size, keys int) ([]time.Duration, error) {
	s, err := setUp(ctx, "follow", size, keys)
	if err != nil {
		return nil, err
	}
	defer s.close()
	for i := range paced {
		r := row(size)
		r.Last = i == paced-1
		if err := errors.Join(s.pub.Publish(rowKey(i%keys), r), pause(ctx, time.Millisecond)); err != nil {
			return nil, err
		}
	}
	return s.end()
}

// throughput publishes as fast as it goes.
func (b *bench) throughput(ctx context.Context, size, keys int) (published, handled float64, err error) {
	s, err := setUp(ctx, "follow", size, keys)
	if err != nil {
		return 0, 0, err
	}
	defer s.close()
	const rows = 5000
	began := time.Now()
	for i := range rows {
		r := row(size)
		r.Last = i == rows-1
		if err := s.pub.Publish(rowKey(i%keys), r); err != nil {
			return 0, 0, err
		}
	}
	published = rows / time.Since(began).Seconds()
	seen, err := s.end()
	return published, float64(len(seen)) / time.Since(began).Seconds(), err
}

// burstKeys is how many keys are published at once.
const burstKeys = 10000

// burst publishes many new keys at once, each of which counts once it is handled.
func (b *bench) burst(ctx context.Context) error {
	s, err := setUp(ctx, "count", 716, 0)
	if err != nil {
		return err
	}
	defer s.close()
	before := residentMB(os.Getpid())
	began := time.Now()
	for i := range burstKeys {
		r := row(716)
		r.Last = i == burstKeys-1
		if err := s.pub.Publish(rowKey(i), r); err != nil {
			return err
		}
	}
	took := time.Since(began)
	handled, err := s.end()
	if err != nil {
		return err
	}
	all := time.Since(began)
	if len(handled) != burstKeys {
		return fmt.Errorf("%d of %d keys were handled", len(handled), burstKeys)
	}
	b.add("burst of 10,000 distinct keys of 716 B, all handled", "11.9k/s, after 5.0 s, publisher 68 MB", "≥ 12k/s, after ≤ 1 s, ≤ 45 MB",
		"%.1fk/s, after %s, publisher %.0f MB (%.0f before)", burstKeys/took.Seconds()/1000, short(all), residentMB(os.Getpid()), before)
	return nil
}

// memory is a directory on a tmpfs, or "" for that of temporary files.
func memory() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

func quiet() *logrus.Logger {
	log := logrus.New()
	log.SetLevel(logrus.WarnLevel)
	return log
}
