package applogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/types"
)

// kubelet plays one: it keeps the log of the present instance and of the one
// before, and serves of each what is not rotated away.
type kubelet struct {
	mu      sync.Mutex
	change  chan struct{} // closed at each change
	logs    map[string]*containerLog
	down    error // answers every request
	streams map[*stream]bool
	opened  int
	asked   map[string]int // the same, by container
	most    int            // streams that follow at the same time
	refused int            // requests
	keeps   int            // rotated files of a log, 0 if they are not served
	brief   bool           // streams end where the log does
}

type containerLog struct {
	now, last *instanceLog
	restarts  int32
}

// instanceLog is the log of one instance.
type instanceLog struct {
	id      string
	text    []string // "time line\n", the last one maybe without an end
	at      []time.Time
	rotated []int // how many lines there were each time
	removed bool
	started time.Time
	ended   time.Time
}

func newKubelet() *kubelet {
	return &kubelet{change: make(chan struct{}), logs: map[string]*containerLog{}, streams: map[*stream]bool{}, asked: map[string]int{}}
}

// do changes what is there.
func (k *kubelet) do(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
	close(k.change)
	k.change = make(chan struct{})
}

// opens is how many streams were opened, and how many at the same time.
func (k *kubelet) opens() (all, most int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.opened, k.most
}

// write adds a line to the present instance.
func (k *kubelet) write(container, line string) {
	k.do(func() { k.logs[container].now.add(time.Now(), line+"\n") })
}

func (l *instanceLog) add(at time.Time, text string) {
	if n := len(l.text); n > 0 && !strings.HasSuffix(l.text[n-1], "\n") {
		l.text[n-1] += text
		return
	}
	l.text = append(l.text, at.UTC().Format("2006-01-02T15:04:05.000000000Z07:00")+" "+text)
	l.at = append(l.at, at)
}

// restart ends the present instance, if there is one, and starts the next.
func (k *kubelet) restart(container string) {
	k.do(func() {
		l := k.logs[container]
		if l == nil {
			l = &containerLog{}
			k.logs[container] = l
		} else {
			if l.now.ended.IsZero() {
				l.now.ended = time.Now()
			}
			l.last, l.restarts = l.now, l.restarts+1
		}
		l.now = &instanceLog{id: fmt.Sprintf("containerd://%s-%d", container, l.restarts), started: time.Now()}
	})
}

func (k *kubelet) stop(container string) {
	k.do(func() { k.logs[container].now.ended = time.Now() })
}

// lag makes every stream stay at the end of what there is now, as a kubelet does
// that has missed a rotation.
func (k *kubelet) lag() {
	k.do(func() {
		for s := range k.streams {
			s.stale = len(s.log.text)
		}
	})
}

func (k *kubelet) rotate(container string) {
	k.do(func() {
		l := k.logs[container].now
		l.rotated = append(l.rotated, len(l.text))
	})
}

// newest is the first line that is served to new requests.
func (l *instanceLog) newest() int {
	if n := len(l.rotated); n > 0 {
		return l.rotated[n-1]
	}
	return 0
}

// cut breaks all streams, with an error or as if they had ended.
func (k *kubelet) cut(err error) {
	k.do(func() {
		for s := range k.streams {
			s.cut = err
		}
	})
}

// row is the container as the API server shows it.
func (k *kubelet) row(container string) types.Container {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.logs[container]
	run := func(i *instanceLog) types.ContainerRun {
		if i == nil {
			return types.ContainerRun{}
		}
		return types.ContainerRun{ID: i.id, Started: i.started.Truncate(time.Second), Finished: i.ended.Truncate(time.Second)}
	}
	return types.Container{Name: container, Now: run(l.now), Last: run(l.last), Restarts: l.restarts}
}

