package membercmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/cluster/peers"
	"github.com/zedkube/zedkube/pkg/operate/joinplan"
	"github.com/zedkube/zedkube/types"
)

// leaveWithout requests to leave a cluster of which no other node answers any more. It
// refuses what the agent would refuse, as far as that can be told in a moment.
func (l leaveFlags) leaveWithout(ctx context.Context, out io.Writer, p device.Paths, who consenting) error {
	f, err := lookAtPeers(ctx, p)
	if err != nil {
		return err
	}
	if !l.giveUp {
		return refuse("it needs --give-up-data: the kube container empties Longhorn's replica directory when this node has left")
	}
	if why := peers.Named(f.known.Peers, l.dead); why != "" {
		return refuse("%s", terminal.Clean(why))
	}
	if why := f.against(); why != "" {
		return refuse("%s", terminal.Clean(why))
	}
	for _, line := range f.warnings() {
		fmt.Fprintln(out, line)
	}
	consent := f.consent()
	g := joinplan.GiveUpOf(consent, f.known.VolumesAt)
	if err := who.confirm(ctx, out, f.node, g); err != nil {
		return err
	}
	now := time.Now().UTC()
	consent.Given, consent.Uptime = now, device.Uptime()
	recordConsent(ctx, p, consent, fmt.Sprintf("zedkube leave --without-cluster, named as off: %v", l.dead), f.node)
	r := types.ClusterLeaveRequest{
		RequestedAt: now, Context: l.reason, Consent: &consent, WithoutCluster: &types.LeaveWithoutCluster{Dead: l.dead},
	}
	if err := device.AskAgent(p, r); err != nil {
		return err
	}
	fmt.Fprint(out, "The request to leave without the cluster is made. No other node may answer for ten minutes; then there is one minute for --undo.\n"+
		"Watch it:     zedkube topics zedkube/WithoutCluster --watch\nTo withdraw it: zedkube leave --cancel; in the last minute: zedkube leave --undo\n")
	return nil
}

// ownEvidence is what a device can tell of its cluster by itself.
type ownEvidence struct {
	node    string
	boot    string
	member  types.ClusterMembership
	known   types.ClusterPeers
	answers bool // the API server does
	look    peers.Look
	fetched bool // the controller was reached at the last try
}

// lookAtPeers asks nobody but the network.
func lookAtPeers(ctx context.Context, p device.Paths) (ownEvidence, error) {
	var f ownEvidence
	var err error
	if f.member, _, err = device.ReadRecord[types.ClusterMembership](p.PersistentFile(device.Self, "ClusterMembership")); err != nil {
		return f, fmt.Errorf("read whether this device is a member of a cluster: %w", err)
	}
	if !f.member.Belongs() || f.member.Config == nil {
		return f, errors.New("this device is not a member of a cluster: there is nothing to leave")
	}
	if f.boot, err = device.ReadBootID(p.BootID); err != nil {
		return f, refuse("a consent is valid for one boot, and the ID of this boot is not known: %v", err)
	}
	if info, err := device.OwnName(p); err == nil {
		f.node = info.NodeName()
	}
	f.known, _, err = device.ReadRecord[types.ClusterPeers](p.PersistentFile(device.Self, "ClusterPeers"))
	if err != nil || f.known.Cluster != f.member.Config.ClusterID.UUID || len(f.known.Peers) == 0 {
		return f, refuse("the other nodes of the cluster are not known here")
	}
	_, err = device.FreshNodes(ctx, p)
	f.answers = err == nil
	status, _, _ := device.ReadRecord[types.EdgeNodeClusterStatus](p.TopicFile(device.Self, "EdgeNodeClusterStatus"))
	link := peers.Link{Interface: status.ClusterInterface, Proc: p.Proc, Sysfs: p.Sysfs}
	f.look = peers.LookFor(ctx, (&net.Dialer{}).DialContext, peers.Places(f.known.Peers), link)
	agent, _, err := device.ReadRecord[types.ZedAgentStatus](device.ZedagentStatus(p))
	f.fetched = err == nil && agent.ConfigGetStatus == types.ConfigGetSuccess
	return f, nil
}

// against is why this node must not leave without its cluster, "" for nothing.
func (f ownEvidence) against() string {
	switch {
	case f.answers:
		return "the API server answers: leave with zedkube leave"
	case f.look.Answer != "":
		return f.look.Answer
	case f.known.Omitted > 0:
		return "more volumes have a replica here than one consent can name"
	}
	return f.look.Trouble(f.fetched)
}

// consent is what has to be consented to: all that has a replica here. What has come
// here since the last list is lost as well, and nobody can be asked for its name.
func (f ownEvidence) consent() types.LeaveConsent {
	return types.LeaveConsent{
		BootID: f.boot, Cluster: f.member.Config.ClusterID.UUID,
		Volumes: f.known.Volumes, Unknown: true, Ends: true,
	}
}

