package screen

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// Recording is the file of the repository, seen from its root.
const Recording = "test/demo/recording.gz"

// Moment is one thing that a recording shows: an event, the outcome of a step,
// the table of the nodes, or what the page of one node was sent.
type Moment struct {
	At float64 // seconds since the beginning

	Who, Agent, Text string   `json:",omitempty"` // an event
	Step, Detail     string   `json:",omitempty"` // the outcome of a step
	Failed           bool     `json:",omitempty"`
	Table            []string `json:",omitempty"`
	Page             string   `json:",omitempty"` // a piece of its stream of events, as sent
}

// Recorder keeps what a view shows, and when. A nil one keeps nothing.
type Recorder struct {
	mu      sync.Mutex
	start   time.Time
	moments []Moment
	table   []string // the last
}

func (r *Recorder) begin() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start = time.Now()
}

func (r *Recorder) add(m Moment) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.Table != nil {
		if slices.Equal(m.Table, r.table) {
			return
		}
		r.table = m.Table
	}
	m.At = float64(time.Since(r.start).Milliseconds()) / 1000
	r.moments = append(r.moments, m)
}

// Listen keeps what a page is sent, until ctx is done. The page is asked for
// again where the stream ends, as a browser does.
func (r *Recorder) Listen(ctx context.Context, open func(context.Context) (io.ReadCloser, error)) {
	for ctx.Err() == nil {
		if stream, err := open(ctx); err == nil {
			r.listen(stream)
			stream.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// listen keeps the messages of a stream, each of which ends with an empty line.
func (r *Recorder) listen(stream io.Reader) {
	lines := bufio.NewReader(stream)
	var message bytes.Buffer
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		message.Write(line)
		if len(line) == 1 {
			r.add(Moment{Page: message.String()})
			message.Reset()
		}
	}
}

// Save writes what was recorded, compressed JSON, a line for each moment.
func (r *Recorder) Save(path string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out bytes.Buffer
	packed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(packed)
	lines.SetEscapeHTML(false)
	for _, m := range r.moments {
		if err := lines.Encode(m); err != nil {
			return err
		}
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

// Draw writes it as a picture.
func (r *Recorder) Draw(path string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return os.WriteFile(path, SVG(r.moments), 0o644)
}

// Load reads what Save wrote.
func Load(path string) ([]Moment, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	packed, err := gzip.NewReader(bufio.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("read the recording %s: %w", path, err)
	}
	var moments []Moment
	lines := json.NewDecoder(packed)
	for {
		var m Moment
		if err := lines.Decode(&m); errors.Is(err, io.EOF) {
			return moments, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the recording %s: %w", path, err)
		}
		moments = append(moments, m)
	}
}

// Play shows a recording as fast as it was recorded, below the lines of head,
// until it ends or ctx is done. Page, if not nil, is called for each piece of the
// page's stream.
func (v *View) Play(ctx context.Context, moments []Moment, head func() []string, page func(string)) {
	var mu sync.Mutex
	var table []string
	v.Begin(func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Concat(head(), table)
	}, nil)
	begin := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for _, m := range moments {
		for at := begin.Add(time.Duration(m.At * float64(time.Second))); time.Now().Before(at); {
			select {
			case <-ctx.Done():
				return
			case <-tick.C: // the head changes
				v.Changed()
			case <-time.After(time.Until(at)):
			}
		}
		switch {
		case m.Page != "" && page != nil:
			page(m.Page)
		case m.Step != "":
			v.Step(!m.Failed, m.Step, m.Detail)
		case m.Text != "":
			v.Event(m.Who, m.Agent, m.Text)
		case m.Table != nil:
			mu.Lock()
			table = m.Table
			mu.Unlock()
			v.Changed()
		}
	}
}