// Logs implements Kube.
func (k *kubelet) Logs(ctx context.Context, _ types.Pod, o types.LogOptions) (io.ReadCloser, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.down != nil {
		k.refused++
		return nil, k.down
	}
	l := k.logs[o.Container]
	if l == nil {
		return nil, types.ErrNoLog
	}
	i := l.now
	if o.Previous {
		i = l.last
	}
	if i == nil || i.removed {
		return nil, types.ErrNoLog
	}
	s := &stream{k: k, ctx: ctx, log: i, line: i.newest(), follow: o.Follow, since: o.Since.Truncate(time.Second)}
	k.streams[s] = true
	k.opened++
	k.asked[o.Container]++
	following := 0
	for s := range k.streams {
		if s.follow {
			following++
		}
	}
	k.most = max(k.most, following)
	return s, nil
}

// LogFiles implements Kube.
func (k *kubelet) LogFiles(_ context.Context, _ types.Node, _ types.Pod, container string) ([]types.LogFile, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opened++
	k.asked[container]++
	l := k.logs[container]
	switch {
	case k.down != nil:
		return nil, k.down
	case l == nil || k.keeps == 0:
		return nil, types.ErrNoLog
	}
	var files []types.LogFile
	for run, i := range map[int32]*instanceLog{l.restarts - 1: l.last, l.restarts: l.now} {
		if i == nil {
			continue
		}
		for n := range i.rotated {
			if n >= len(i.rotated)-k.keeps {
				files = append(files, types.LogFile{Run: run, Name: fmt.Sprintf("%d.log.%03d", run, n), Rotated: true})
			}
		}
		files = append(files, types.LogFile{Run: run, Name: fmt.Sprintf("%d.log", run)})
	}
	slices.SortFunc(files, types.LogFile.Compare)
	return files, nil
}

// LogFile implements Kube.
func (k *kubelet) LogFile(ctx context.Context, _ types.Node, _ types.Pod, container string, file types.LogFile) (io.ReadCloser, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opened++
	k.asked[container]++
	if k.down != nil {
		return nil, k.down
	}
	l := k.logs[container]
	i := l.now
	if file.Run != l.restarts {
		i = l.last
	}
	var n int
	if _, err := fmt.Sscanf(file.Name, fmt.Sprintf("%d.log.%%d", file.Run), &n); err != nil {
		return nil, err
	}
	s := &stream{k: k, ctx: ctx, log: i, end: i.rotated[n]}
	if n > 0 {
		s.line = i.rotated[n-1]
	}
	k.streams[s] = true
	return s, nil
}

type stream struct {
	k      *kubelet
	ctx    context.Context
	log    *instanceLog
	end    int // the line before which a file ends; 0 of the newest
	line   int
	offset int // in the line
	follow bool
	since  time.Time
	stale  int // lines after which nothing comes; 0: all come
	cut    error
}

func (s *stream) Read(p []byte) (int, error) {
	for {
		s.k.mu.Lock()
		n, err := s.read(p)
		change := s.k.change
		s.k.mu.Unlock()
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-change:
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
	}
}

func (s *stream) read(p []byte) (n int, err error) {
	if s.cut != nil {
		return 0, s.cut
	}
	if s.ctx.Err() != nil {
		return 0, s.ctx.Err()
	}
	for s.line < len(s.log.text) && (s.end == 0 || s.line < s.end) && n < len(p) && (s.stale == 0 || s.line < s.stale) {
		text := s.log.text[s.line]
		if s.log.at[s.line].Before(s.since) {
			s.line++
			continue
		}
		c := copy(p[n:], text[s.offset:])
		n, s.offset = n+c, s.offset+c
		if s.offset < len(text) || !strings.HasSuffix(text, "\n") {
			break
		}
		s.line, s.offset = s.line+1, 0
	}
	if n == 0 && (!s.follow || s.k.brief || !s.log.ended.IsZero()) {
		return 0, io.EOF
	}
	return n, nil
}

func (s *stream) Close() error {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	delete(s.k.streams, s)
	return nil
}

var errCut = errors.New("connection reset")
