package page

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

func TestWhatChangesIsSentAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := s.ask("/api/events", false)
		if got := b.head.Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("it is %s", got)
		}
		text := b.took()
		if !strings.HasPrefix(text, "retry: 2000\n\n: alive\n") {
			t.Errorf("it begins with %q", text[:min(60, len(text))])
		}
		events, _ := parse(t, text)
		if got := order(events); got != "beat overview" {
			t.Errorf("first come %s", got)
		}
		time.Sleep(14 * time.Second)
		if text := b.took(); text != "" {
			t.Errorf("without news it says %q", text)
		}
		time.Sleep(2 * time.Second)
		events, comments := parse(t, b.took())
		if got := order(events); got != "beat" || comments != 1 {
			t.Errorf("after 15 s come %d comments and %s", comments, got)
		}
		s.set(func() { s.shown.Agent.Seen = time.Now() })
		time.Sleep(5 * time.Second)
		if text := b.took(); text != "" {
			t.Errorf("of an age alone it says %q", text)
		}
		time.Sleep(10 * time.Second)
		if events, _ = parse(t, b.took()); order(events) != "beat overview" {
			t.Errorf("ages come with %s", order(events))
		}
		s.set(func() { s.shown.Node.Name = "node-1" })
		time.Sleep(1500 * time.Millisecond)
		events, _ = parse(t, b.took())
		if len(events) != 1 || !strings.Contains(events[0].data, `"Name":"node-1"`) || !strings.Contains(events[0].data, `"ReadAt":"2000-01-01T00:00:3`) {
			t.Errorf("after a change come %v", events)
		}
		b.leave()
	})
}

func TestAStreamEndsByItselfAndCanBeAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		var all []*browser
		for range maxViewers {
			all = append(all, s.ask("/api/events", false))
		}
		time.Sleep(lasts - time.Second)
		if late := s.ask("/api/events", false); late.code != http.StatusServiceUnavailable {
			t.Errorf("one more: %d", late.code)
		}
		time.Sleep(2 * time.Second)
		for _, b := range all {
			select {
			case <-b.gone:
			default:
				t.Error("a stream has not ended")
			}
		}
		again := s.ask("/api/events", false)
		if events, _ := parse(t, again.took()); order(events) != "beat overview" {
			t.Errorf("after that come %s", order(events))
		}
		again.leave()
	})
}

func TestNewsComeAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := s.ask("/api/events", false)
		b.took()
		for i := range 100 {
			s.set(func() { s.shown.Cluster.Name = strings.Repeat("x", i) })
			time.Sleep(100 * time.Millisecond)
		}
		events, _ := parse(t, b.took())
		if got := strings.Count(order(events), "overview"); got < 9 || got > 11 {
			t.Errorf("%d overviews in 10 s", got)
		}
		b.leave()
	})
}

func TestFilesAreReadOnlyWhileSomebodyLooksAndOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		time.Sleep(time.Hour)
		if s.read() != 0 {
			t.Fatal("files are read for nobody")
		}
		var all []*browser
		for range maxViewers {
			all = append(all, s.ask("/api/events", false))
			time.Sleep(130 * time.Millisecond) // each in its own rhythm
		}
		before := s.read()
		time.Sleep(10 * time.Second)
		if got := s.read() - before; got < 9 || got > 12 {
			t.Errorf("for %d browsers files were read %d times in 10 s", maxViewers, got)
		}
		late := s.ask("/api/events", false)
		<-late.gone
		if late.code != http.StatusServiceUnavailable || late.head.Get("Retry-After") == "" {
			t.Errorf("one too many is told %d %s", late.code, late.took())
		}
		for i, b := range all {
			if events, _ := parse(t, b.took()); !strings.HasPrefix(order(events), "beat overview") {
				t.Errorf("browser %d was told %s", i, order(events))
			}
			b.leave()
		}
		before = s.read()
		time.Sleep(time.Hour)
		if got := s.read() - before; got != 0 {
			t.Errorf("%d reads for nobody", got)
		}
		again := s.ask("/api/events", false)
		if events, _ := parse(t, again.took()); order(events) != "beat overview" {
			t.Errorf("who comes later is told %s", order(events))
		}
		again.leave()
		time.Sleep(2 * keptFor)
	})
}

func TestOneWhoTakesNothingIsLetGoAndHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		stuck := s.ask("/api/events", true)
		fine := s.ask("/api/events", false)
		for range 5 {
			s.set(func() { s.shown.Cluster.Name += "x" })
			time.Sleep(1300 * time.Millisecond)
		}
		if events, _ := parse(t, fine.took()); strings.Count(order(events), "overview") < 4 {
			t.Errorf("beside one who takes nothing come %s", order(events))
		}
		time.Sleep(patience)
		select {
		case <-stuck.gone:
		default:
			t.Error("who takes nothing is still served")
		}
		fine.leave()
		time.Sleep(2 * keptFor)
	})
}

func TestADiskThatHangsIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := s.ask("/api/events", false)
		time.Sleep(10 * time.Second)
		b.took()
		hang := make(chan struct{})
		s.set(func() { s.hang = hang })
		time.Sleep(2 * time.Second) // b waits for the disk
		other := s.ask("/api/events", false)
		time.Sleep(40 * time.Second)
		events, _ := parse(t, other.took())
		var last beat
		for _, e := range events {
			if e.name == "beat" {
				if err := json.Unmarshal([]byte(e.data), &last); err != nil {
					t.Fatal(err)
				}
			}
		}
		if old := last.Now.Sub(last.ReadAt); old < 25*time.Second {
			t.Errorf("the last sign of life says that files were read %s ago", old)
		}
		one := s.ask("/api/overview", false)
		<-one.gone
		close(hang)
		b.leave()
		other.leave()
		time.Sleep(2 * keptFor)
	})
}

func TestAnOverviewThatIsTooLargeIsSaidAndOvercome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := s.ask("/api/events", false)
		b.took()
		s.set(func() { s.shown.Node.DeviceName = strings.Repeat("x", maxOverview) })
		time.Sleep(20 * time.Second)
		events, _ := parse(t, b.took())
		if got := order(events); got != "trouble beat" || !strings.Contains(events[0].data, "more than the 4096 kB") {
			t.Errorf("a huge overview makes %s", got)
		}
		one := s.ask("/api/overview", false)
		<-one.gone
		if one.code != http.StatusInternalServerError {
			t.Errorf("asked for once it gives %d", one.code)
		}
		s.set(func() { s.shown.Node.DeviceName = "small" })
		time.Sleep(1500 * time.Millisecond)
		if events, _ = parse(t, b.took()); order(events) != "overview" {
			t.Errorf("then comes %s", order(events))
		}
		b.leave()
		time.Sleep(2 * keptFor)
	})
}

func TestAHostileNameStaysWithinItsEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		evil := "x\n\nevent: beat\ndata: {}\n\r\n\u2028</script>\x1b[2J\x00"
		s.set(func() { s.shown.Problems = []types.Finding{{Evidence: evil}} })
		b := s.ask("/api/events", false)
		events, _ := parse(t, b.took())
		if order(events) != "beat overview" {
			t.Fatalf("it makes %s", order(events))
		}
		var got overview.Overview
		if err := json.Unmarshal([]byte(events[1].data), &got); err != nil || got.Problems[0].Evidence != evil {
			t.Errorf("it arrives as %q (%v)", got.Problems, err)
		}
		if strings.Contains(events[1].data, "</script>") {
			t.Error("it could end a script")
		}
		b.leave()
		time.Sleep(2 * keptFor)
	})
}
