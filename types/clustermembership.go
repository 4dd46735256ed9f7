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

// Membership is whether this device belongs to a cluster.
type Membership string

// The memberships.
const (
	MembershipNever    Membership = "never"    // there has been no valid configuration yet
	MembershipMember   Membership = "member"   // there is one
	MembershipDoubtful Membership = "doubtful" // there was one, and nothing shows yet that the controller removed this device
	MembershipLeaving  Membership = "leaving"  // it is decided; the node is drained and deleted first
	MembershipLeft     Membership = "left"
)

// ClusterMembership is what zedkube makes of EdgeNodeClusterConfig over time,
// under key "global" of a persistent topic of its own (docs/wire.md,
// "ClusterMembership").
type ClusterMembership struct {
	State        Membership
	Reason       string                 // a sentence
	Config       *EdgeNodeClusterConfig // the last valid one, its token still encrypted; nil where never or left
	InvalidSince time.Time              // wall clock; zero while the configuration is valid
	ByOperator   bool                   // the leave was asked for at the device
	Consent      *LeaveConsent          `json:",omitempty"` // to the loss of data by the leave under way; nil for none
	Without      *WithoutDecision       `json:",omitempty"` // this leave is one without the cluster; nil for no such
}

// Belongs reports whether the device is to be treated as a member.
func (m ClusterMembership) Belongs() bool {
	return m.State == MembershipMember || m.State == MembershipDoubtful || m.State == MembershipLeaving
}

// WithoutIt reports that this device has left, or is leaving, the cluster of that
// ID without it.
func (m ClusterMembership) WithoutIt(cluster uuid.UUID) bool {
	return m.Without != nil && m.Without.Cluster == cluster
}

// ClusterLeaveRequest is an operator's wish that this node leave its cluster,
// under key "global" of zedkube-cli.
type ClusterLeaveRequest struct {
	RequestedAt time.Time
	Context     string
	Consent     *LeaveConsent `json:",omitempty"` // to the loss of data; nil for none

	WithoutCluster *LeaveWithoutCluster `json:",omitempty"` // it is to leave although nobody else answers; nil for no such wish
	Undo           bool                 `json:",omitempty"` // a decided leave without the cluster is withdrawn; then it is no request to leave
}

// ClusterMembers is what this node makes of the list of the cluster's masters
// and of its tie-breaker, under key "global" (docs/wire.md, "ClusterMembers").
// It is for people: no agent reads it.
type ClusterMembers struct {
	Masters    []uuid.UUID   // as the controller names them; nil while it names none
	Stale      []StaleMember // control-plane Nodes that are not among them, by name
	TieBreaker string        // node name; "" where there is none
	Why        string        // why a stale member or the tie-breaker is not put right yet, a sentence; "" where nothing is to be done
	Repairing  bool          // this node is at it
}

// StaleMember is a control-plane Node that the controller does not name as a
// master: no longer, or not yet.
type StaleMember struct {
	Node  string
	UUID  string    // label node-uuid
	Since time.Time // when this node first saw it stale, wall clock
	Why   string    // why it is not removed yet, a sentence
	Joins bool      `json:",omitempty"` // it was never named, as far as this node knows: it may be about to join
}

// ClusterMembersJournal is what the removal of stale members remembers over a
// restart, under key "global" of a persistent topic of zedkube's own
// (docs/wire.md, "ClusterMembers").
type ClusterMembersJournal struct {
	Cluster uuid.UUID    // of which all this is
	Named   []uuid.UUID  // devices that were named as its masters, here or in another node's stamp; the last that was added comes last
	Stale   []StaleTrace // Nodes that were stale at the last look, by name
}

// StaleTrace is what is remembered of a stale Node.
type StaleTrace struct {
	Node  string
	UID   string
	Since time.Time // when this node first saw it stale, wall clock; to be shown only
	// Given and Written are those of the stamp that the Node had then. Another one
	// was written later.
	Given   time.Time
	Written time.Time
}

// KnownNode is what is remembered of a Node for when it is deleted while its
// device may still run something, under its name in a persistent topic of
// zedkube's own. That a Node is missing says nothing of the device: k3s makes one
// again within seconds, and kubectl deletes one at any time.
type KnownNode struct {
	Name         string
	UID          string
	InternalIP   string
	ExternalIP   string    `json:",omitempty"`
	LeaseRenewed time.Time `json:",omitzero"` // the last renewal of its kubelet's Lease that was seen, by the kubelet's clock
	LeaseSeen    time.Time `json:",omitzero"` // when this node first saw it, by its own clock
}

// Node is the Node as witnesses look for it.
func (k KnownNode) Node() Node {
	return Node{Name: k.Name, UID: k.UID, InternalIP: k.InternalIP, ExternalIP: k.ExternalIP, Ready: ConditionUnknown}
}

