package applogs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// checkpoint is what is kept of one log (docs/wire.md, "App log positions").
type checkpoint struct {
	App       string `json:"app"`
	Pod       string `json:"pod"` // its UID; "" where nothing is kept
	Container string `json:"container"`
	ID        string `json:"id,omitempty"`    // the instance that was read last
	Run       int32  `json:"run,omitempty"`   // which one that was, from 0
	Begun     bool   `json:"begun,omitempty"` // the position is in its log, not in that of one before
	Whole     bool   `json:"whole,omitempty"` // it has ended, and all it wrote is out
	position
	Off     bool    `json:"off,omitempty"`  // nobody wants it: what comes now is never told
	Gaps    int     `json:"gaps,omitempty"` // how many marks told of lines that were not there
	Dropped dropped `json:"dropped,omitzero"`
}

// dropped is what was left out since it was last told.
type dropped struct {
	Lines int       `json:"lines,omitempty"`
	Bytes int       `json:"bytes,omitempty"`
	From  time.Time `json:"from,omitzero"`
}

const (
	// maxLogs bounds the logs that are read at the same time, and with them both
	// files: ten times the pods that a device runs.
	maxLogs = 512
	// slotSize is what one log takes in the journal, in bytes. A slot lies within
	// one page, so a process that dies writes it whole or not at all.
	slotSize = 1024
)

// openJournal opens the file of slots, one for each log, that outlives the process
// but not the boot.
func openJournal(path string) (*os.File, []checkpoint, error) {
	f, _, err := safefile.OpenFile(path, os.O_RDWR|os.O_CREATE|safefile.NoFollow, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open journal of app logs: %w", err)
	}
	raw, err := safefile.Head(f, maxLogs*slotSize)
	if err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("read journal of app logs: %w", err)
	}
	slots := make([]checkpoint, maxLogs)
	for i := range slots {
		if from := i * slotSize; from < len(raw) {
			slots[i] = decodeSlot(raw[from:min(from+slotSize, len(raw))])
		}
	}
	return f, slots, nil
}

// decodeSlot returns what is in a slot; nothing where it is not one of ours.
func decodeSlot(raw []byte) (s checkpoint) {
	raw = bytes.TrimRight(raw, " \n\x00")
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil || s.Pod == "" || s.Container == "" || s.N < 0 || s.Part < 0 {
		return checkpoint{}
	}
	return s
}

var errSlot = errors.New("longer than its slot")

// encodeSlot fills a slot, to be read by people, too.
func encodeSlot(s checkpoint) ([]byte, error) {
	slot := bytes.Repeat([]byte{' '}, slotSize)
	slot[slotSize-1] = '\n'
	if s.Pod == "" {
		return slot, nil
	}
	raw, err := json.Marshal(s)
	if err == nil && len(raw) >= slotSize {
		err = errSlot
	}
	if err != nil {
		return nil, fmt.Errorf("record the log position of container %s: %w", s.Container, err)
	}
	copy(slot, raw)
	return slot, nil
}

// keptSlots reads the file that outlives a boot: one log each line.
func keptSlots(path string) ([]checkpoint, error) {
	slots := make([]checkpoint, maxLogs)
	f, _, err := safefile.OpenFile(path, os.O_RDONLY|safefile.NoFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return slots, nil
	}
	if err != nil {
		return slots, fmt.Errorf("open checkpoints of app logs: %w", err)
	}
	defer f.Close()
	raw, err := safefile.Head(f, maxLogs*slotSize)
	if err != nil {
		return slots, fmt.Errorf("read checkpoints of app logs: %w", err)
	}
	i := 0
	for line := range bytes.Lines(raw) {
		if s := decodeSlot(line); s.Pod != "" && i < len(slots) {
			slots[i] = s
			i++
		}
	}
	return slots, nil
}

