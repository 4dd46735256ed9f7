package storage

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// Lasting is how long the parts of a volume may contradict one another before
// that is said: they come by four watches, each at its own pace.
const Lasting = 10 * time.Second

// VolumeJoin joins what Longhorn keeps of a volume in four kinds of object to a
// row, again whenever one of them changes.
type VolumeJoin struct {
	table  access.Writer[types.Volume]
	Doubts func(why string) // told of contradictions that last, "" when there is none any more

	mu        sync.Mutex
	volumes   parts[disk]
	engines   parts[engine]
	replicas  parts[replica]
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

// NewVolumeJoin returns what joins the objects of a volume into one row of the table.
func NewVolumeJoin(table access.Writer[types.Volume]) *VolumeJoin {
	return &VolumeJoin{table: table, odd: map[string]oddity{}}
}

// change changes some parts, and joins the volumes whose they are.
func (j *VolumeJoin) change(act func() (volumes []string)) error {
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
func (j *VolumeJoin) changeAll(act func()) error {
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
func (j *VolumeJoin) join(name string) error {
	if !j.volumes.whole || !j.engines.whole || !j.replicas.whole {
		return nil
	}
	d, ok := j.disk(name)
	if !ok {
		delete(j.odd, name)
		return j.table.Unpublish(name)
	}
	former, shown := j.table.Get(name)
	if err := d.join(); err != nil {
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
func (j *VolumeJoin) disk(name string) (disk, bool) {
	volume := j.volumes.of[name]
	if len(volume) == 0 {
		return disk{}, false
	}
	d := volume[0].part // a copy
	for _, e := range j.engines.of[name] {
		d.engines = append(d.engines, e.part)
	}
	for _, r := range j.replicas.of[name] {
		d.replicas = append(d.replicas, r.part)
	}
	for _, s := range j.snapshots.of[name] {
		d.Snapshots += s.part
	}
	return d, true
}

// say tells of the contradictions that last, or that keep a volume out of the
// table, and has itself called when another one lasts. It is called with mu held.
func (j *VolumeJoin) say() {
	var next time.Time
	var last []string
	for _, name := range slices.Sorted(maps.Keys(j.odd)) {
		o := j.odd[name]
		switch {
		case o.hidden, time.Since(o.since) >= Lasting:
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
		j.Doubts(why)
	}
	if j.timer != nil {
		j.timer.Stop()
		j.timer = nil
	}
	if !next.IsZero() && !j.over {
		j.timer = time.AfterFunc(time.Until(next.Add(Lasting)), func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.say()
		})
	}
}

// Stop ends the wait for contradictions.
func (j *VolumeJoin) Stop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.over = true
	j.say()
}

// parts are the objects of one kind of which volumes consist.
type parts[P any] struct {
	whole bool                   // there was a list of them
	homes map[string]string      // the volume of each, by its name
	of    map[string][]partOf[P] // by volume, sorted by name
}

type partOf[P any] struct {
	name string
	part P
}

func (s *parts[P]) put(name, volume string, part P) {
	if s.homes == nil {
		s.homes, s.of = map[string]string{}, map[string][]partOf[P]{}
	}
	if s.homes[name] != volume {
		s.remove(name)
	}
	volume = once(volume)
	s.homes[name] = volume
	i, found := s.find(name, volume)
	if !found {
		s.of[volume] = slices.Insert(s.of[volume], i, partOf[P]{})
	}
	s.of[volume][i] = partOf[P]{name, part}
}

func (s *parts[P]) remove(name string) {
	volume := s.homes[name]
	delete(s.homes, name)
	if i, found := s.find(name, volume); found {
		s.of[volume] = slices.Delete(s.of[volume], i, i+1)
	}
	if len(s.of[volume]) == 0 {
		delete(s.of, volume)
	}
}

func (s *parts[P]) find(name, volume string) (int, bool) {
	return slices.BinarySearchFunc(s.of[volume], name, func(n partOf[P], name string) int { return cmp.Compare(n.name, name) })
}

// partOfVolume is a part with the name of its volume.
type partOfVolume[P any] struct {
	volume string
	part   P
}

// partTable has the objects of one kind go into a join.
type partTable[P any] struct {
	join  *VolumeJoin
	parts *parts[P]
}

func (t partTable[P]) Publish(name string, row partOfVolume[P]) error {
	return t.join.change(func() []string {
		former := t.parts.homes[name]
		t.parts.put(name, row.volume, row.part)
		return []string{former, row.volume}
	})
}

func (t partTable[P]) Unpublish(name string) error {
	return t.join.change(func() []string {
		former := t.parts.homes[name]
		t.parts.remove(name)
		return []string{former}
	})
}

func (t partTable[P]) Replace(rows map[string]partOfVolume[P]) error {
	all := parts[P]{whole: true}
	for name, row := range rows {
		all.put(name, row.volume, row.part)
	}
	for volume, list := range all.of {
		all.of[volume] = slices.Clone(list) // without room to grow
	}
	return t.join.changeAll(func() { *t.parts = all })
}

func partRows[O metav1.Object, P any](j *VolumeJoin, into *parts[P], volume func(O) string, part func(O) P) access.Store {
	return &access.Rows[O, partOfVolume[P]]{
		To: partTable[P]{j, into}, Key: access.Name[O],
		Row: func(o O) partOfVolume[P] { return partOfVolume[P]{volume(o), part(o)} },
	}
}

// VolumeParts is the store for Longhorn's Volumes.
func VolumeParts(j *VolumeJoin) access.Store {
	return partRows(j, &j.volumes, access.Name[*VolumePart], DiskOf)
}

// EngineParts is the store for Longhorn's Engines.
func EngineParts(j *VolumeJoin) access.Store {
	return partRows(j, &j.engines, func(e *EnginePart) string { return e.Spec.VolumeName }, EngineOf)
}

// ReplicaParts is the store for Longhorn's Replicas.
func ReplicaParts(j *VolumeJoin) access.Store {
	return partRows(j, &j.replicas, func(r *ReplicaPart) string { return r.Spec.VolumeName }, func(r *ReplicaPart) replica {
		row, err := ReplicaOf(r)
		row.err = err
		return row
	})
}

// SnapshotParts are sizes in bytes. The head of a volume is no snapshot.
func SnapshotParts(j *VolumeJoin) access.Store {
	return partRows(j, &j.snapshots, func(s *SnapshotPart) string { return s.Spec.Volume }, func(s *SnapshotPart) int64 {
		if strings.HasSuffix(s.Name, "-volume-head") {
			return 0
		}
		return s.Status.Size
	})
}
