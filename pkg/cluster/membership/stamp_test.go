package membership

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/types"
)

func TestAListIsStampedAtAChangeAndEveryTenMinutes(t *testing.T) {
	play(t, func(s *stage) {
		first := len(s.cluster.Calls("stamp"))
		stamps := func() int { return len(s.cluster.Calls("stamp")) - first }
		s.sleep(10*time.Minute - time.Second)
		if n := stamps(); n != 0 {
			t.Errorf("%d more stamps in ten minutes", n)
		}
		s.sleep(time.Second)
		if n := stamps(); n != 1 {
			t.Errorf("%d more stamps after ten minutes", n)
		}
		s.setConfig(config(func(c *types.EdgeNodeClusterConfig) { c.MasterNodeIDs = c.MasterNodeIDs[:2] }))
		if n := stamps(); n != 2 || len(s.shown()) != 2 {
			t.Errorf("%d stamps after a change, %v", n, s.shown())
		}
		given := s.stamp().Given
		s.reached(types.ConfigGetReadSaved)
		s.sleep(24 * time.Hour)
		if n := stamps(); n != 2+24*6 || !s.stamp().Given.Equal(given) || time.Since(s.stamp().Renewed) > 10*time.Minute {
			t.Errorf("%d stamps while the controller is not reached for a day: %+v, given %v before", n, s.stamp(), given)
		}
		s.reached(types.ConfigGetSuccess)
		s.sleep(time.Second)
		if s.stamp().Given.Equal(given) {
			t.Error("the list is not said to hold when the controller is reached again")
		}
	})
}

func TestAStampIsWrittenAtTheStartAndInTimeWhateverIsKnown(t *testing.T) {
	play(t, func(s *stage) {
		s.reached(types.ConfigGetFail)
		s.restart()
		for range 6 {
			before := s.stamp()
			s.sleep(10 * time.Minute)
			if after := s.stamp(); !after.Renewed.After(before.Renewed) || !after.Given.Equal(before.Given) || len(after.Masters) != 3 {
				t.Errorf("ten minutes after %+v it is %+v", before, after)
			}
		}
		s.reached(types.ConfigGetSuccess)
		s.invalidate()
		for range 3 {
			before := s.stamp()
			s.sleep(10 * time.Minute)
			if after := s.stamp(); !after.Renewed.After(before.Renewed) || !after.Given.Equal(before.Given) || len(after.Masters) > 0 {
				t.Errorf("withdrawn, ten minutes after %+v it is %+v", before, after)
			}
		}
	})
}

// The API server of a server node answers before its kubelet has registered.
func TestAStampIsWrittenAgainOnceTheNodeShowsThisBoot(t *testing.T) {
	for name, reached := range map[string]types.ConfigGetStatus{"controller reached": types.ConfigGetSuccess, "not reached": types.ConfigGetFail} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.reached(reached)
				s.restart()
				s.sleep(2 * time.Second)
				before, first := s.stamp(), len(s.cluster.Calls("stamp"))
				s.cluster.ChangeNode("n1", func(n *types.Node) { n.BootID = "of this boot" })
				s.sleep(time.Second)
				if n := len(s.cluster.Calls("stamp")) - first; n != 1 {
					t.Errorf("%d stamps after the kubelet registered", n)
				}
				if after := s.stamp(); after.Given.Equal(before.Given) && after.Renewed.Equal(before.Renewed) {
					t.Errorf("the others see no change: %+v", after)
				}
				s.sleep(9 * time.Minute)
				if n := len(s.cluster.Calls("stamp")) - first; n != 1 {
					t.Errorf("%d stamps in nine minutes", n)
				}
			})
		})
	}
}

func TestAListThatIsOnlyWrittenAgainIsNoNews(t *testing.T) {
	play(t, func(s *stage) {
		s.told("n2", second)
		s.invalidate()
		for range 5 {
			s.sleep(10 * time.Minute)
			n, _ := s.nodes.Get("n2")
			stamp := *n.Agent
			stamp.Renewed = time.Now()
			n.Agent, n.StampedAt = &stamp, time.Now()
			_ = s.nodes.Publish("n2", n)
		}
		s.is(types.MembershipDoubtful)
	})
}

