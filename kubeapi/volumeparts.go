package kubeapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"
)

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
	join  *volumeJoin
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

func volumeParts(j *volumeJoin) rowStore {
	return &partRows[*volumePart, disk]{
		join: j, parts: &j.volumes,
		read: func(v *volumePart) (string, string, disk) { return v.Name, v.Name, diskOf(v) },
		slim: func(v *volumePart) *volumePart { c := *v; c.ObjectMeta = slimMeta(v.ObjectMeta); return &c },
	}
}

func engineParts(j *volumeJoin) rowStore {
	return &partRows[*enginePart, engine]{
		join: j, parts: &j.engines,
		read: func(e *enginePart) (string, string, engine) { return e.Name, e.Spec.VolumeName, engineOf(e) },
		slim: func(e *enginePart) *enginePart { c := *e; c.ObjectMeta = slimMeta(e.ObjectMeta); return &c },
	}
}

func replicaParts(j *volumeJoin) rowStore {
	return &partRows[*replicaPart, faulty]{
		join: j, parts: &j.replicas,
		read: func(r *replicaPart) (string, string, faulty) {
			row, err := replicaOf(r)
			return r.Name, r.Spec.VolumeName, faulty{row, err}
		},
		slim: func(r *replicaPart) *replicaPart { c := *r; c.ObjectMeta = slimMeta(r.ObjectMeta); return &c },
	}
}

// snapshotParts are sizes in bytes. The head of a volume is no snapshot.
func snapshotParts(j *volumeJoin) rowStore {
	return &partRows[*snapshotPart, int64]{
		join: j, parts: &j.snapshots,
		read: func(s *snapshotPart) (string, string, int64) {
			if strings.HasSuffix(s.Name, "-volume-head") {
				return s.Name, s.Spec.Volume, 0
			}
			return s.Name, s.Spec.Volume, s.Status.Size
		},
		slim: func(s *snapshotPart) *snapshotPart { c := *s; c.ObjectMeta = slimMeta(s.ObjectMeta); return &c },
	}
}

func (r *partRows[O, P]) example() any                 { var o O; return o }
func (r *partRows[O, P]) onReplaced(done func(string)) { r.replaced = done }

func (r *partRows[O, P]) of(obj any) (name, volume string, part P, err error) {
	o, ok := obj.(O)
	if !ok {
		return "", "", part, fmt.Errorf("store object: unexpected %T", obj)
	}
	if name, volume, part = r.read(o); name == "" {
		return "", "", part, errNoName
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
		return errNoVersion
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
