package page

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestALogIsReadOnceWithItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		app := s.app(1, false, "main")
		s.kube.text = "one\ntwo\r\nthree"
		b := s.ask("/api/logs?app="+app, false)
		<-b.gone
		want := " one\n two\n three\n!app1-0/main: end of the log so far\n"
		if got := b.took(); got != want {
			t.Errorf("got %q\nwant %q", got, want)
		}
		if o := s.kube.options[0]; o.Follow || o.Tail != usualTail || o.Container != "main" {
			t.Errorf("asked with %+v", o)
		}
		if s.kube.open != 0 {
			t.Error("the log is still open")
		}
	})
}

func TestALogIsFollowedUntilTheBrowserGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		app := s.app(1, false, "main", "side")
		s.kube.lines = make(chan string)
		b := s.ask("/api/logs?follow=1&tail=7&app="+app, false)
		s.kube.lines <- "hello\n"
		time.Sleep(gather * 2)
		if got := b.took(); got != " app1-0/main hello\n" && got != " app1-0/side hello\n" {
			t.Errorf("got %q", got)
		}
		if len(s.kube.options) != 2 || !s.kube.options[1].Follow || s.kube.options[0].Tail != 7 {
			t.Errorf("asked with %+v", s.kube.options)
		}
		b.leave()
		synctest.Wait()
		if s.kube.open != 0 {
			t.Errorf("%d logs are still open", s.kube.open)
		}
	})
}

func TestWhoTakesNoLinesIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		app := s.app(1, false, "main")
		s.kube.text = strings.Repeat("line\n", 1000)
		s.kube.lines = make(chan string)
		b := s.ask("/api/logs?follow=1&app="+app, true)
		time.Sleep(patience + time.Second)
		select {
		case <-b.gone:
		default:
			t.Fatal("it is still served")
		}
		if s.kube.open != 0 {
			t.Error("the log is still open")
		}
	})
}

func TestLinesAreBoundedAndEscaped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		app := s.app(1, false, "main")
		s.kube.text = strings.Repeat("x", 3*maxLine) + "\n\x1b[2J\x00\xff\u202e\U0001f600\U000e0001</pre>\tend\n!not the page\n"
		b := s.ask("/api/logs?app="+app, false)
		<-b.gone
		lines := strings.Split(b.took(), "\n")
		if want := " " + strings.Repeat("x", maxLine) + fmt.Sprintf(" [%d more bytes]", 2*maxLine); lines[0] != want {
			t.Errorf("a long line has %d bytes and ends %q", len(lines[0]), lines[0][len(lines[0])-30:])
		}
		if want := ` \u001b[2J\u0000\xff\u202e` + "\U0001f600" + `\U000e0001</pre>` + "\tend"; lines[1] != want {
			t.Errorf("got %q\nwant %q", lines[1], want)
		}
		if lines[2] != " !not the page" {
			t.Errorf("an application speaks as the page: %q", lines[2])
		}
	})
}

func TestWhoseLogThereIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		machine := s.app(1, true, "compute", guestConsole)
		unstarted := s.app(2, false)
		for _, c := range []struct {
			target string
			code   int
			says   string
		}{
			{"/api/logs", 404, "no application"},
			{"/api/logs?app=../../etc/passwd", 404, "no application"},
			{"/api/logs?app=" + unstarted, 404, "no container that has started"},
			{"/api/logs?tail=0&app=" + machine, 400, "from 1 to 5000"},
			{"/api/logs?tail=9999999999999999999&app=" + machine, 400, "from 1 to 5000"},
		} {
			b := s.ask(c.target, false)
			<-b.gone
			if got := b.took(); b.code != c.code || !strings.Contains(got, c.says) {
				t.Errorf("%s: %d %s", c.target, b.code, got)
			}
		}
		b := s.ask("/api/logs?app="+machine, false)
		<-b.gone
		if len(s.kube.options) != 1 || s.kube.options[0].Container != guestConsole {
			t.Errorf("of a virtual machine it reads %+v", s.kube.options)
		}
		for err, says := range map[error]string{
			fmt.Errorf("x: %w", types.ErrNoLog):          "there is no log, or it no longer exists",
			fmt.Errorf("x: %w: refused", types.ErrNoAPI): "the API server does not answer: ",
			fmt.Errorf("cut\x1b"):                        `was interrupted: open log: cut\u001b`,
		} {
			s.kube.err = err
			b := s.ask("/api/logs?app="+machine, false)
			<-b.gone
			if got := b.took(); !strings.HasPrefix(got, "!") || !strings.Contains(got, says) {
				t.Errorf("%v: %s", err, got)
			}
		}
	})
}

func TestManyMayReadLogsButNotAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		app := s.app(1, false, "main")
		s.kube.lines = make(chan string)
		var all []*browser
		for range maxTails {
			all = append(all, s.ask("/api/logs?follow=1&app="+app, false))
		}
		late := s.ask("/api/logs?follow=1&app="+app, false)
		<-late.gone
		if late.code != http.StatusServiceUnavailable {
			t.Errorf("one too many is told %d", late.code)
		}
		for _, b := range all {
			b.leave()
		}
	})
}

func TestContainersThatAreFollowedAreBoundedInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		var names []string
		for i := range maxSources {
			names = append(names, fmt.Sprint("c", i))
		}
		app := s.app(1, false, names...)
		s.kube.lines = make(chan string)
		var open []*browser
		for range maxFollowed / maxSources {
			open = append(open, s.ask("/api/logs?follow=1&app="+app, false))
		}
		if b := s.ask("/api/logs?follow=1&app="+app, false); b.code != http.StatusServiceUnavailable {
			t.Errorf("one more who follows: %d", b.code)
		}
		if s.kube.open != maxFollowed {
			t.Errorf("%d are followed", s.kube.open)
		}
		if b := s.ask("/api/logs?app="+app, false); b.code != 0 && b.code != http.StatusOK {
			t.Errorf("one who reads what there is: %d", b.code)
		}
		open[0].leave()
		synctest.Wait()
		again := s.ask("/api/logs?follow=1&app="+app, false)
		if again.code == http.StatusServiceUnavailable {
			t.Error("places that are free again are not given")
		}
		for _, b := range append(open[1:], again) {
			b.leave()
		}
	})
}
