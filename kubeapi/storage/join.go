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

	"k8s.io/client-go/tools/cache"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// Lasting is how long the parts of a volume may contradict one another before
// that is said: they come by four watches, each at its own pace.
const Lasting = 10 * time.Second

// VolumeJoin joins what Longhorn keeps of a volume in four kinds of object to a
// row, anew whenever one of them changes.
type VolumeJoin struct {
	table  access.Writer[types.Volume]
	Doubts func(why string) // told of contradictions that last, "" when there is none any more

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
		d.replicas = append(d.replicas, r.part.replica)
	}
	for _, s := range j.snapshots.of[name] {
		d.Snapshots += s.part
	}
	return d, true
}

func (j *VolumeJoin) faults(name string) error {
	for _, r := range j.replicas.of[name] {
		if r.part.err != nil {
			return r.part.err
		}
	}
	return nil
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

// partRows writes the objects of one kind that a Reflector sees into a join.
type partRows[O, P any] struct {
	join  *VolumeJoin
	parts *parts[P]
	read  func(O) (name, volume string, part P)
	slim  func(O) O

	replaced func(version string)
}

// faulty is a replica, or why it is invalid.
type faulty struct {
	replica
	err error
}

// VolumeParts is the store for Longhorn's Volumes.
func VolumeParts(j *VolumeJoin) access.Store {
	return &partRows[*VolumePart, disk]{
		join: j, parts: &j.volumes,
		read: func(v *VolumePart) (string, string, disk) { return v.Name, v.Name, DiskOf(v) },
		slim: func(v *VolumePart) *VolumePart { c := *v; c.ObjectMeta = access.SlimMeta(v.ObjectMeta); return &c },
	}
}

// EngineParts is the store for Longhorn's Engines.
func EngineParts(j *VolumeJoin) access.Store {
	return &partRows[*EnginePart, engine]{
		join: j, parts: &j.engines,
		read: func(e *EnginePart) (string, string, engine) { return e.Name, e.Spec.VolumeName, EngineOf(e) },
		slim: func(e *EnginePart) *EnginePart { c := *e; c.ObjectMeta = access.SlimMeta(e.ObjectMeta); return &c },
	}
}

// ReplicaParts is the store for Longhorn's Replicas.
func ReplicaParts(j *VolumeJoin) access.Store {
	return &partRows[*ReplicaPart, faulty]{
		join: j, parts: &j.replicas,
		read: func(r *ReplicaPart) (string, string, faulty) {
			row, err := ReplicaOf(r)
			return r.Name, r.Spec.VolumeName, faulty{row, err}
		},
		slim: func(r *ReplicaPart) *ReplicaPart { c := *r; c.ObjectMeta = access.SlimMeta(r.ObjectMeta); return &c },
	}
}

// SnapshotParts are sizes in bytes. The head of a volume is no snapshot.
func SnapshotParts(j *VolumeJoin) access.Store {
	return &partRows[*SnapshotPart, int64]{
		join: j, parts: &j.snapshots,
		read: func(s *SnapshotPart) (string, string, int64) {
			if strings.HasSuffix(s.Name, "-volume-head") {
				return s.Name, s.Spec.Volume, 0
			}
			return s.Name, s.Spec.Volume, s.Status.Size
		},
		slim: func(s *SnapshotPart) *SnapshotPart { c := *s; c.ObjectMeta = access.SlimMeta(s.ObjectMeta); return &c },
	}
}

func (r *partRows[O, P]) Example() any                 { var o O; return o }
func (r *partRows[O, P]) OnReplaced(done func(string)) { r.replaced = done }

func (r *partRows[O, P]) of(obj any) (name, volume string, part P, err error) {
	o, ok := obj.(O)
	if !ok {
		return "", "", part, fmt.Errorf("store object: unexpected %T", obj)
	}
	if name, volume, part = r.read(o); name == "" {
		return "", "", part, access.ErrNoName
	}
	return name, volume, part, nil
}

// Add implements cache.ReflectorStore.
func (r *partRows[O, P]) Add(obj any) error { return r.Update(obj) }

// Update implements cache.ReflectorStore.
func (r *partRows[O, P]) Update(obj any) error {
	name, volume, part, err := r.of(obj)
	if err != nil {
		return err
	}
	return r.join.change(func() []string {
		former := r.parts.homes[name]
		r.parts.put(name, volume, part)
		return []string{former, volume}
	})
}

// Delete implements cache.ReflectorStore.
func (r *partRows[O, P]) Delete(obj any) error {
	name, _, _, err := r.of(obj)
	if err != nil {
		return err
	}
	return r.join.change(func() []string {
		former := r.parts.homes[name]
		r.parts.remove(name)
		return []string{former}
	})
}

// Replace implements cache.ReflectorStore, as rows does.
func (r *partRows[O, P]) Replace(list []any, version string) error {
	if version == "" {
		return access.ErrNoVersion
	}
	all := parts[P]{whole: true}
	for _, obj := range list {
		name, volume, part, err := r.of(obj)
		if err != nil {
			return err
		}
		all.put(name, volume, part)
	}
	for volume, list := range all.of {
		all.of[volume] = slices.Clone(list) // without room to grow
	}
	if err := r.join.changeAll(func() { *r.parts = all }); err != nil {
		return err
	}
	if r.replaced != nil {
		r.replaced(version)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (r *partRows[O, P]) Resync() error { return nil }

// Transformer implements cache.TransformingStore.
func (r *partRows[O, P]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if o, ok := obj.(O); ok {
			return r.slim(o), nil
		}
		return obj, nil
	}
}
