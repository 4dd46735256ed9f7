package applogs

import (
	"maps"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

// guestConsole is the one container of a launcher pod that speaks for the
// application (docs/wire.md, "App objects"); the others are KubeVirt's own.
const guestConsole = "guest-console-log"

type facts struct {
	seen    bool       // the pods are all there are
	self    types.Node // the own one, as far as its kubelet is asked; without a name while it is not in the cluster
	configs map[string]types.AppInstanceConfig
	pods    []types.Pod           // of this node
	known   map[string]checkpoint // of logs that are or were read here, by key
	gone    map[string]time.Duration
}

type action struct {
	keep   bool            // change nothing
	read   map[string]want // the logs to read, by key
	forget []string        // the logs that will not be read again
}

// want is one log to read: all that is known of a container.
type want struct {
	app       string
	node      types.Node // of the pod
	pod       types.Pod
	container types.Container
	off       bool // nobody wants its log
	orphan    bool // its application has no configuration any more
	gone      bool // the pod is not there any more
}

// forgetAfter is how long what is known of the log of a pod that is gone is
// kept, should the pod have been missed by mistake.
const forgetAfter = 10 * time.Minute

// decide says which logs to read, from facts alone. What is not seen is not gone.
func decide(f facts) action {
	if !f.seen || f.self.Name == "" {
		return action{keep: true}
	}
	a := action{read: map[string]want{}}
	owners := types.NewAppOwners(f.configs)
	for _, p := range f.pods {
		if p.NodeName != f.self.Name {
			continue
		}
		w, vmi := appOf(p, owners, f.known)
		for _, c := range p.Containers {
			if w.app == "" || vmi && c.Name != guestConsole || c.Now.ID == "" && c.Last.ID == "" {
				continue
			}
			w.node, w.container = f.self, c
			a.read[keyOf(p.UID, c.Name)] = w
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.known)) {
		if _, ok := a.read[key]; !ok && f.gone[key] >= forgetAfter {
			a.forget = append(a.forget, key)
		}
	}
	return a
}

// appOf tells which application runs in p, and whether its log is wanted. One
// whose configuration is gone while its pod still ends keeps the log of that pod
// as it was.
func appOf(p types.Pod, owners types.AppOwners, known map[string]checkpoint) (w want, vmi bool) {
	if cfg, ok := owners.Of(p); ok {
		return want{app: cfg.UUIDandVersion.UUID.String(), pod: p, off: cfg.DisableLogs}, cfg.IsVMI()
	}
	for _, c := range p.Containers {
		if s, ok := known[keyOf(p.UID, c.Name)]; ok {
			return want{app: s.App, pod: p, off: s.Off, orphan: true}, p.VMIName() != ""
		}
	}
	return want{}, false
}

func keyOf(uid, container string) string { return uid + "/" + container }

type reading struct {
	want
	id       string // of the container's instance
	run      int32  // which of its instances that is, from 0
	previous bool
	resume   bool // from where the log is
	lost     int  // instances between the last that was read and this one
	torn     bool // the last that was read was not read to its end
}

func (r reading) ended() bool { return r.previous || !r.container.Now.Finished.IsZero() }

// next says what to read now. Instances are read in the order in which they ran.
func next(w want, s checkpoint) (r reading, ok bool) {
	now, last := w.container.Now.ID, w.container.Last.ID
	present := reading{want: w, id: now, run: w.container.Restarts}
	former := reading{want: w, id: last, run: w.container.Restarts - 1, previous: true}
	switch {
	case s.ID != "" && s.ID == now && s.Whole:
		return reading{}, false
	case s.ID != "" && s.ID == now:
		r = present
	case s.ID != "" && s.ID == last && !s.Whole:
		r = former
	case last != "" && s.ID != last:
		r = former
	case now != "":
		r = present
	default:
		return reading{}, false
	}
	r.resume = s.ID == r.id && s.Begun
	switch s.ID {
	case "": // nobody has read the runs before
		r.lost = int(r.run)
	case r.id:
	default:
		r.lost = max(0, int(r.run-s.Run)-1)
		r.torn = !s.Whole
	}
	return r, true
}

// overtaken reports that r is of an instance that is not the current one any
// more, though it was.
func (r reading) overtaken(w want) bool {
	return !r.previous && w.container.Now.ID != r.id
}
