package overview

import (
	"testing"
	"time"
)

func TestALookServesThoseWhoLookSoonAfter(t *testing.T) {
	looks := 0
	shared := Shared(func(now time.Time) Overview { looks++; return Overview{ReadAt: now} }, 5*time.Second)
	begin := time.Unix(1000, 0)
	for _, step := range []struct {
		after, read time.Duration
		looks       int
	}{{0, 0, 1}, {4 * time.Second, 0, 1}, {5 * time.Second, 5 * time.Second, 2}, {-time.Hour, -time.Hour, 3}} {
		if o := shared(begin.Add(step.after)); !o.ReadAt.Equal(begin.Add(step.read)) || looks != step.looks {
			t.Errorf("after %s: of %s, %d looks; want %s, %d", step.after, o.ReadAt, looks, begin.Add(step.read), step.looks)
		}
	}
}
