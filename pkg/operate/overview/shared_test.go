package overview

import (
	"testing"
	"time"
)

func TestALookServesThoseWhoLookSoonAfter(t *testing.T) {
	looks := 0
	within := Shared(func(now time.Time) Overview { looks++; return Overview{ReadAt: now} })
	shared, sooner := within(5*time.Second), within(time.Second)
	begin := time.Unix(1000, 0)
	for _, step := range []struct {
		after, read time.Duration
		looks       int
	}{{0, 0, 1}, {4 * time.Second, 0, 1}, {5 * time.Second, 5 * time.Second, 2}, {-time.Hour, -time.Hour, 3}} {
		if o := shared(begin.Add(step.after)); !o.ReadAt.Equal(begin.Add(step.read)) || looks != step.looks {
			t.Errorf("after %s: of %s, %d looks; want %s, %d", step.after, o.ReadAt, looks, begin.Add(step.read), step.looks)
		}
	}
	if o := sooner(begin.Add(-time.Hour + time.Second)); !o.ReadAt.Equal(begin.Add(-time.Hour+time.Second)) || looks != 4 {
		t.Errorf("who wants to know sooner gets what was read at %s, %d looks", o.ReadAt, looks)
	}
	if o := shared(begin.Add(-time.Hour + 5*time.Second)); !o.ReadAt.Equal(begin.Add(-time.Hour+time.Second)) || looks != 4 {
		t.Errorf("what another one has read does not serve: of %s, %d looks", o.ReadAt, looks)
	}
}
