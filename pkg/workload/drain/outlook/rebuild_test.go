package outlook

import (
	"fmt"
	"testing"
	"time"
)

func TestTheTimeARebuildTakesIsFromItsRate(t *testing.T) {
	const begin = 1000 * time.Second
	for _, row := range []struct {
		sentence string
		percents []int // one each ten seconds, -1 is not asked
		want     int   // after the last
	}{
		{"one look says nothing", []int{40}, 0},
		{"two looks make a rate", []int{40, 50}, 50},
		{"the same value twice says nothing", []int{40, 40}, 0},
		{"one that stands still gets slower", []int{40, 50, 50, 50}, 150},
		{"for however long it does", []int{40, 50, 50, 50, 50, 50, 50, 50, 50}, 400},
		{"one that goes backwards begins anew", []int{40, 50, 30}, 0},
		{"and has a rate of its own", []int{40, 50, 30, 35}, 130},
		{"100 percent takes no time", []int{40, 50, 100}, 0},
		{"0 percent is no rebuild yet", []int{0, 0, 0, 50}, 0},
		{"0 percent ends the one before", []int{40, 50, 0, 60}, 0},
		{"a rate of long ago is forgotten", []int{1, 2, 3, 4, 5, 6, 16, 26, 36, 46, 56}, 44},
		{"not being asked for a while is no harm", []int{40, -1, -1, 70}, 30},
	} {
		var r RebuildRates
		got := 0
		for i, p := range row.percents {
			if p >= 0 {
				got = r.ETA("v", p, begin+time.Duration(i)*10*time.Second)
			}
		}
		if got != row.want {
			t.Errorf("%s: %d s, want %d", row.sentence, got, row.want)
		}
	}
}

func TestRebuildsThatNobodyAsksForAreForgotten(t *testing.T) {
	var r RebuildRates
	now := 1000 * time.Second
	for i := range 2000 {
		r.ETA(fmt.Sprint("v", i), 10, now)
	}
	now += 9 * time.Minute
	r.ETA("v7", 20, now)
	now += 9 * time.Minute
	if eta := r.ETA("v8", 20, now); eta != 0 {
		t.Errorf("one that was forgotten needs %d s", eta)
	}
	if len(r.volumes) != 2 {
		t.Errorf("%d are remembered", len(r.volumes))
	}
	if eta := r.ETA("v7", 20, now); eta != 8*18*60 {
		t.Errorf("one that was not needs %d s", eta)
	}
}
