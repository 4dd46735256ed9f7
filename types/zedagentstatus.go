package types

import "time"

// ConfigGetStatus is how the last fetch of the configuration went.
type ConfigGetStatus uint8

// The fetch results; only success and a saved copy make a node eligible to
// report for the cluster.
const (
	ConfigGetUnset ConfigGetStatus = iota
	ConfigGetSuccess
	ConfigGetFail
	ConfigGetTemporaryFail
	ConfigGetReadSaved
)

// String returns EVE's name of the result.
func (s ConfigGetStatus) String() string {
	return enumName("ConfigGetStatus", []string{"Unset", "Success", "Fail", "TemporaryFail", "ReadSaved"}, s)
}

// ZedAgentKey is the key of ZedAgentStatus.
const ZedAgentKey = "zedagent"

// ZedAgentStatus is zedagent's word on its own state, under ZedAgentKey.
// Fields zedkube does not read are left out.
type ZedAgentStatus struct {
	ConfigGetStatus ConfigGetStatus
}

// configSettles is how long after its word zedagent may still parse what it has
// read: it tells of a fetch that succeeded before it looks at what came.
const configSettles = 5 * time.Minute

// ConfigWord remembers since when zedagent has had a configuration. Until then
// its tables are complete and empty, after a boot without a controller for hours.
// The zero value has heard nothing.
type ConfigWord struct{ since time.Time }

// Hear takes in zedagent's present word, and whether its table has anything. Until
// wait has passed, what the table does not hold may be in it later; 0 means that it
// is not configured.
func (w *ConfigWord) Hear(s ZedAgentStatus, any bool, now time.Time) (wait time.Duration) {
	switch read := s.ConfigGetStatus == ConfigGetSuccess || s.ConfigGetStatus == ConfigGetReadSaved; {
	case s.ConfigGetStatus == ConfigGetUnset: // it begins, or is not there
		w.since = time.Time{}
	case (read || any) && w.since.IsZero():
		w.since = now
	}
	if w.since.IsZero() {
		return configSettles
	}
	return max(0, configSettles-now.Sub(w.since))
}