// warnings are what an operator has to know, and what others last said.
func (f ownEvidence) warnings() []string {
	lines := []string{
		"No other node of the cluster may be running: those that return keep the old cluster, and may run the same",
		"applications as this device. Keep them off, or wipe them, before they are switched on again.",
		"The current kube container resets this device only once the controller no longer configures the cluster for it.",
	}
	for _, w := range f.known.Words {
		said := "did not answer"
		if w.Alive != "" {
			said = "answered at " + terminal.Clean(w.Alive)
		}
		lines = append(lines, fmt.Sprintf("The last report of %s: %s %s, %s. It is not taken into account.", terminal.Clean(w.By), terminal.Clean(w.Of), said, terminal.Stamp(w.At, time.Now())))
	}
	return lines
}

func undoLeave(ctx context.Context, out io.Writer, p device.Paths, now time.Time) error {
	m, _, err := device.ReadRecord[types.ClusterMembership](p.PersistentFile(device.Self, "ClusterMembership"))
	switch {
	case err != nil:
		return fmt.Errorf("read whether this device is a member of a cluster: %w", err)
	case m.Without == nil:
		return refuse("no leave without the cluster has been decided; to withdraw a request for one: --cancel")
	case m.State != types.MembershipLeaving:
		return refuse("EdgeNodeClusterStatus is withdrawn already")
	}
	topic, err := device.OperatorTopic[types.ClusterLeaveRequest](p)
	if err != nil {
		return err
	}
	ctx = types.Because(types.ActAs(ctx, "command"), "OPERATOR", "zedkube leave --undo")
	types.Did(ctx, device.CommandRecord(p), "undo the leave without the cluster", "node", nil)
	if err := topic.Publish(types.Global, types.ClusterLeaveRequest{RequestedAt: now.UTC(), Undo: true}); err != nil {
		return err
	}
	fmt.Fprintln(out, "The leave without the cluster is undone, if its minute has not passed: zedkube status")
	return nil
}

type withoutPlan struct {
	Made     time.Time
	Node     string
	Against  string // a sentence: why it would be refused now; "" for nothing
	Peers    []types.ClusterPeer
	Seen     time.Time              // when the cluster last told of them
	Words    []types.PeerWord       // what they last said of each other: shown, and not counted
	Evidence *types.WithoutCluster  `json:",omitempty"` // of a request that stands
	Decided  *types.WithoutDecision `json:",omitempty"`
	GiveUp   joinplan.GiveUp
}

func planWithout(ctx context.Context, p device.Paths, check bool) terminal.View {
	f, err := lookAtPeers(ctx, p)
	if err != nil {
		return terminal.View{Err: err}
	}
	w := withoutPlan{
		Made: time.Now().UTC(), Node: f.node, Against: f.against(), Peers: f.known.Peers, Seen: f.known.Seen, Words: f.known.Words,
		Decided: f.member.Without, GiveUp: joinplan.GiveUpOf(f.consent(), f.known.VolumesAt),
	}
	if e, _, err := device.ReadRecord[types.WithoutCluster](p.TopicFile(device.Self, "WithoutCluster")); err == nil {
		w.Evidence = &e
	}
	s := terminal.View{Data: w, Draw: func(s *terminal.Screen) { putWithoutPlan(s, f, w) }}
	if check && w.Against != "" {
		s.Err = terminal.ExitWith(terminal.ExitFound, errors.New("a leave without the cluster would be refused: "+terminal.Clean(w.Against)))
	}
	return s
}

func putWithoutPlan(s *terminal.Screen, f ownEvidence, p withoutPlan) {
	s.Put(0, terminal.Bold, "Plan for the leave of "+terminal.Clean(p.Node)+" without its cluster, nothing is changed")
	if p.Against != "" {
		s.Field("verdict", terminal.Red, "It would be refused: "+terminal.Clean(p.Against)+".")
	} else {
		s.Field("verdict", terminal.Plain, "Nothing answers now. If nothing answers for ten minutes after the request, this node leaves.")
	}
	s.Field("made at", terminal.Plain, terminal.Timestamp(p.Made))
	if e := p.Evidence; e != nil {
		s.Field("evidence", terminal.Plain, terminal.Clean(string(e.State))+": "+terminal.Clean(e.Reason))
	}
	s.Gap()
	s.Put(0, terminal.Bold, "Other nodes, as of "+terminal.Stamp(p.Seen, p.Made))
	var flags []string
	for _, peer := range p.Peers {
		s.Put(2, terminal.Plain, terminal.Clean(peer.Name)+": "+terminal.Clean(cmp.Or(strings.Join(peer.Addresses, ", "), "no address is known")))
		flags = append(flags, "--dead "+terminal.Clean(peer.Name))
	}
	for _, line := range f.warnings() {
		s.Put(2, terminal.Plain, line)
	}
	slices.Sort(flags)
	putGiveUp(s, p.GiveUp, "zedkube leave --without-cluster "+strings.Join(flags, " ")+" --give-up-data")
}