func TestAStampThatHangsOrFailsHoldsNothingUp(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.SetLatency(time.Hour)
		s.sleep(10*time.Minute + time.Second)
		s.setConfig(config(renamed)) // a stamp is under way
		if got := s.membershipNow().Config.ClusterName; got != "again" {
			t.Errorf("the configuration is not heard while a stamp hangs: %q", got)
		}
		s.cluster.SetLatency(0)
		s.cluster.FailVerb("stamp", errors.New("no"))
		s.invalidate()
		s.sleep(5 * time.Hour)
		s.is(types.MembershipDoubtful) // peers cannot be told from before and after
		if n := len(s.cluster.Calls("stamp")); n > 400 {
			t.Errorf("%d stamps in five hours of failures", n)
		}
		errs := 0
		for _, e := range s.logs.AllEntries() {
			if e.Level == logrus.ErrorLevel {
				errs++
			}
		}
		if errs == 0 || errs > 2 {
			t.Errorf("%d errors in the log", errs)
		}
		own, _ := s.nodes.Get("n1")
		_ = s.nodes.Unpublish("n1")
		s.sleep(2 * time.Minute)
		if last := s.logs.LastEntry(); last == nil || last.Message != "step succeeds again" {
			t.Errorf("nothing is left to stamp, and the last line is %+v", last)
		}
		_ = s.nodes.Publish("n1", own)
		s.cluster.FailVerb("stamp", nil)
		s.sleep(2 * time.Minute)
		if got := s.shown(); len(got) != 0 {
			t.Errorf("the list is not withdrawn: %v", got)
		}
	})
}

// slow takes a second to heed the end of its context.
type slow struct{ ended bool }

func (k *slow) Stamp(ctx context.Context, _ string, _ types.AgentStamp) error {
	<-ctx.Done()
	time.Sleep(time.Second)
	k.ended = true
	return ctx.Err()
}

func TestAnAgentThatEndsLeavesNoStampUnderWay(t *testing.T) {
	play(t, func(s *stage) {
		kube := &slow{}
		s.kube = kube
		s.restart()
		s.stop()
		if !kube.ended {
			t.Error("a stamp is still under way")
		}
	})
}

