//go:build linux

package hosts

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

// reign is the time in which a device said that it reports for the cluster, by
// the times that it wrote itself; all hosts have one clock.
type reign struct {
	of       *player.Member
	from, to time.Time // zero to: it goes on
}

// reigns notes who reports, from what every device publishes. No two may do so at
// a time.
type reigns struct {
	stop context.CancelFunc
	done chan struct{}

	mu   sync.Mutex
	last map[*player.Member]types.KubeLeaderElectInfo
	all  []reign
}

func watchReigns(fleet *player.Fleet) *reigns {
	ctx, stop := context.WithCancel(context.Background())
	r := &reigns{stop: stop, done: make(chan struct{}), last: map[*player.Member]types.KubeLeaderElectInfo{}}
	bell := make(chan struct{}, 1)
	for _, m := range fleet.Members {
		m.Watch.Leader.Notify(bell)
	}
	go func() {
		defer close(r.done)
		for {
			for _, m := range fleet.Members {
				if info, ok := m.Watch.Leader.Get(types.Global); ok {
					r.hear(m, info)
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-bell:
			}
		}
	}()
	return r
}

func (r *reigns) hear(m *player.Member, info types.KubeLeaderElectInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.last[m]
	r.last[m] = info
	if was.IsStatsLeader && (!info.IsStatsLeader || !info.LatestChange.Equal(was.LatestChange)) {
		r.close(m, info.LatestChange)
	}
	if info.IsStatsLeader && !info.LatestChange.Equal(was.LatestChange) {
		r.all = append(r.all, reign{of: m, from: info.LatestChange})
	}
}

// killed ends the reign of a device whose program is no more: what it said last
// stays on its disk.
func (r *reigns) killed(m *player.Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.close(m, time.Now())
}

// close is called with mu held.
func (r *reigns) close(m *player.Member, at time.Time) {
	for i := range r.all {
		if r.all[i].of == m && r.all[i].to.IsZero() {
			r.all[i].to = at
		}
	}
}

// now are the devices that reign.
func (r *reigns) now() []*player.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	var of []*player.Member
	for _, one := range r.all {
		if one.to.IsZero() {
			of = append(of, one.of)
		}
	}
	return of
}

// end stops the watch and judges what was seen.
func (r *reigns) end(t *testing.T) {
	r.stop()
	<-r.done
	for _, text := range overlaps(r.all, time.Now()) {
		t.Error(text)
	}
	if len(r.all) == 0 {
		t.Error("nobody ever reported")
	}
	if t.Failed() {
		for _, a := range r.all {
			t.Log(a.String())
		}
	}
}

// overlaps are the reigns of two devices at a time.
func overlaps(all []reign, now time.Time) []string {
	end := func(g reign) time.Time {
		if g.to.IsZero() {
			return now
		}
		return g.to
	}
	var found []string
	for i, a := range all {
		for _, b := range all[:i] {
			if a.of != b.of && a.from.Before(end(b)) && b.from.Before(end(a)) {
				found = append(found, fmt.Sprintf("two at a time: %s; %s", a, b))
			}
		}
	}
	return found
}

func (g reign) String() string {
	text := g.of.Name + " reported from " + g.from.Format(rig.Clock)
	if g.to.IsZero() {
		return text + " on"
	}
	return text + " to " + g.to.Format(rig.Clock)
}

func TestTwoWhoReportAtATimeAreFound(t *testing.T) {
	a, b := &player.Member{Name: "a"}, &player.Member{Name: "b"}
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	for _, row := range []struct {
		rule string
		all  []reign
		want int
	}{
		{"one after the other", []reign{{a, at(1), at(3)}, {b, at(3), at(5)}, {a, at(5), time.Time{}}}, 0},
		{"one device twice", []reign{{a, at(1), at(3)}, {a, at(2), time.Time{}}}, 0},
		{"the second before the end of the first", []reign{{a, at(1), at(3)}, {b, at(2), at(5)}}, 1},
		{"the second while the first goes on", []reign{{a, at(1), time.Time{}}, {b, at(2), at(3)}}, 1},
		{"the second inside the first, told before it", []reign{{b, at(2), at(3)}, {a, at(1), at(5)}}, 1},
		{"two that go on", []reign{{a, at(1), time.Time{}}, {b, at(2), time.Time{}}}, 1},
	} {
		if found := overlaps(row.all, at(9)); len(found) != row.want {
			t.Errorf("%s: found %q", row.rule, found)
		}
	}
}
