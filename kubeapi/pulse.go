package kubeapi

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/loop"
)

// The loops of a connection that have a pulse. A list and a probe end by the
// deadline of transport.go, a watch when the server is found silent or its
// connection is retired: so a loop that does not turn hangs in this process.
const (
	loopViews  = "views"
	loopProbes = "probes"
)

// viewsRest is how long the views wait for news at most.
const viewsRest = time.Minute

func newPulses() map[string]*loop.Pulse {
	return map[string]*loop.Pulse{loopViews: {}, loopProbes: {}}
}

// stuck names the loops of the present connection that do not turn any more.
func (r *run) stuck() string {
	conn := r.present()
	if conn == nil {
		return ""
	}
	names, now := slices.Sorted(maps.Keys(conn.pulses)), time.Now()
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { return !conn.pulses[name].Stuck(now) }), ", ")
}

// turn is one look at the file. It does not end for the watchdog while another
// loop is stuck: one pulse shows all of them, and who reads it sees this loop stuck.
func (k *kubeconfig) turn() {
	if k.stuckAt == "" {
		k.pulse.Begin()
	}
	k.look()
	stuck := ""
	if k.stuck != nil {
		stuck = k.stuck()
	}
	if stuck != "" && stuck != k.stuckAt {
		k.log.WithField("loops", stuck).Error("loops of the connection to the API server are stuck")
	}
	if k.stuckAt = stuck; stuck == "" {
		k.pulse.End(rescanEvery, k.reported != "")
	}
}
