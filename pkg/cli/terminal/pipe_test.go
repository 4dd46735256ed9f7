package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func TestAWatchEndsWithItsContextThoughNobodyReads(t *testing.T) {
	for name, w := range map[string]Watch{
		"documents": {Look: func(context.Context) View { return look(1) }},
		"events":    {Look: func(context.Context) View { return View{Events: []Event{{Raw: []byte("a")}}} }, Events: true},
		"rows":      {Look: func(context.Context) View { return View{Rows: []Row{{"a", "1"}}} }},
	} {
		synctest.Test(t, func(t *testing.T) {
			read, write := io.Pipe()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			o, began := Outputs{}, time.Now()
			if name == "documents" {
				o.form = formJSON
			}
			w.Every = time.Second
			if err := o.Follow(ctx, Terminal{Writer: write, Fd: -1}, w); !errors.Is(err, ErrInterrupted) || time.Since(began).Truncate(time.Second) != time.Hour {
				t.Errorf("%s: it ended with %v after %v", name, err, time.Since(began))
			}
			read.Close() // what was given up ends
		})
	}
}

func TestASlowReaderGetsTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read, write := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		var looks atomic.Int32
		age := func(context.Context) View {
			looks.Add(1)
			return View{Events: []Event{{Raw: fmt.Appendln(nil, int(time.Since(began).Seconds()))}}}
		}
		ended := make(chan error)
		go func() {
			ended <- new(Outputs).Follow(ctx, Terminal{Writer: write, Fd: -1}, Watch{Look: age, Every: time.Second, Events: true})
		}()
		lines := bufio.NewScanner(read)
		next := func() int {
			lines.Scan()
			n, err := strconv.Atoi(lines.Text())
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		next()
		time.Sleep(time.Hour)
		if next(); looks.Load() > 3 { // the one that waited
			t.Errorf("%d looks while nobody read", looks.Load())
		}
		if got := next(); got < 3600 {
			t.Errorf("after an hour it is told of second %d", got)
		}
		cancel()
		read.Close()
		if err := <-ended; !errors.Is(err, ErrInterrupted) || Complaint(err) != "" {
			t.Errorf("interrupted, it ends with %v", err)
		}
	})
}

func TestAReaderThatGoesIsNoticedWhenNothingIsWritten(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	looked, ended := make(chan struct{}, 1), make(chan error)
	quiet := func(context.Context) View {
		select {
		case looked <- struct{}{}:
		default:
		}
		return View{}
	}
	go func() {
		ended <- new(Outputs).Follow(t.Context(), Of(write), Watch{Look: quiet, Every: time.Hour, Events: true})
	}()
	<-looked
	select {
	case err := <-ended:
		t.Fatalf("it ended with %v while somebody could read", err)
	case <-time.After(100 * time.Millisecond):
	}
	read.Close()
	if err := <-ended; !errors.Is(err, errNoReader) || !strings.HasPrefix(err.Error(), "write: ") {
		t.Errorf("it ended with %v", err)
	}
}

func TestABrokenConnectionDoesNotEndAWatch(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0])
	looked, ended := make(chan struct{}), make(chan error)
	look := func(ctx context.Context) View {
		select {
		case looked <- struct{}{}:
		case <-ctx.Done():
		}
		return View{}
	}
	go func() {
		ended <- new(Outputs).Follow(t.Context(), Of(write), Watch{Look: look, Every: 10 * time.Millisecond, Events: true})
	}()
	<-looked
	unix.Close(ends[1])
	if _, err := unix.Write(ends[0], []byte("ab")); !errors.Is(err, unix.EPIPE) { // which raises SIGPIPE
		t.Fatal(err)
	}
	for range 20 {
		select {
		case <-looked:
		case err := <-ended:
			t.Fatalf("it ended with %v while somebody reads", err)
		}
	}
	read.Close()
	if err := <-ended; !errors.Is(err, errNoReader) {
		t.Errorf("it ended with %v", err)
	}
}

func TestAWatchThatIsOverEndsWithItsOwnCodeThoughItsReaderIsGone(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	over := ExitWith(ExitNotPublished, errors.New("it is over"))
	look := func(ctx context.Context) View {
		read.Close() // as head does after the lines that it wants
		<-ctx.Done()
		return View{Ended: true, Err: over}
	}
	if err := new(Outputs).Follow(t.Context(), Of(write), Watch{Look: look, Every: time.Hour, Events: true}); !errors.Is(err, over) {
		t.Errorf("it ended with %v", err)
	}
}

func TestTheLastMessageIsNotCutForOneWhoReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read, write := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan string)
		go func() {
			half := make([]byte, 3)
			_, _ = io.ReadFull(read, half)
			cancel() // in the middle of the message
			time.Sleep(10 * time.Millisecond)
			_, _ = io.ReadFull(read, half)
			got <- string(half)
		}()
		if n, err := Until(ctx, write).Write([]byte("newest")); n != 6 || err != nil {
			t.Errorf("wrote %d, %v", n, err)
			read.Close()
		}
		if rest := <-got; rest != "est" {
			t.Errorf("the rest is %q", rest)
		}
	})
}

func TestUntilPassesErrorsOnAndKeepsNothingOfTheCaller(t *testing.T) {
	if _, err := Until(t.Context(), &broken{1}).Write([]byte("ab")); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("a broken pipe is %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		read, write := io.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		text := []byte("new")
		if n, err := Until(ctx, write).Write(text); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wrote %d, %v", n, err)
		}
		copy(text, "old")
		got := make([]byte, 3)
		if _, err := io.ReadFull(read, got); err != nil || string(got) != "new" {
			t.Errorf("read %q, %v", got, err)
		}
	})
}
