package membercmd

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/plan"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
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
func planWithout(ctx context.Context, p device.Paths, check bool) terminal.View {
	f, err := lookAtPeers(ctx, p)
	if err != nil {
		return terminal.View{Err: err}
	}
	w := withoutPlan{
		Made: time.Now().UTC(), Node: f.node, Against: f.against(), Peers: f.known.Peers, Seen: f.known.Seen, Words: f.known.Words,
		Decided: f.member.Without, GiveUp: giveUpOf(f.consent(), f.known.VolumesAt),
	}
	if e, _, err := device.ReadRecord[types.WithoutCluster](p.TopicFile(device.Self, "WithoutCluster")); err == nil {
		w.Evidence = &e
	}
	s := terminal.View{Data: w, Draw: func(s *terminal.Screen) { putWithoutPlan(s, f, w) }}
	if check && w.Against != "" {
		s.Err = terminal.ExitWith(plan.ExitBlocks, errors.New("a leave without the cluster would be refused: "+terminal.Clean(w.Against)))
	}
	return s
}

func putWithoutPlan(s *terminal.Screen, f survivor, p withoutPlan) {
	s.Put(0, terminal.Bold, "Plan of a leave of "+terminal.Clean(p.Node)+" without its cluster, nothing is changed")
	if p.Against != "" {
		s.Field("verdict", terminal.Red, "It would be refused: "+terminal.Clean(p.Against)+".")
	} else {
		s.Field("verdict", terminal.Plain, "Nothing answers now. If that lasts ten minutes after it is asked for, this node leaves.")
	}
	s.Field("asked at", terminal.Plain, terminal.Timestamp(p.Made))
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
	s.Gap()
	s.Put(0, terminal.Bold, "What would have to be given up")
	for _, line := range giveUpLines(p.GiveUp) {
		s.Put(2, terminal.Red, line)
	}
	slices.Sort(flags)
	ask := "zedkube leave --without-cluster " + strings.Join(flags, " ") + " --give-up-data"
	s.Put(2, terminal.Plain, "At a terminal: "+ask)
	s.Put(2, terminal.Plain, "In a script:   "+ask+" --digest "+p.GiveUp.Digest)
}
