package types

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
)

// LeaveVolume is a volume whose data a leave takes along.
type LeaveVolume struct {
	UID   string
	Name  string
	Claim string // namespace/name of its claim, "" for none
}

// StorageLook is what a look at the volumes found of this node.
type StorageLook struct {
	BootID  string
	Uptime  time.Duration // since the boot, when it was made
	At      time.Time     // the same by the wall clock
	Volumes []LeaveVolume // that would be lost with this node, at most MaxLeaveVolumes
	Omitted int           `json:",omitempty"` // how many more there are
}

// MaxLeaveVolumes bounds the volumes of a look and of a consent: they are part of
// records that are one packet each.
const MaxLeaveVolumes = 250

// consentFor is how long a consent is good for.
const consentFor = 24 * time.Hour

// LeaveConsent is an operator's word that a leave may take data along: that of
// the named volumes and of no other (docs/wire.md, "ClusterLeaveRequest").
type LeaveConsent struct {
	Given   time.Time     // wall clock, for people
	Uptime  time.Duration // since the boot, when it was given
	BootID  string        // it holds in this boot alone
	Cluster uuid.UUID     // and for the leave from this cluster
	Volumes []LeaveVolume // that may be lost
	Unknown bool          // given although nobody could say which volumes there are
	Ends    bool          // also to the end of the cluster, of which this is the last node
}

// Holds reports whether the consent is good now: in this boot, for this
// cluster, and no older than a day. None never is.
func (c *LeaveConsent) Holds(bootID string, cluster uuid.UUID, uptime time.Duration) bool {
	return c != nil && bootID != "" && c.BootID == bootID && cluster != uuid.Nil && c.Cluster == cluster &&
		uptime >= c.Uptime && uptime-c.Uptime < consentFor
}

// Lacks returns the volumes that the consent does not name; without a consent,
// all of them.
func (c *LeaveConsent) Lacks(volumes []LeaveVolume) []LeaveVolume {
	return slices.DeleteFunc(slices.Clone(volumes), func(v LeaveVolume) bool {
		return c != nil && v.UID != "" && slices.ContainsFunc(c.Volumes, func(w LeaveVolume) bool { return w.UID == v.UID })
	})
}

// Digest names what is consented to: it is the same for the same boot, cluster
// and volumes, whenever it is asked for.
func (c LeaveConsent) Digest() string {
	same := LeaveConsent{BootID: c.BootID, Cluster: c.Cluster, Unknown: c.Unknown, Ends: c.Ends}
	for _, v := range c.Volumes {
		same.Volumes = append(same.Volumes, LeaveVolume{UID: v.UID})
	}
	slices.SortFunc(same.Volumes, func(a, b LeaveVolume) int { return cmp.Compare(a.UID, b.UID) })
	text, _ := json.Marshal(same) // of strings, numbers and booleans it does not fail
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// LastOf reports what ends when own leaves the cluster of these nodes: ends where
// no other node but a tie-breaker is left to run anything, or none that votes in
// etcd; last where etcd itself ends, so that nobody can remove own's Node.
func LastOf(nodes []Node, own string) (ends, last bool) {
	runners, voters, voter := 0, 0, false
	for _, n := range nodes {
		votes := n.Etcd && n.EtcdVoter != ConditionFalse
		switch {
		case n.Name == own:
			voter = n.Etcd
			continue
		case !n.TieBreaker:
			runners++
		}
		if votes {
			voters++
		}
	}
	last = voters == 0 && (voter || runners == 0)
	return last || runners == 0, last
}
