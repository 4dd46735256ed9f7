package kubeapi

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zedkube/zedkube/types"
)

// lasting is how long the parts of a volume may contradict one another before
// that is said: they come by four watches, each at its own pace.
const lasting = 10 * time.Second

// volumeJoin joins what Longhorn keeps of a volume in four kinds of object to a
// row, anew whenever one of them changes.
type volumeJoin struct {
	table  Writer[types.Volume]
	doubts func(why string) // told of contradictions that last, "" when there is none any more

	mu        sync.Mutex
	volumes   parts[disk]
	engines   parts[engine]
	replicas  parts[faulty]
	snapshots parts[int64]

	odd   map[string]oddity // volumes whose parts contradict one another
	said  string
	timer *time.Timer // rings when a contradiction lasts; nil for none
	over  bool
}

type oddity struct {
	since  time.Time
	hidden bool // it has no row that could stay: the table lacks it
	why    string
}

func newVolumeJoin(table Writer[types.Volume]) *volumeJoin {
	return &volumeJoin{table: table, odd: map[string]oddity{}}
}

// change changes some parts, and joins the volumes whose they are.
func (j *volumeJoin) change(act func() (volumes []string)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	volumes := act()
	slices.Sort(volumes)
	for _, name := range slices.Compact(volumes) {
		errs = append(errs, j.join(name))
	}
	j.say()
	return errors.Join(errs...)
}

// changeAll changes all parts of a kind, and joins every volume.
func (j *volumeJoin) changeAll(act func()) error {
	return j.change(func() []string {
		act()
		names := slices.AppendSeq(slices.Collect(maps.Keys(j.volumes.of)), maps.Keys(j.table.All()))
		return slices.AppendSeq(names, maps.Keys(j.odd)) // one that was never shown may be gone
	})
}

// join makes the row of a volume, as soon as its engines and replicas have been
// listed. Snapshots only add to their sum: until they have been listed, it is the
// one that an earlier connection left. A row whose parts contradict one another
// stays as it was.
func (j *volumeJoin) join(name string) error {
	if !j.volumes.whole || !j.engines.whole || !j.replicas.whole {
		return nil
	}
	d, ok := j.disk(name)
	if !ok {
		delete(j.odd, name)
		return j.table.Unpublish(name)
	}
	former, shown := j.table.Get(name)
	err := j.faults(name)
	if err == nil {
		err = d.join()
	}
	if err != nil {
		since := time.Now()
		if o, ok := j.odd[name]; ok {
			since = o.since
		}
		j.odd[name] = oddity{since, !shown, fmt.Sprintf("volume %s of Longhorn: %v", name, err)}
		return nil
	}
	delete(j.odd, name)
	if !j.snapshots.whole {
		d.Snapshots = former.Snapshots
	}
	return j.table.Publish(name, d.Volume)
}

// disk is a volume with its parts, false if there is no such volume.
func (j *volumeJoin) disk(name string) (disk, bool) {
	volume := j.volumes.of[name]
	if len(volume) == 0 {
		return disk{}, false
	}
	d := volume[0].part // a copy
	for _, e := range j.engines.of[name] {
		d.engines = append(d.engines, e.part)
	}
	for _, r := range j.replicas.of[name] {
		d.replicas = append(d.replicas, r.part.replica)
	}
	for _, s := range j.snapshots.of[name] {
		d.Snapshots += s.part
	}
	return d, true
}

func (j *volumeJoin) faults(name string) error {
	for _, r := range j.replicas.of[name] {
		if r.part.err != nil {
			return r.part.err
		}
	}
	return nil
}

// say tells of the contradictions that last, or that keep a volume out of the
// table, and has itself called when another one lasts. It is called with mu held.
func (j *volumeJoin) say() {
	var next time.Time
	var last []string
	for _, name := range slices.Sorted(maps.Keys(j.odd)) {
		o := j.odd[name]
		switch {
		case o.hidden, time.Since(o.since) >= lasting:
			last = append(last, o.why)
		case next.IsZero() || o.since.Before(next):
			next = o.since
		}
	}
	why := ""
	if len(last) > 0 {
		why = last[0]
	}
	if n := len(last); n > 1 {
		why += fmt.Sprintf("; and %d more", n-1)
	}
	if why != j.said && !j.over {
		j.said = why
		j.doubts(why)
	}
	if j.timer != nil {
		j.timer.Stop()
		j.timer = nil
	}
	if !next.IsZero() && !j.over {
		j.timer = time.AfterFunc(time.Until(next.Add(lasting)), func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.say()
		})
	}
}

// stop ends the wait for contradictions.
func (j *volumeJoin) stop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.over = true
	j.say()
}