func keptText(slots []checkpoint) string {
	var b bytes.Buffer
	for _, s := range slots {
		if s.Pod == "" {
			continue
		}
		if raw, err := json.Marshal(s); err == nil {
			b.Write(raw)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// position is how far one log is handed on. A kubelet is asked for what is not
// older than a second, and lines have times that may repeat: so it is the last
// line's time, and which of those with that very time it was.
type position struct {
	At   time.Time `json:"at,omitzero"`    // of the last line; zero before the first
	N    int       `json:"n,omitempty"`    // how many lines with that time there were; 0 where At is a time and no line
	Part int64     `json:"part,omitempty"` // bytes of the last line that are out while its end is not; 0 once it is
	High time.Time `json:"high,omitzero"`  // the latest time of all lines, where a clock was set back
}

// since is what to ask a kubelet for to find the last line again.
func (p position) since() time.Time { return p.At.Truncate(time.Second) }

// latest is the latest time of all lines.
func (p position) latest() time.Time {
	if p.High.After(p.At) {
		return p.High
	}
	return p.At
}

// ahead reports that the clock is known to have been set back: lines may have later
// times than those that were written after them.
func (p position) ahead(now time.Time) bool { return p.latest().After(p.At) || p.At.After(now) }

func (p *position) line(at time.Time) {
	if at.Equal(p.At) {
		p.N++
	} else {
		latest := p.latest()
		p.At, p.N = at, 1
		p.High = time.Time{}
		if latest.After(at) {
			p.High = latest
		}
	}
	p.Part = 0
}

type verdict int

const (
	known   verdict = iota // it is out already
	rest                   // its beginning is out already
	fresh                  // it is new
	missing                // it is new, but the last known line should have come before it
)

// seeker finds the first new line of a log that begins before it.
type seeker struct {
	from   position
	n      int  // lines with the time of the last known one so far
	found  bool // all that comes is new
	absent bool // the last known line does not come, nor any before it
}

func newSeeker(from position) seeker { return seeker{from: from, found: from.At.IsZero()} }

func (s *seeker) judge(at time.Time) verdict {
	switch {
	case s.found:
		return fresh
	case s.absent:
		s.found = true
		return missing
	case s.from.N == 0: // whatever was before that time is not told
		s.found = !at.Before(s.from.At)
		if s.found {
			return fresh
		}
		return known
	case at.Equal(s.from.At):
		s.n++
		if s.n < s.from.N {
			return known
		}
		s.found = true
		if s.from.Part > 0 {
			return rest
		}
		return known
	case at.After(s.from.At) && s.n > 0: // the others of that time are rotated away
		s.found = true
		return fresh
	case at.After(s.from.latest()):
		s.found = true
		return missing
	}
	return known
}

const (
	// usualInstances is fs.inotify.max_user_instances of a Linux that nobody has
	// set up otherwise.
	usualInstances = 128
	// idle is what a node takes of them without any log, with some to spare: a kubelet
	// 6, a containerd 1, an API server 6, a controller manager 5, this agent 3.
	idle = 24
	// apart is how far apart silent streams are asked for again at least.
	apart = 5 * time.Second
	// maxReads is how many logs without a stream are read at the same time.
	maxReads = 16
)

// Streams is how many logs may be followed at the same time. A kubelet takes an
// inotify instance for each, of which root has a number on the whole device: half
// of them stay free. proc is where /proc is.
func Streams(proc string) int {
	text, err := safefile.Read(filepath.Join(proc, "sys/fs/inotify/max_user_instances"), safefile.Small)
	n, wrong := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || wrong != nil {
		n = usualInstances
	}
	return min(max(n/2-idle, 1), maxLogs)
}

// readSlots bounds what is asked of a kubelet at the same time: logs that are
// followed, which keep their place while they are, and those that are read from
// time to time.
type readSlots struct {
	reads chan struct{} // has room for one more

	mu     sync.Mutex
	taken  int // streams
	free   int // streams
	urgent int // logs that write much and have no stream
}

// follow takes a place for a stream, if there is one. While logs that write much
// have none, the others get none.
func (p *readSlots) follow(urgent bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == 0 || !urgent && p.free <= p.urgent {
		return false
	}
	p.free, p.taken = p.free-1, p.taken+1
	return true
}

func (p *readSlots) unfollow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free, p.taken = p.free+1, p.taken-1
}

// quiet is how long a stream may be silent before its log is asked for again:
// longer where there are many.
func (p *readSlots) quiet() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(quiet, time.Duration(p.taken)*apart)
}

// press notes that one more log needs a stream more than others do, or one less.
func (p *readSlots) press(more int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.urgent += more
}

// wanted reports that a log that does not need its stream is to give it up.
func (p *readSlots) wanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.urgent > p.free
}

// read waits until one more log may be read.
func (p *readSlots) read(ctx context.Context) error {
	select {
	case p.reads <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *readSlots) unread() { <-p.reads }
