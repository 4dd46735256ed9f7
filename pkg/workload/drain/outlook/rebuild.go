package outlook

import (
	"math"
	"time"
)

const (
	// etaSteps is how many changes of a rebuild's percentage its rate is taken
	// from: it changes with the load.
	etaSteps = 6
	// etaForgets is how long a volume may go unasked for before it is forgotten.
	etaForgets = 10 * time.Minute
)

// RebuildRates remembers how fast rebuilds go.
type RebuildRates struct {
	volumes map[string]*rate
	swept   time.Time
}

type rate struct {
	asked time.Time
	steps []step // each of a higher percentage than the one before
}

type step struct {
	percent int
	at      time.Time
}

// Eta returns in how many seconds the rebuild of a volume will be done that is
// at percent now, 0 for unknown. One that goes backwards has begun anew; one that
// stands still gets slower.
func (r *RebuildRates) ETA(volume string, percent int, now time.Time) int {
	r.sweep(now)
	if percent <= 0 {
		delete(r.volumes, volume)
		return 0
	}
	v := r.volumes[volume]
	if v == nil || percent < v.steps[len(v.steps)-1].percent {
		v = &rate{}
		r.volumes[volume] = v
	}
	v.asked = now
	if n := len(v.steps); n == 0 || percent > v.steps[n-1].percent {
		v.steps = append(v.steps, step{percent, now})
	}
	v.steps = v.steps[max(0, len(v.steps)-etaSteps):]
	first := v.steps[0]
	done, took := percent-first.percent, now.Sub(first.at)
	if done <= 0 || took <= 0 {
		return 0
	}
	return int(math.Ceil(took.Seconds() * float64(100-percent) / float64(done)))
}

// sweep forgets what was not asked for lately.
func (r *RebuildRates) sweep(now time.Time) {
	if r.volumes == nil {
		r.volumes = map[string]*rate{}
	}
	if now.Sub(r.swept) < etaForgets {
		return
	}
	for name, v := range r.volumes {
		if now.Sub(v.asked) >= etaForgets {
			delete(r.volumes, name)
		}
	}
	r.swept = now
}
