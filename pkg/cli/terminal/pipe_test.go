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
			if err := o.Follow(ctx, Terminal{Writer: write, Fd: -1}, w); err != nil || time.Since(began) != time.Hour {
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
		if err := <-ended; err != nil {
			t.Error(err)
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

func TestUntilPassesErrorsOnAndKeepsNothingOfTheCaller(t *testing.T) {
	if _, err := Until(t.Context(), &broken{1}).Write([]byte("ab")); err == nil || errors.Is(err, errGivenUp) {
		t.Errorf("a broken pipe is %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		read, write := io.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		text := []byte("new")
		if n, err := Until(ctx, write).Write(text); n != 0 || !errors.Is(err, errGivenUp) {
			t.Errorf("wrote %d, %v", n, err)
		}
		copy(text, "old")
		got := make([]byte, 3)
		if _, err := io.ReadFull(read, got); err != nil || string(got) != "new" {
			t.Errorf("read %q, %v", got, err)
		}
	})
}