func TestStampFollowsFromTheRules(t *testing.T) {
	masters, cluster := config().MasterNodeIDs, config().ClusterID.UUID
	given := types.AgentStamp{Version: "1", Cluster: cluster, Masters: masters, Given: early, TLS: true, Witnesses: types.WitnessMost}
	withdrawn := types.AgentStamp{Version: "1", Given: early, TLS: true, Witnesses: types.WitnessMost}
	leaving := types.AgentStamp{Version: "1", Given: early, Leaving: true, TLS: true, Witnesses: types.WitnessMost}
	fresh := types.AgentStamp{Version: "1", Cluster: cluster, Masters: masters, Given: now, TLS: true, Witnesses: types.WitnessMost}
	silent, former := given, given
	silent.TLS, former.Witnesses = false, 0
	shows := func(s types.AgentStamp) func(*facts) { return func(f *facts) { f.node.Agent = &s } }
	sent := func(s types.AgentStamp, ago time.Duration) func(*facts) {
		return func(f *facts) { f.sent, f.sentAt = s, lasting(ago) }
	}
	adopted := func(f *facts) { f.adopted = true }
	newer := func(f *facts) { f.version = "2" }
	tokenless := func(f *facts) { f.tls = false }
	booted := func(f *facts) { f.booted = true }
	beat := func(s types.AgentStamp) *types.AgentStamp {
		s.Version, s.Witnesses, s.Renewed = "1", types.WitnessMost, now
		return &s
	}
	for name, r := range map[string]struct {
		f    facts
		want *types.AgentStamp
	}{
		"a member's list goes out":                                    {world(valid, at(types.MembershipMember), adopted), &fresh},
		"not before the drain has looked for a stamp":                 {world(valid, at(types.MembershipMember)), nil},
		"not on a Node that is not there":                             {world(valid, at(types.MembershipMember), adopted, missed(0)), nil},
		"not while the API is dead":                                   {world(valid, at(types.MembershipMember), adopted, dead), nil},
		"not while another one is under way":                          {world(valid, at(types.MembershipMember), adopted, func(f *facts) { f.busy = true }), nil},
		"once after a start, as nobody knows how old it is":           {world(valid, at(types.MembershipMember), adopted, shows(given)), &fresh},
		"not again while it stands":                                   {world(valid, at(types.MembershipMember), adopted, shows(given), sent(given, 5*time.Minute)), nil},
		"anew after ten minutes":                                      {world(valid, at(types.MembershipMember), adopted, shows(given), sent(given, 10*time.Minute)), &fresh},
		"with the time of before while the controller is not reached": {world(valid, at(types.MembershipMember), adopted, shows(given), sent(given, 10*time.Minute), unreached), beat(given)},
		"not before ten minutes then":                                 {world(valid, at(types.MembershipMember), adopted, shows(given), sent(given, 10*time.Minute-1), unreached), nil},
		"at once when the controller is reached again":                {world(valid, at(types.MembershipMember), adopted, shows(*beat(given)), sent(*beat(given), time.Minute)), &fresh},
		"before that where the Node shows another boot":               {world(valid, at(types.MembershipMember), adopted, booted, shows(given), sent(given, time.Second)), &fresh},
		"with the time of before then":                                {world(valid, at(types.MembershipMember), adopted, booted, shows(given), sent(given, time.Second), unreached), beat(given)},
		"and where the list is withdrawn":                             {world(invalid, at(types.MembershipDoubtful), adopted, booted, shows(withdrawn), sent(withdrawn, time.Minute)), beat(withdrawn)},
		"when the list changes":                                       {world(valid, at(types.MembershipMember), adopted, shows(types.AgentStamp{Version: "1", Cluster: cluster, Masters: masters[:2], TLS: true, Witnesses: types.WitnessMost}), sent(given, 5*time.Minute)), &fresh},
		"not while the watch may not have shown it yet":               {world(valid, at(types.MembershipMember), adopted, shows(withdrawn), sent(given, 29*time.Second)), nil},
		"when the cluster is another one":                             {world(valid, at(types.MembershipMember), adopted, shows(types.AgentStamp{Version: "1", Cluster: second, Masters: masters, TLS: true, Witnesses: types.WitnessMost}), sent(given, time.Minute)), &fresh},
		"when somebody took it away":                                  {world(valid, at(types.MembershipMember), adopted, sent(given, time.Minute)), &fresh},
		"when the agent is another one":                               {world(valid, at(types.MembershipMember), adopted, newer, shows(given), sent(given, time.Minute)), &types.AgentStamp{Version: "2", Cluster: cluster, Masters: masters, Given: now, TLS: true, Witnesses: types.WitnessMost}},
		"when it does not say that the server speaks TLS":             {world(valid, at(types.MembershipMember), adopted, shows(silent), sent(silent, time.Minute)), &fresh},
		"when the server speaks TLS no more":                          {world(valid, at(types.MembershipMember), adopted, tokenless, shows(given), sent(given, time.Minute)), func() *types.AgentStamp { s := fresh; s.TLS = false; return &s }()},
		"that too while the controller is not reached":                {world(valid, at(types.MembershipMember), adopted, tokenless, unreached, shows(given), sent(given, time.Minute)), beat(silent)},
		"once, whatever the watch shows":                              {world(valid, at(types.MembershipMember), adopted, tokenless, unreached, shows(given), sent(silent, time.Second)), nil},
		"and in doubt":                                                {world(invalid, at(types.MembershipDoubtful), adopted, tokenless, shows(withdrawn), sent(withdrawn, time.Minute)), beat(types.AgentStamp{Given: early})},
		"when the former release knew no limit of witnesses":          {world(valid, at(types.MembershipMember), adopted, shows(former), sent(given, 5*time.Minute)), &fresh},
		"a Node without one gets one without a list":                  {world(invalid, at(types.MembershipNever), adopted), &types.AgentStamp{Version: "1", TLS: true, Witnesses: types.WitnessMost}},
		"also before the controller is reached":                       {world(valid, at(types.MembershipMember), adopted, unreached), &types.AgentStamp{Version: "1", TLS: true, Witnesses: types.WitnessMost}},
		"a restart writes again what stands":                          {world(notRead, at(types.MembershipMember), adopted, shows(given)), beat(given)},
		"once in ten minutes":                                         {world(notRead, at(types.MembershipMember), adopted, shows(*beat(given)), sent(*beat(given), 10*time.Minute-1)), nil},
		"a device in no cluster does so too":                          {world(invalid, at(types.MembershipNever), adopted, shows(types.AgentStamp{Version: "0"})), beat(types.AgentStamp{TLS: true, Witnesses: types.WitnessMost})},
		"the list is withdrawn when the configuration turns bad":      {world(invalid, at(types.MembershipMember), adopted, shows(given), sent(given, time.Second)), &types.AgentStamp{Version: "1", Given: now, TLS: true, Witnesses: types.WitnessMost}},
		"whether or not the controller is reached":                    {world(gone, at(types.MembershipMember), adopted, shows(given), unreached), &types.AgentStamp{Version: "1", Given: now, TLS: true, Witnesses: types.WitnessMost}},
		"a restart in doubt withdraws it":                             {world(notRead, at(types.MembershipDoubtful), adopted, shows(given)), &withdrawn},
		"once":                                                        {world(invalid, at(types.MembershipDoubtful), adopted, shows(withdrawn), sent(withdrawn, time.Minute)), nil},
		"and again in time, as of the same doubt":                     {world(invalid, at(types.MembershipDoubtful), adopted, shows(withdrawn), sent(withdrawn, 10*time.Minute)), beat(withdrawn)},
		"not if it went out again a moment ago":                       {world(invalid, at(types.MembershipDoubtful), adopted, shows(withdrawn), sent(*beat(withdrawn), time.Second)), nil},
		"not while the watch may not have shown that":                 {world(invalid, at(types.MembershipDoubtful), adopted, shows(given), sent(withdrawn, time.Second)), nil},
		"a stamp that never had a list is no withdrawal":              {world(invalid, at(types.MembershipDoubtful), adopted, shows(types.AgentStamp{Version: "1", Given: early.Add(-1), TLS: true, Witnesses: types.WitnessMost})), &withdrawn},
		"nor is that of an earlier doubt":                             {world(invalid, at(types.MembershipDoubtful), adopted, shows(types.AgentStamp{Version: "1", Given: early.Add(-long), TLS: true, Witnesses: types.WitnessMost})), &withdrawn},
		"a node that leaves withdraws it as well, and says why":       {world(invalid, at(types.MembershipLeaving), adopted, shows(given)), &leaving},
		"also when it was withdrawn in doubt":                         {world(invalid, at(types.MembershipLeaving), adopted, shows(withdrawn)), &leaving},
		"which it says once":                                          {world(invalid, at(types.MembershipLeaving), adopted, shows(leaving), sent(leaving, time.Minute)), nil},
		"and takes back when it is in doubt again":                    {world(invalid, at(types.MembershipDoubtful), adopted, shows(leaving)), &withdrawn},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(r.want, stampFor(r.f, next(r.f))); d != "" {
				t.Error("want -, got +\n" + d)
			}
		})
	}
}

