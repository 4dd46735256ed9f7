package membership

import (
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/span"
	"github.com/zedkube/zedkube/types"
)

var (
	now    = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	early  = now.Add(-10 * time.Minute)
	device = uuid.MustParse("b3e2f1a0-1111-4222-8333-444455556666")
	second = uuid.MustParse("b3e2f1a1-1111-4222-8333-444455556666")
	third  = uuid.MustParse("b3e2f1a2-1111-4222-8333-444455556666")
)

// up is the uptime of every row: long enough that any count may be full.
const up = 100 * time.Hour

// config is a valid configuration of a server node.
func config(change ...func(*types.EdgeNodeClusterConfig)) types.EdgeNodeClusterConfig {
	c := types.EdgeNodeClusterConfig{
		Initialized: true, Valid: true, ClusterName: "c1",
		ClusterID:       types.UUIDandVersion{UUID: uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")},
		ClusterIPPrefix: &net.IPNet{IP: net.IPv4(10, 244, 244, 2), Mask: net.CIDRMask(28, 32)},
		CipherToken:     types.CipherBlockStatus{CipherBlockID: "6ba7b810", CipherData: []byte("sealed"), IsCipher: true},
		MasterNodeIDs:   []uuid.UUID{device, second, third},
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func worker(c *types.EdgeNodeClusterConfig) { c.IsWorkerNode = true }
func renamed(c *types.EdgeNodeClusterConfig) {
	c.ClusterName = "again"
}

// at is a membership with the configuration of config.
func at(state types.Membership, change ...func(*types.EdgeNodeClusterConfig)) types.ClusterMembership {
	m := types.ClusterMembership{State: state, Reason: "before"}
	if m.Belongs() {
		c := config(change...)
		m.Config = &c
	}
	if m.Belongs() && state != types.MembershipMember || state == types.MembershipLeft {
		m.InvalidSince = early
	}
	return m
}

func lasting(d time.Duration) span.Span { return span.Span{Holds: true, Began: up - d} }

// world is everything in order: the API is seen whole, the controller reached,
// and zedagent's word is w.
func world(w configState, was types.ClusterMembership, change ...func(*facts)) facts {
	f := facts{
		now: now, uptime: up, was: was, published: was.State != "", configState: w, fetched: true, interval: time.Minute, hour: time.Hour,
		answers: true, seen: true, known: true, node: types.Node{Name: "n1"}, version: "1", tls: true,
	}
	if w == valid {
		f.config = config()
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

func doubting(d time.Duration) func(*facts) { return func(f *facts) { f.doubted = lasting(d) } }
func watching(d time.Duration) func(*facts) { return func(f *facts) { f.watched = lasting(d) } }
func missed(d time.Duration) func(*facts) {
	return func(f *facts) { f.known, f.node, f.missing = false, types.Node{}, lasting(d) }
}

func omits(node string) func(*facts) {
	return func(f *facts) { f.lists = append(f.lists, list{node: node}) }
}

func vetoes(node string) func(*facts) {
	return func(f *facts) { f.lists = append(f.lists, list{node: node, names: true}) }
}
func dead(f *facts)                { f.answers, f.seen = false, false }
func unseen(f *facts)              { f.seen = false }
func unreached(f *facts)           { f.fetched = false }
func wished(f *facts)              { f.leaveRequested = true }
func refused(f *facts)             { f.refused = true }
func withdrawnByOperator(f *facts) { f.withdrawnByOperator = true }
func left(f *facts)                { f.left = true }

const long = 24 * time.Hour

func TestMembershipFollowsFromTheRules(t *testing.T) {
	none := types.ClusterMembership{}
	byOperator := at(types.MembershipLeaving)
	byOperator.ByOperator = true
	for name, r := range map[string]struct {
		f    facts
		want types.Membership // "" for nothing published at all
	}{
		"nothing is said before zedagent speaks":                   {world(notRead, none), ""},
		"a device without a cluster was never a member":            {world(invalid, none), types.MembershipNever},
		"no configuration at all is no cluster either":             {world(gone, none), types.MembershipNever},
		"the first valid configuration makes a member":             {world(valid, at(types.MembershipNever)), types.MembershipMember},
		"without a journal it does so too":                         {world(valid, none), types.MembershipMember},
		"a device that never was a member leaves nothing":          {world(invalid, at(types.MembershipNever), doubting(long), watching(long), wished), types.MembershipNever},
		"a restart says nothing of a member":                       {world(notRead, at(types.MembershipMember)), types.MembershipMember},
		"nor of a doubtful one, whatever peers say":                {world(notRead, at(types.MembershipDoubtful), omits("n2"), wished), types.MembershipDoubtful},
		"nor of one that leaves":                                   {world(notRead, at(types.MembershipLeaving), left), types.MembershipLeaving},
		"an invalid configuration is a doubt at first":             {world(invalid, at(types.MembershipMember), watching(0)), types.MembershipDoubtful},
		"so is one that is gone":                                   {world(gone, at(types.MembershipMember)), types.MembershipDoubtful},
		"a valid one ends the doubt":                               {world(valid, at(types.MembershipDoubtful), omits("n2"), doubting(long)), types.MembershipMember},
		"less than five intervals are no answer":                   {world(invalid, at(types.MembershipDoubtful), doubting(5*time.Minute-1), omits("n2")), types.MembershipDoubtful},
		"five intervals and a peer's list without us are":          {world(invalid, at(types.MembershipDoubtful), doubting(5*time.Minute), omits("n2")), types.MembershipLeaving},
		"that holds for a configuration that is gone":              {world(gone, at(types.MembershipDoubtful), doubting(5*time.Minute), omits("n2")), types.MembershipLeaving},
		"five intervals alone are not":                             {world(invalid, at(types.MembershipDoubtful), doubting(5*time.Minute), watching(time.Hour-1)), types.MembershipDoubtful},
		"an hour in which no peer has a list is":                   {world(invalid, at(types.MembershipDoubtful), doubting(long), watching(time.Hour)), types.MembershipLeaving},
		"an hour in which no list could be seen is not":            {world(invalid, at(types.MembershipDoubtful), doubting(long)), types.MembershipDoubtful},
		"an hour shorter than five intervals waits for them":       {world(invalid, at(types.MembershipDoubtful), doubting(4*time.Minute), watching(4*time.Minute), func(f *facts) { f.hour = time.Minute }), types.MembershipDoubtful},
		"a peer that withdrew its list too holds the hour":         {world(invalid, at(types.MembershipDoubtful), doubting(long), watching(long), func(f *facts) { f.invalidPeer = "n2" }), types.MembershipDoubtful},
		"a list from before that names us holds the hour":          {world(invalid, at(types.MembershipDoubtful), doubting(long), watching(long), func(f *facts) { f.lastPeer = "n2" }), types.MembershipDoubtful},
		"neither holds up what another peer was told":              {world(invalid, at(types.MembershipDoubtful), doubting(5*time.Minute), omits("n3"), func(f *facts) { f.invalidPeer, f.lastPeer = "n2", "n4" }), types.MembershipLeaving},
		"nor an operator":                                          {world(invalid, at(types.MembershipDoubtful), wished, func(f *facts) { f.invalidPeer, f.lastPeer = "n2", "n4" }), types.MembershipLeaving},
		"a peer's list that names us vetoes":                       {world(invalid, at(types.MembershipDoubtful), doubting(5*time.Minute), vetoes("n2")), types.MembershipDoubtful},
		"beyond the hour too":                                      {world(invalid, at(types.MembershipDoubtful), doubting(long), watching(long), vetoes("n2")), types.MembershipDoubtful},
		"against a list without us too":                            {world(invalid, at(types.MembershipDoubtful), doubting(long), watching(long), omits("n2"), vetoes("n3")), types.MembershipDoubtful},
		"whatever the order":                                       {world(invalid, at(types.MembershipDoubtful), doubting(long), watching(long), vetoes("n2"), omits("n3")), types.MembershipDoubtful},
		"a controller that was not reached decides nothing":        {world(invalid, at(types.MembershipDoubtful), unreached, omits("n2"), watching(long)), types.MembershipDoubtful},
		"while the API is dead nothing is decided":                 {world(invalid, at(types.MembershipDoubtful), dead, doubting(long), watching(long), omits("n2")), types.MembershipDoubtful},
		"while it is not seen whole neither":                       {world(invalid, at(types.MembershipDoubtful), unseen, doubting(long), watching(long), omits("n2")), types.MembershipDoubtful},
		"for a worker lists say nothing":                           {world(invalid, at(types.MembershipDoubtful, worker), doubting(long), watching(long), omits("n2")), types.MembershipDoubtful},
		"a worker whose Node others deleted leaves":                {world(invalid, at(types.MembershipDoubtful, worker), doubting(5*time.Minute), missed(time.Minute)), types.MembershipLeaving},
		"not before its Node is gone for a minute":                 {world(invalid, at(types.MembershipDoubtful, worker), doubting(long), missed(time.Minute-1)), types.MembershipDoubtful},
		"nor before five intervals":                                {world(invalid, at(types.MembershipDoubtful, worker), doubting(time.Minute), missed(long)), types.MembershipDoubtful},
		"a worker leaves when asked to":                            {world(invalid, at(types.MembershipDoubtful, worker), wished), types.MembershipLeaving},
		"a server node too, at once":                               {world(invalid, at(types.MembershipDoubtful), wished), types.MembershipLeaving},
		"a veto does not hold an operator up":                      {world(invalid, at(types.MembershipDoubtful), wished, vetoes("n2")), types.MembershipLeaving},
		"a dead API does":                                          {world(invalid, at(types.MembershipDoubtful), wished, dead), types.MembershipDoubtful},
		"a request is refused while the configuration is valid":    {world(valid, at(types.MembershipMember), refused), types.MembershipMember},
		"one that was refused then is not heeded later":            {world(invalid, at(types.MembershipDoubtful), refused), types.MembershipDoubtful},
		"a server whose Node others deleted goes by the lists":     {world(invalid, at(types.MembershipDoubtful), doubting(long), missed(long)), types.MembershipDoubtful},
		"and leaves by them":                                       {world(invalid, at(types.MembershipDoubtful), doubting(long), missed(long), omits("n2")), types.MembershipLeaving},
		"a leave waits until the drain has forgotten the last one": {world(invalid, at(types.MembershipDoubtful), wished, left), types.MembershipDoubtful},
		"a node that leaves goes on, whatever peers say then":      {world(invalid, at(types.MembershipLeaving), vetoes("n2")), types.MembershipLeaving},
		"also while the API is dead":                               {world(invalid, at(types.MembershipLeaving), dead), types.MembershipLeaving},
		"it has left when the drain says so":                       {world(invalid, at(types.MembershipLeaving), left), types.MembershipLeft},
		"a valid configuration cancels the leave":                  {world(valid, at(types.MembershipLeaving)), types.MembershipMember},
		"to the last moment":                                       {world(valid, at(types.MembershipLeaving), left), types.MembershipMember},
		"an operator's leave can be taken back":                    {world(invalid, byOperator, withdrawnByOperator), types.MembershipDoubtful},
		"not when it is done":                                      {world(invalid, byOperator, withdrawnByOperator, left), types.MembershipLeft},
		"another leave is nobody's to take back":                   {world(invalid, at(types.MembershipLeaving), withdrawnByOperator), types.MembershipLeaving},
		"who has left stays so":                                    {world(invalid, at(types.MembershipLeft), wished, omits("n2"), doubting(long)), types.MembershipLeft},
		"until the next valid configuration":                       {world(valid, at(types.MembershipLeft), left), types.MembershipMember},
	} {
		t.Run(name, func(t *testing.T) {
			got := next(r.f)
			if got.State != r.want {
				t.Errorf("%q (%s), want %q", got.State, got.Reason, r.want)
			}
			if (got.Config != nil) != got.Belongs() {
				t.Errorf("%s with the configuration %v", got.State, got.Config)
			}
			if got.Reason == "" && got.State != "" {
				t.Error("it gives no reason")
			}
		})
	}
}

func TestTheLastValidConfigurationIsKeptWhole(t *testing.T) {
	changed := config(renamed)
	f := world(valid, at(types.MembershipMember), func(f *facts) { f.config = changed })
	got := next(f)
	want := types.ClusterMembership{State: types.MembershipMember, Reason: "the cluster configuration is valid", Config: &changed}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("a valid change is not taken over: want -, got +\n" + d)
	}
	got = next(world(invalid, got))
	if d := cmp.Diff(&changed, got.Config); d != "" || !got.InvalidSince.Equal(now) {
		t.Errorf("in doubt since %s: want -, got +\n%s", got.InvalidSince, d)
	}
	if again := next(world(invalid, got, func(f *facts) { f.now = now.Add(time.Hour) })); !again.InvalidSince.Equal(now) {
		t.Errorf("the doubt began anew at %s", again.InvalidSince)
	}
}

func TestWhatStandsIsNotPublishedAgain(t *testing.T) {
	for name, f := range map[string]facts{
		"member":   world(valid, next(world(valid, at(types.MembershipNever)))),
		"doubtful": world(invalid, next(world(invalid, at(types.MembershipMember)))),
		"leaving":  world(invalid, at(types.MembershipLeaving)),
		"unheard":  world(notRead, types.ClusterMembership{}),
	} {
		if a := decide(f); a.publish != nil {
			t.Errorf("%s: published again: %+v", name, *a.publish)
		}
	}
}

func TestReasonsNameThePeer(t *testing.T) {
	for want, f := range map[string]facts{
		"the cluster configuration is no longer valid: node n2 has since been configured with this device as a master":                                    world(invalid, at(types.MembershipDoubtful), vetoes("n2")),
		"the cluster configuration was withdrawn: node n2 has since been configured without this device as a master":                                      world(gone, at(types.MembershipDoubtful), doubting(long), omits("n2")),
		"the cluster configuration is no longer valid: nothing is decided while the API server does not answer":                                           world(invalid, at(types.MembershipDoubtful), dead),
		"the cluster configuration is valid: the leave requested at the device is refused, because the controller still configures this node as a member": world(valid, at(types.MembershipMember), refused),
	} {
		if got := next(f).Reason; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestItLooksAgainWhenSomethingIsDue(t *testing.T) {
	for name, r := range map[string]struct {
		f    facts
		want time.Duration
	}{
		"nothing is":              {world(valid, at(types.MembershipMember)), period},
		"five intervals":          {world(invalid, at(types.MembershipDoubtful), doubting(5*time.Minute-3*time.Second)), 3 * time.Second},
		"the hour":                {world(invalid, at(types.MembershipDoubtful), doubting(long), watching(time.Hour-2*time.Second)), 2 * time.Second},
		"a Node missing too long": {world(invalid, at(types.MembershipDoubtful), missed(59*time.Second)), time.Second},
		"what is over":            {world(invalid, at(types.MembershipDoubtful), doubting(long), watching(long), missed(long)), period},
	} {
		if got := again(r.f); got != r.want {
			t.Errorf("%s: in %s, want %s", name, got, r.want)
		}
	}
}

func TestTimeInWhichNobodyLookedDoesNotCount(t *testing.T) {
	var s span.Span
	for at := time.Duration(0); at <= time.Hour; at += period {
		s.Note(at, true)
	}
	if !s.Reached(time.Hour, time.Hour) {
		t.Error("an hour of looks is no hour")
	}
	woken := 3 * time.Hour // the device slept
	s.Note(woken, true)
	if s.Reached(woken, period) || !s.Reached(woken+period, period) {
		t.Errorf("after two hours without a look it has held since %s; it is %s", s.Began, woken)
	}
}
