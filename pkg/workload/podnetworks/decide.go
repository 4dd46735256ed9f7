package podnetworks

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

const (
	// removeAfter is how long a marker outlasts its pod: one that is made again under
	// the same name finds it.
	removeAfter = time.Minute
	// journalAfter is how long a change waits to be kept: pods come and go in bursts,
	// and a disk has only so many writes.
	journalAfter = time.Minute
	// portion is how many configurations a step publishes, so that the markers of pods
	// that come meanwhile do not wait; soon is when the next ones are due.
	portion = 30
	soon    = time.Millisecond
	// launcherPrefix begins the names of pods that run virtual machines. zedrouter does
	// not find their workload by such a name, so they get no configuration.
	launcherPrefix = "virt-launcher-"
)

type facts struct {
	now           time.Time
	complete      bool // pods is every pod of this node
	silent        bool // the API server does not answer
	pods          map[string]types.Pod
	networksKnown bool // networks is all that zedrouter says
	networks      map[string]types.NetworkInstanceStatus
	configs       map[string]types.AppNetworkConfig // published
	journal       map[string]string
	journaling    bool // it is being written
	memory
}

// memory is what this process has seen. Losing it costs a minute.
type memory struct {
	files   map[string]string    // markers that are there, with what this process wrote
	absent  map[string]time.Time // those whose pods have been gone since
	changed time.Time            // when they began to differ from the journal; zero while they do not
}

type action struct {
	memory
	write             map[string]string // markers
	remove, unpublish []string
	publish           map[string]types.AppNetworkConfig
	journal           map[string]string // nil to leave it
	problems          []string
	again             time.Duration
}

// decide says what the markers and the configurations of this node's pods should be.
// Nothing is taken back while a table is not complete: a pod that is missing may run.
func decide(f facts) action {
	a := action{memory: f.memory, write: map[string]string{}, publish: map[string]types.AppNetworkConfig{}}
	markers, configs := a.wanted(f)
	for name, mark := range f.journal { // there may have been no list since the boot
		if _, is := f.files[name]; f.silent && !is && isMarker(name) {
			a.write[name] = mark
		}
	}
	for name, mark := range markers {
		if f.files[name] == mark {
			delete(a.write, name)
		} else {
			a.write[name] = mark
		}
	}
	a.absent = map[string]time.Time{}
	for name := range f.files {
		since, was := f.absent[name]
		if _, is := markers[name]; is || !was && !f.complete {
			continue
		} else if !was {
			since = f.now
		}
		a.absent[name] = since
		switch rest := removeAfter - f.now.Sub(since); {
		case rest > 0:
			a.wake(rest)
		case f.complete:
			a.remove = append(a.remove, name)
		}
	}
	a.keep(f, markers)
	for _, key := range slices.Sorted(maps.Keys(configs)) {
		switch was, is := f.configs[key]; {
		case is && reflect.DeepEqual(was, configs[key]):
		case len(a.publish) == portion:
			a.wake(soon)
		default:
			a.publish[key] = configs[key]
		}
	}
	for key := range f.configs {
		if _, ok := configs[key]; !ok && f.complete {
			a.unpublish = append(a.unpublish, key)
		}
	}
	return a
}

// wanted is the marker of each pod and the configuration of each workload.
func (a *action) wanted(f facts) (markers map[string]string, configs map[string]types.AppNetworkConfig) {
	nads := map[string]uuid.UUID{} // uuid.Nil where several have the name
	for key, status := range f.networks {
		if nad, ok, _ := status.NADOf(key); ok {
			if _, taken := nads[nad.Name]; taken {
				nad.ID = uuid.Nil
			}
			nads[nad.Name] = nad.ID
		}
	}
	markers, configs = map[string]string{}, map[string]types.AppNetworkConfig{}
	for _, key := range slices.Sorted(maps.Keys(f.pods)) {
		p := f.pods[key]
		name := p.Namespace + "_" + p.Name
		if !isMarker(name) {
			a.problems = append(a.problems, fmt.Sprintf("pod %q has a name that no marker can have", key))
			continue
		}
		var config types.AppNetworkConfig
		if p.Networks != "" && !strings.HasPrefix(p.Name, launcherPrefix) {
			var err error
			config, err = configOf(p, nads)
			id := config.UUIDandVersion.UUID.String()
			if was, ok := f.configs[id]; ok && (err != nil || !f.networksKnown) {
				config = was // what is in use stays until it is known what else
			}
			if err != nil {
				a.problems = append(a.problems, fmt.Sprintf("networks of pod %s: %v", key, err))
			}
			if len(config.AppNetAdapterList) > 0 {
				configs[id] = config
			}
		}
		markers[name] = markOf(p, config.AppNetAdapterList)
	}
	return markers, configs
}

// keep has the markers of the present pods kept for a boot without an API server.
func (a *action) keep(f facts, markers map[string]string) {
	switch {
	case !f.complete || f.journaling || len(markers) > types.MaxPodMarkers:
	case maps.Equal(markers, f.journal):
		a.changed = time.Time{}
	case f.changed.IsZero():
		a.changed = f.now
		a.wake(journalAfter)
	case f.now.Sub(f.changed) < journalAfter:
		a.wake(journalAfter - f.now.Sub(f.changed))
	default:
		a.journal, a.changed = markers, time.Time{}
	}
}

func (a *action) wake(d time.Duration) {
	if a.again <= 0 || d < a.again {
		a.again = d
	}
}

// markOf is what eve-bridge is to read: which interface of a pod has the default route.
func markOf(p types.Pod, attached []types.AppNetAdapterConfig) string {
	upload := strings.HasPrefix(p.Name, "cdi-upload-") && strings.Contains(p.Name, "-pvc-")
	switch {
	case slices.ContainsFunc(attached, func(n types.AppNetAdapterConfig) bool { return n.DefaultRouteVia != nil }):
		return "native-ni-default"
	case len(attached) == 0 && p.Namespace == types.NamespaceApps && !upload:
		return "controller"
	}
	return "native"
}

// isMarker reports whether a file name is namespace_pod, of names that Kubernetes gives
// out and a file system takes: nothing in it leads out of the directory.
func isMarker(name string) bool {
	namespace, pod, ok := strings.Cut(name, "_")
	return ok && len(name) <= 255 && !strings.Contains(namespace, ".") && types.IsObjectName(namespace) && types.IsObjectName(pod)
}
