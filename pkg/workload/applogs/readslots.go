package applogs

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

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

func newReadSlots(streams int) *readSlots {
	return &readSlots{reads: make(chan struct{}, maxReads), free: streams}
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
