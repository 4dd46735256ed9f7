package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/joinplan"
	"github.com/zedkube/zedkube/types"
)

// withoutPlan is what would become of a leave without the cluster.
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

// planWithout looks once, and changes nothing.
func planWithout(ctx context.Context, p paths, check bool) shown {
	f, err := lookAtPeers(ctx, p)
	if err != nil {
		return shown{lines: func(int, bool) []string { return nil }, err: err}
	}
	plan := withoutPlan{
		Made: time.Now().UTC(), Node: f.node, Against: f.against(), Peers: f.known.Peers, Seen: f.known.Seen, Words: f.known.Words,
		Decided: f.member.Without, GiveUp: giveUpOf(f.consent(), f.known.VolumesAt),
	}
	if e, _, err := readRecord[types.WithoutCluster](p.topicFile(self, "WithoutCluster")); err == nil {
		plan.Evidence = &e
	}
	s := shown{data: plan, lines: func(width int, colour bool) []string { return withoutLines(f, plan, width, colour) }}
	if check && plan.Against != "" {
		s.err = exitWith(exitPlanBlocks, errors.New("a leave without the cluster would be refused: "+clean(plan.Against)))
	}
	return s
}

// withoutLines is the plan as a screen.
func withoutLines(f survivor, p withoutPlan, width int, colour bool) []string {
	s := &screen{width: width, colour: colour}
	s.put(0, bold, "Plan of a leave of "+clean(p.Node)+" without its cluster, nothing is changed")
	if p.Against != "" {
		s.field("verdict", red, "It would be refused: "+clean(p.Against)+".")
	} else {
		s.field("verdict", plain, "Nothing answers now. If that lasts ten minutes after it is asked for, this node leaves.")
	}
	s.field("asked at", plain, p.Made.Format("2006-01-02 15:04:05Z"))
	if e := p.Evidence; e != nil {
		s.field("evidence", plain, clean(string(e.State))+": "+clean(e.Reason))
	}
	s.gap()
	s.put(0, bold, "Other nodes, as of "+stamp(p.Seen, p.Made))
	var flags []string
	for _, peer := range p.Peers {
		s.put(2, plain, clean(peer.Name)+": "+clean(cmp.Or(strings.Join(peer.Addresses, ", "), "no address is known")))
		flags = append(flags, "--dead "+clean(peer.Name))
	}
	for _, line := range f.warnings() {
		s.put(2, plain, line)
	}
	s.gap()
	s.put(0, bold, "What would have to be given up")
	for _, line := range giveUpLines(p.GiveUp) {
		s.put(2, red, line)
	}
	slices.Sort(flags)
	ask := "zedkube leave --without-cluster " + strings.Join(flags, " ") + " --give-up-data"
	s.put(2, plain, "At a terminal: "+ask)
	s.put(2, plain, "In a script:   "+ask+" --digest "+p.GiveUp.Digest)
	return s.lines
}
