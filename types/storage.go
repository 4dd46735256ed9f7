package types

import "time"

// The values of Longhorn's setting node-drain-policy that let a node go down
// with the last replica of a volume on it.
const (
	DrainPolicyAlwaysAllow  = "always-allow"
	DrainPolicyAllowStopped = "allow-if-replica-is-stopped"
)

// Storage is the volumes of the cluster, read on demand.
type Storage struct {
	Longhorn    bool   // it is installed
	Policy      string // its setting node-drain-policy, "" for unknown
	Volumes     []Volume
	Attachments []Attachment // VolumeAttachments of one node that are attached
}

// Volume is a Longhorn volume.
type Volume struct {
	UID        string
	Name       string
	Claim      string // namespace/name of its claim, "" for none
	State      string // attached, detached, attaching, ...
	Robustness string // healthy, degraded, faulted, unknown
	Replicas   []Replica
	Wanted     int      // how many replicas it should have
	Engine     string   // the node its engine is on, "" for none
	Running    bool     // the engine runs
	Also       []string // further nodes on which an engine of it is not known to be stopped: it migrates

	Created    time.Time
	Size       int64  // bytes it offers
	Used       int64  // bytes that it takes of each disk, its snapshots left out
	Snapshots  int64  // bytes of its snapshots, its head left out
	ClaimState string // of its PersistentVolume: Bound, Released, Available, Failed; "" for unknown
	LastClaim  string // namespace/name of the claim it is not bound to any more, "" for none
}

// Replica is one copy of a volume's data.
type Replica struct {
	Name      string
	Node      string
	Running   bool
	Mode      string // RW, WO, ERR as the running engine has it; "" where it has none
	LastMode  string // the same of an engine that cannot be asked, as it was last known; "" where one runs or none is known
	HealthyAt time.Time
	FailedAt  time.Time
	Percent   int    // of its rebuild, while Mode is WO
	State     string // running, stopped, error, starting, stopping; "" for unknown
	Started   bool   // it has been somewhere: it has an owner, an instance manager or an image
}

// Healthy reports whether the data of the replica is whole: the running
// engine reads and writes it, or it was whole when the volume was detached.
func (v Volume) Healthy(r Replica) bool {
	if v.Running {
		return r.Mode == "RW"
	}
	return !r.HealthyAt.IsZero() && r.FailedAt.IsZero()
}

// HealthyReplicas counts them.
func (v Volume) HealthyReplicas() int {
	n := 0
	for _, r := range v.Replicas {
		if v.Healthy(r) {
			n++
		}
	}
	return n
}

// On reports whether the volume has a replica on node.
func (v Volume) On(node string) bool {
	for _, r := range v.Replicas {
		if r.Node == node {
			return true
		}
	}
	return false
}

// Attachment is a VolumeAttachment.
type Attachment struct {
	Name   string
	UID    string
	Node   string
	Volume string // PersistentVolume; Longhorn calls its volume the same

	Daemons bool // only in a Storage: another node serves the volume, and here pods of DaemonSets alone use it
}
