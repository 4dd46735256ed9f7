package page

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/printable"
	"github.com/zedkube/zedkube/types"
)

const (
	maxTails = 8 // how many may read logs at once
	// usualTail and maxTail are how many lines of the past of each container.
	usualTail  = 500
	maxTail    = 5000
	maxSources = 16 // how many containers of one application are read
	// maxFollowed are how many containers are followed at once, for all who read:
	// each takes an inotify instance of its kubelet, of which root has 128 as a rule
	// and the lines of applications take 40.
	maxFollowed  = 32
	maxLine      = 4096                   // how much of one line is shown
	gather       = 100 * time.Millisecond // how long lines are put together before they are sent
	maxGather    = 64 << 10               // how much is put together
	guestConsole = "guest-console-log"    // the container that writes the console of a virtual machine
)

// Each line of an answer begins with what it is, so that no application can
// pretend to be the page.
const (
	fromApp  = ' '
	fromPage = '!'
)

type source struct {
	pod       types.Pod
	container string
}

// serveLogs sends the newest lines of an application, and with follow=1 those
// that come, until its containers end or the browser goes.
func (p *Page) serveLogs(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	tail, err := strconv.ParseInt(query.Get("tail"), 10, 64)
	if query.Get("tail") == "" {
		tail = usualTail
	} else if err != nil || tail < 1 || tail > maxTail {
		http.Error(w, fmt.Sprintf("tail: want a number from 1 to %d", maxTail), http.StatusBadRequest)
		return
	}
	app, ok := p.Configs.Get(query.Get("app"))
	if !ok {
		http.Error(w, "no application on this device has that UUID", http.StatusNotFound)
		return
	}
	sources := p.sources(app)
	if len(sources) == 0 {
		http.Error(w, "the application has no container that has started on any node: there is no log", http.StatusNotFound)
		return
	}
	if !p.tails.enter(share(r, maxTails)) {
		tooMany(w, "%d other viewers are reading logs", share(r, maxTails))
		return
	}
	defer p.tails.exit(0, nil)
	follow := query.Get("follow") == "1"
	if follow {
		n := int64(len(sources))
		defer p.followed.Add(-n)
		if p.followed.Add(n) > int64(share(r, maxFollowed)) {
			tooMany(w, "at most %d container logs can be followed at a time, for all viewers: stop another one, or do not follow", share(r, maxFollowed))
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	o := types.LogOptions{Follow: follow, Tail: tail}
	lines := make(chan []byte)
	var work boundedhttp.Group
	work.Go(func() {
		defer close(lines)
		p.tail(ctx, sources, o, lines)
	})
	relay(lowPriority(w), lines, cancel)
	work.Wait()
}

// sources are the logs of an application, of what runs now or ran last, the
// oldest pod first.
func (p *Page) sources(app types.AppInstanceConfig) []source {
	var found []source
	for _, pod := range p.AppPods.All() {
		if !app.OwnsAny(pod) {
			continue
		}
		for _, c := range pod.Containers {
			if c.Now.ID != "" && (!app.IsVMI() || c.Name == guestConsole) {
				found = append(found, source{pod, c.Name})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b source) int {
		return cmp.Or(a.pod.Created.Compare(b.pod.Created), strings.Compare(a.pod.Key(), b.pod.Key()))
	})
	return found[max(0, len(found)-maxSources):]
}

// tail reads the sources: side by side where they are followed, else one after
// the other. It returns when all of them have ended.
func (p *Page) tail(ctx context.Context, sources []source, o types.LogOptions, lines chan<- []byte) {
	read := func(s source) {
		o := o
		o.Container = s.container
		name := printable.Escape(s.pod.Name + "/" + s.container)
		head := ""
		if len(sources) > 1 {
			head = name + " "
		}
		say(ctx, lines, fromPage, name+": "+printable.Escape(ended(p.copy(ctx, s.pod, o, head, lines), o.Follow)))
	}
	var readers boundedhttp.Group
	for _, s := range sources {
		if !o.Follow {
			read(s)
			continue
		}
		readers.Go(func() { read(s) })
	}
	readers.Wait() // they have said what there was to say
}

func ended(err error, follow bool) string {
	switch {
	case errors.Is(err, types.ErrNoLog):
		return "there is no log, or it no longer exists"
	case errors.Is(err, types.ErrNoAPI):
		return "the API server does not answer: " + err.Error()
	case err != nil:
		return "the log was interrupted: " + err.Error()
	case follow:
		return "the container has terminated"
	}
	return "end of the log so far"
}

func (p *Page) copy(ctx context.Context, pod types.Pod, o types.LogOptions, head string, lines chan<- []byte) error {
	body, err := p.Kube.Logs(ctx, pod, o)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer body.Close()
	in := bufio.NewReaderSize(body, maxLine)
	for {
		text, cut, err := readLine(in)
		if text != "" || err == nil {
			text = head + printable.Escape(text)
			if cut > 0 {
				text += fmt.Sprintf(" [%d more bytes]", cut)
			}
			say(ctx, lines, fromApp, text)
		}
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("read log: %w", ctx.Err())
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read log: %w", err)
		}
	}
}

// readLine reads one line, and how many bytes of it were too many.
func readLine(in *bufio.Reader) (text string, cut int, err error) {
	part, err := in.ReadSlice('\n')
	text = strings.TrimRight(string(part), "\r\n")
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = in.ReadSlice('\n')
		cut += len(bytes.TrimRight(part, "\r\n"))
	}
	return text, cut, err
}

func say(ctx context.Context, lines chan<- []byte, from byte, text string) {
	select {
	case lines <- append(append([]byte{from}, text...), '\n'):
	case <-ctx.Done():
	}
}

// relay sends lines, several at once where they come fast, until there are no
// more. It returns when their sender has ended; where the browser takes none,
// it stops that one.
func relay(out *stream, lines <-chan []byte, stop func()) {
	gone := out.control.Flush() != nil // the browser is to know that it follows, before the first line
	if gone {
		stop()
	}
	for first := range lines {
		if gone {
			continue // until their sender has noticed
		}
		text := bytes.NewBuffer(first)
		gathered := time.NewTimer(gather)
		for more := true; more && text.Len() < maxGather; {
			select {
			case next, ok := <-lines:
				more = ok
				text.Write(next)
			case <-gathered.C:
				more = false
			}
		}
		gathered.Stop()
		if gone = out.send(text.Bytes()) != nil; gone {
			stop()
		}
	}
}
