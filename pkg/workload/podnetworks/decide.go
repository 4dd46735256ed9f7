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
	// removeAfter is how long a marker and a configuration outlast their pods: one that
	// is made again under the same name finds them.
	removeAfter = time.Minute
	// journalAfter is how long a change waits to be kept, but for the very first list:
	// pods come and go in bursts, and a disk has only so many writes.
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
	now        time.Time
	complete   bool      // pods is every pod of this node
	silent     bool      // the API server does not answer
	connect    bool      // Kubernetes orchestrates, and networks is all that zedrouter says
	left       bool      // this device has left its cluster
	cluster    uuid.UUID // of which it is a member; uuid.Nil for none
	pods       map[string]types.Pod
	networks   map[string]types.NetworkInstanceStatus
	configs    map[string]types.AppNetworkConfig // published
	journal    types.PodMarkers
	journaling bool // it is being written
	memory
}

// memory is what this process has seen. Losing it costs a minute.
type memory struct {
	files   map[string]string    // markers that are there, with what this process wrote
	absent  map[string]time.Time // since when nobody needs a marker or a configuration, by its name or key
	changed time.Time            // when the markers began to differ from the journal; zero while they do not
}

type action struct {
	memory
	write             map[string]string // markers
	remove, unpublish []string
	publish           map[string]types.AppNetworkConfig
	journal           *types.PodMarkers // nil to leave it
	forget            bool              // it is of a cluster that this device has left
	problems          []string
	again             time.Duration
}

// decide says what the markers and the configurations of this node's pods should be.
func decide(f facts) action {
	a := action{
		memory: memory{f.files, map[string]time.Time{}, f.changed},
		write:  map[string]string{}, publish: map[string]types.AppNetworkConfig{},
	}
	markers, configs := a.wanted(f)
	kept := f.journal.Cluster == f.cluster      // pods of another cluster are not here
	for name, mark := range f.journal.Markers { // there may have been no list since the boot
		if _, is := f.files[name]; kept && f.silent && !is && isMarker(name) {
			a.write[name] = mark
		}
	}
	for name, mark := range markers {
		if a.write[name] = mark; f.files[name] == mark {
			delete(a.write, name)
		}
	}
	for name := range f.files {
		if _, is := markers[name]; !is && a.over(f, name) {
			a.remove = append(a.remove, name)
		}
	}
	for key := range f.configs {
		if _, is := configs[key]; !is && (f.left || a.over(f, key)) {
			a.unpublish = append(a.unpublish, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(configs)) {
		switch {
		case reflect.DeepEqual(f.configs[key], configs[key]):
		case len(a.publish) == portion:
			a.wake(soon)
		default:
			a.publish[key] = configs[key]
		}
	}
	a.forget = f.left && !kept && !f.journaling
	if kept && maps.Equal(markers, f.journal.Markers) {
		a.changed = time.Time{}
	} else if f.complete && !f.journaling && len(markers) <= types.MaxPodMarkers {
		if a.changed.IsZero() {
			a.changed = f.now
		}
		if rest := journalAfter - f.now.Sub(a.changed); rest > 0 && f.journal.Markers != nil {
			a.wake(rest)
		} else {
			a.journal, a.changed = &types.PodMarkers{Cluster: f.cluster, Markers: markers}, time.Time{}
		}
	}
	return a
}

// over reports whether nobody has needed a marker or a configuration for long enough.
// Nothing is taken back while the table is not complete: a pod that is missing may run.
func (a *action) over(f facts, name string) bool {
	since, was := f.absent[name]
	if !was && !f.complete {
		return false
	} else if !was {
		since = f.now
	}
	a.absent[name] = since
	rest := removeAfter - f.now.Sub(since)
	a.wake(rest)
	return rest <= 0 && f.complete
}

// wanted is the marker of each pod and the configuration of each workload. A marker
// follows from the pod alone: eve-bridge may read it before zedrouter knows a network.
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
		if markers[name] = markOf(p, nil); p.Networks == "" || strings.HasPrefix(p.Name, launcherPrefix) {
			continue
		}
		config, attached, err := configOf(p, nads)
		markers[name] = markOf(p, attached)
		id := config.UUIDandVersion.UUID.String()
		if !f.connect || err != nil {
			config = f.configs[id] // what is in use stays
		}
		if f.connect && err != nil {
			a.problems = append(a.problems, fmt.Sprintf("networks of pod %s: %v", key, err))
		}
		if len(config.AppNetAdapterList) > 0 && !f.left {
			configs[id] = config
		}
	}
	return markers, configs
}

func (a *action) wake(d time.Duration) {
	if d > 0 && (a.again <= 0 || d < a.again) {
		a.again = d
	}
}

// markOf is what eve-bridge is to read: which interface of a pod has the default route.
func markOf(p types.Pod, attached []selection) string {
	upload := strings.HasPrefix(p.Name, "cdi-upload-") && strings.Contains(p.Name, "-pvc-")
	switch {
	case slices.ContainsFunc(attached, func(s selection) bool { return len(s.DefaultRoute) > 0 }):
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