func TestAStampSaysWhetherTheStatusServerHasATokenForTLS(t *testing.T) {
	play(t, func(s *stage) {
		stamps := len(s.cluster.Calls("stamp"))
		step := func(what string, tls bool, more int) {
			t.Helper()
			s.sleep(time.Second)
			if stamps += more; s.stamp().TLS != tls || len(s.cluster.Calls("stamp")) != stamps {
				t.Errorf("%s it says %v after %d stamps, want %v after %d", what, s.stamp().TLS, len(s.cluster.Calls("stamp")), tls, stamps)
			}
		}
		token := func(token string) {
			_ = s.status.Publish(types.Global, types.EdgeNodeClusterStatus{EncryptedClusterToken: token})
		}
		step("while nothing is served", false, 0)
		token("")
		step("before there is a token", false, 0)
		token("one")
		step("with one", true, 1)
		token("two")
		step("with another", true, 0)
		_ = s.status.Unpublish(types.Global)
		step("while nothing is served", true, 0)
		s.restart()
		step("by an agent that knows no more", true, 1)
		s.reached(types.ConfigGetFail)
		token(" \n")
		step("without one, and without the controller", false, 1)
		token("two")
		step("with one again", true, 1)
	})
}

func TestAStampSaysWhichTieBreakerWasNamed(t *testing.T) {
	play(t, func(s *stage) {
		named := func() uuid.UUID { n, _ := s.nodes.Get("n1"); return n.Agent.TieBreaker }
		if id := named(); id != uuid.Nil {
			t.Errorf("without one it names %s", id)
		}
		for _, id := range []uuid.UUID{second, third, uuid.Nil} {
			s.setConfig(config(func(c *types.EdgeNodeClusterConfig) { c.TieBreakerNodeID.UUID = id }))
			if got := named(); got != id {
				t.Errorf("it names %s, want %s", got, id)
			}
		}
		s.setConfig(config(func(c *types.EdgeNodeClusterConfig) { c.TieBreakerNodeID.UUID = second }))
		s.invalidate()
		if id := named(); id != uuid.Nil {
			t.Errorf("a withdrawn stamp names %s", id)
		}
	})
}