const (
	// StampEvery is how often an agent writes its stamp, whether or not it has
	// anything new to say.
	StampEvery = 10 * time.Minute
	// StampFresh is how long a stamp may stay unchanged: two writes may fail, and
	// the third has five minutes. Who has just begun to look waits as long.
	StampFresh = 25 * time.Minute
)

// Foreign reports whether no zedkube of this kind is known to run on the node:
// it has no stamp, or the stamp has outlived the agent that wrote it, as after
// an update to an image with EVE's own (docs/wire.md, "Nodes"). Every rule that
// waits for one of ours to speak or to agree asks this, and not whether there is a
// stamp.
//
// It is the word of this device, and of a process that has watched for a while:
// until StampFresh has passed, an agent that has just started takes every node
// with a stamp for one of ours. The row rings when the answer changes.
func (n Node) Foreign() bool { return n.Agent == nil || n.StampStale }

// MaybeForeign reports whether no zedkube of this kind is known to run on the
// node, or its stamp has not been seen to change yet. Every rule that spares what
// EVE's own zedkube may need, or waits for what that may be doing, asks this: to
// take a node wrongly for one of ours would do harm there.
func (n Node) MaybeForeign() bool { return n.Foreign() || n.StampUnconfirmed }

// eveManager is under which name the API server files what EVE's own agents
// write: they name no field manager, so it is that of their program.
const eveManager = "zedbox"

// CordonedByEVE reports whether the node is cordoned by EVE's own zedkube alone,
// as far as the API server tells.
func (n Node) CordonedByEVE() bool {
	eve := false
	for _, w := range n.Writers {
		switch {
		case w.Field != FieldCordon:
		case w.Manager != eveManager:
			return false
		default:
			eve = true
		}
	}
	return eve && n.Unschedulable && n.CordonedBy == nil
}

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
	Unknown bool          // also to the loss of volumes that nobody could name
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
		switch {
		case n.Name == own:
			voter = n.Etcd
			continue
		case !n.TieBreaker:
			runners++
		}
		if n.Votes() {
			voters++
		}
	}
	last = voters == 0 && (voter || runners == 0)
	return last || runners == 0, last
}

// ClusterPeers is what this node knows of the other nodes of its cluster, and of
// the data on its own disks, for when the cluster cannot be asked any more: under
// key "global" of a persistent topic (docs/wire.md, "ClusterPeers").
type ClusterPeers struct {
	Cluster   uuid.UUID
	Seen      time.Time     // when the cluster last told of the peers, wall clock, to the hour
	Peers     []ClusterPeer // by name
	Words     []PeerWord    // what they last said of each other
	Volumes   []LeaveVolume // with a replica on this node, at most MaxLeaveVolumes
	Omitted   int           // how many more there are
	VolumesAt time.Time     // when they were last looked at, wall clock; zero for never
}

// ClusterPeer is another node of the cluster.
type ClusterPeer struct {
	Name      string
	UUID      string   // of its device, "" for unknown
	Addresses []string // where it may answer
}

// PeerWord is what a witness last said of a node that was not Ready.
type PeerWord struct {
	By    string
	Of    string
	Alive string    // where it answered; "" where it was silent
	At    time.Time // when this node heard of it, wall clock
}

// LeaveWithoutCluster is an operator's word that the cluster is dead
// (docs/wire.md, "ClusterLeaveRequest").
type LeaveWithoutCluster struct {
	Dead []string // names of all the other nodes, which he knows to be off
}

// WithoutClusterState is how far the evidence for a leave without the cluster is.
type WithoutClusterState string

// The states of the evidence.
const (
	WithoutLooking WithoutClusterState = "looking" // nothing has answered so far
	WithoutProved  WithoutClusterState = "proved"  // nothing has for ten minutes; good for ProofFor
	WithoutRefused WithoutClusterState = "refused" // the request is over; it can be made again
)

// WithoutCluster is what this node finds out about a request to leave without
// the cluster, under key "global" (docs/wire.md, "WithoutCluster").
type WithoutCluster struct {
	RequestedAt time.Time // of that request
	State       WithoutClusterState
	Reason      string        // a sentence
	Proved      time.Duration `json:",omitempty"` // since the boot, when it was proved; 0 for not
	SilentSince time.Time     // since when nothing has answered, wall clock; zero while the count has not begun
}

// ProofFor is how long a proof that the other nodes are dead is good for.
const ProofFor = time.Minute

// Fresh reports that it is a proof and still good: it may have been long ago, with
// the agent away since, or in a former boot.
func (w WithoutCluster) Fresh(uptime time.Duration) bool {
	return w.State == WithoutProved && w.Proved <= uptime && uptime-w.Proved < ProofFor
}

// WithoutDecision is a decided leave without the cluster. It is stronger than a
// configuration of the same cluster that is still valid.
type WithoutDecision struct {
	Cluster uuid.UUID
	At      time.Time // wall clock
	Dead    []string  // the nodes that were named
	Consent *LeaveConsent
}
