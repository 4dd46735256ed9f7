// Package agentlog is the agent's log: JSON lines with the field names of EVE's agents,
// on an output that applications' lines share and that holds nobody up.
package agentlog

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/printable"
)

const (
	// keptLines are as many of the agent's own lines as wait while nobody reads.
	keptLines = 4096
	// lastWords is how long the end of the agent waits for the reader.
	lastWords = 2 * time.Second
)

// output is where all lines go, each whole: a pipe takes more than 4 KiB in
// pieces, between which another writer's would come.
type output struct {
	mu   sync.Mutex
	file *os.File
}

// openOutput opens what stands behind stderr once more, so that a write to a
// pipe that nobody reads can be given up; what cannot be opened is used as it is.
func openOutput(stderr *os.File) *output {
	name := fmt.Sprintf("/proc/self/fd/%d", stderr.Fd())
	// A fifo whose reader is away opens for reading, too, and for nothing else.
	for _, way := range []int{os.O_WRONLY, os.O_RDWR} {
		if file, err := os.OpenFile(name, way|os.O_APPEND|syscall.O_NONBLOCK, 0); err == nil {
			return &output{file: file}
		}
	}
	return &output{file: stderr}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.file.Write(p)
}

// end gives up writes that last longer than the end may.
func (o *output) end() {
	_ = o.file.SetWriteDeadline(time.Now().Add(lastWords)) // fails where it cannot block
}

// lossy is an io.Writer for the agent's own log that never waits for the
// reader: what does not fit is counted, and said when there is room again.
type lossy struct {
	lines chan []byte
	done  chan struct{}

	mu    sync.Mutex
	lost  int
	ended bool
}

func newLossy(w io.Writer) *lossy {
	p := &lossy{lines: make(chan []byte, keptLines), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for line := range p.lines {
			_, _ = w.Write(line)
			if n := p.forget(); n > 0 {
				_, _ = fmt.Fprintf(w, `{"level":"warning","msg":"%d lines of the agent's log were dropped because nothing read them","source":"zedkube","time":"%s"}`+"\n",
					n, time.Now().Format(time.RFC3339Nano))
			}
		}
	}()
	return p
}

func (p *lossy) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return len(line), nil
	}
	select {
	case p.lines <- append([]byte(nil), line...):
	default:
		p.lost++
	}
	return len(line), nil
}

func (p *lossy) forget() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.lost
	p.lost = 0
	return n
}

// end writes what waits. What comes from then on, of one that hangs, is left out.
func (p *lossy) end() {
	p.mu.Lock()
	p.ended = true
	close(p.lines)
	p.mu.Unlock()
	<-p.done
}

// Open makes the agent's log on stderr, and the output that it shares with the lines of
// applications. end writes what waits; both are given up soon after ctx is done.
func Open(ctx context.Context, stderr *os.File) (log *logrus.Logger, out io.Writer, end func()) {
	shared, own, end := open(ctx, stderr)
	return New(own), shared, end
}

func open(ctx context.Context, stderr *os.File) (out *output, own *lossy, end func()) {
	out = openOutput(stderr)
	own = newLossy(out)
	stop := context.AfterFunc(ctx, out.end)
	return out, own, func() {
		stop()
		out.end()
		own.end()
	}
}

// New logs JSON lines with the field names of EVE's agents, which newlogd
// reads (docs/wire.md, "Log lines").
func New(w io.Writer) *logrus.Logger {
	logrus.ErrorKey = "err" // one name for it, no matter who logs
	log := logrus.New()
	log.SetOutput(w)
	log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano})
	log.AddHook(identity{"source": "zedkube", "pid": os.Getpid()})
	return log
}

type identity logrus.Fields

func (identity) Levels() []logrus.Level { return logrus.AllLevels }

// Fire implements logrus.Hook. What other programs wrote is in errors, too: a
// terminal that shows the device's log must not act upon it.
func (i identity) Fire(e *logrus.Entry) error {
	e.Message = escapeLines(e.Message)
	for k, v := range e.Data {
		switch v := v.(type) {
		case string:
			e.Data[k] = escapeLines(v)
		case error:
			e.Data[k] = escapeLines(v.Error())
		}
	}
	for k, v := range i {
		e.Data[k] = v
	}
	return nil
}

// escapeLines is printable.Escape for a text of lines.
func escapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable.Escape(lines[i])
	}
	return strings.Join(lines, "\n")
}
