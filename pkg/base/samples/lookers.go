package samples

import (
	"time"

	"github.com/zedkube/zedkube/types"
)

// watchedFor is how long a command is taken to watch after it last said so: it
// says so every five seconds, and may be late twice.
const watchedFor = 15 * time.Second

// Lookers are those who want measurements often, by the key of their row of MetricsLook.
type Lookers map[string]looker

// looker is when a row was last seen to change.
type looker struct {
	row types.MetricsLook
	at  time.Duration
}

// Now takes note of the rows that have changed. A row that is new to us counts
// as changed: a former process of ours may not have seen it.
func (l Lookers) Now(rows map[string]types.MetricsLook, uptime time.Duration) Lookers {
	out := make(Lookers, len(rows))
	for key, row := range rows {
		s, ok := l[key]
		if !ok || !s.row.At.Equal(row.At) {
			s = looker{row: row, at: uptime}
		}
		out[key] = s
	}
	return out
}

// Watch reports that any of them does.
func (l Lookers) Watch(uptime time.Duration) bool {
	for _, s := range l {
		if uptime-s.at < watchedFor {
			return true
		}
	}
	return false
}
