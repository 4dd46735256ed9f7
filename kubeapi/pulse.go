package kubeapi

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// viewsRest is how long the views wait for news at most.
const viewsRest = time.Minute

// stuck names the loops of the present connection that do not turn any more.
func (r *run) stuck() string {
	conn := r.session.Present()
	if conn == nil {
		return ""
	}
	names, now := slices.Sorted(maps.Keys(conn.Pulses)), time.Now()
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { return !conn.Pulses[name].Stuck(now) }), ", ")
}
