package membercmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// removeScene is a cluster of three servers whose node-3 is dead, and what an
// operator on node-2 types. Whatever changes it comes before the command.
type removeScene struct {
	cluster kubetest.Cluster
	nodes   pubsub.Table[types.Node]
	api     pubsub.Table[types.APIStatus]
	removing
	typed    string
	answers  map[string]types.ReachOutcome // by address; silent unless given
	onAnswer func()                        // while the operator is asked
	out      bytes.Buffer
	audit    []string
}

// Begin notes what is begun and how it ended.
func (s *removeScene) Begin(o types.Operation) func(types.OperationOutcome, error) {
	if n := len(s.cluster.Calls("setlock")) + len(s.cluster.Calls("deletenode")); n > 0 {
		s.audit = append(s.audit, "after the fact")
	}
	s.audit = append(s.audit, o.Op+" "+o.Target+": "+o.Why)
	return func(end types.OperationOutcome, _ error) { s.audit = append(s.audit, string(end)) }
}

// Read types the operator's answer.
func (s *removeScene) Read(b []byte) (int, error) {
	if s.onAnswer != nil {
		s.onAnswer()
	}
	return copy(b, s.typed+"\n"), nil
}

func newRemoveScene() *removeScene {
	s := &removeScene{typed: "node-3", answers: map[string]types.ReachOutcome{"10.0.0.1": types.ReachOpen}}
	s.cluster.Nodes, s.cluster.API = &s.nodes, &s.api
	s.cluster.SetFault(kubetest.None)
	for i, n := range cmdtest.ThreeNodes() {
		n.UID, n.Etcd, n.Ready, n.InternalIP = "uid-"+n.Name, true, types.ConditionTrue, fmt.Sprintf("10.0.0.%d", i+1)
		if i == 2 {
			n.Ready, n.UUID = types.ConditionUnknown, uuid.NameSpaceURL.String()
		}
		_ = s.nodes.Publish(n.Name, n)
	}
	s.removing = removing{name: "node-3", asks: true, info: cmdtest.OwnInfo, record: s, in: s, out: &s.out}
	s.try = func(_ context.Context, _, to netip.Addr, ports []int) []types.ReachPort {
		outcome, ok := s.answers[to.String()]
		if !ok {
			outcome = types.ReachSilent
		}
		return []types.ReachPort{{Port: ports[0], Outcome: outcome}}
	}
	return s
}

// lastReplica has the only replica of the volume on node-3.
func (s *removeScene) lastReplica(volume string) {
	s.cluster.SetStorage(types.Storage{Longhorn: true, Policy: types.DrainPolicyAlwaysAllow, Volumes: []types.Volume{{
		Name: volume, Claim: "app/data", State: "detached", Replicas: []types.Replica{{Name: "r", Node: "node-3", HealthyAt: time.Unix(1, 0)}},
	}}})
}

func TestWhichMemberAnOperatorMayRemove(t *testing.T) {
	change := func(name string, f func(*types.Node)) func(*removeScene) {
		return func(s *removeScene) { s.cluster.ChangeNode(name, f) }
	}
	down := func(n *types.Node) { n.Ready = types.ConditionUnknown }
	for name, c := range map[string]struct {
		change func(*removeScene)
		code   int // 0: it is removed
		says   string
	}{
		"one that is dead":        {func(*removeScene) {}, 0, "etcd then has 2 voting members left, of which 2 are Ready.\n"},
		"one that is still named": {func(s *removeScene) { s.masters = []uuid.UUID{uuid.NameSpaceURL} }, 0, "Warning: the device is still configured as a master"},
		"none there is not":       {func(s *removeScene) { s.name, s.typed = "node-9", "node-9" }, 1, "no member node-9"},
		"not the own one":         {func(s *removeScene) { s.name = "node-2" }, 3, "zedkube leave"},
		"none that is Ready":      {change("node-3", func(n *types.Node) { n.Ready = types.ConditionTrue }), 3, "is Ready"},
		"none that etcd needs":    {change("node-1", down), 3, "no quorum"},
		"though one etcd counts not": {func(s *removeScene) {
			change("node-3", func(n *types.Node) { n.EtcdVoter = types.ConditionFalse })(s)
		}, 0, "removed"},
		"none whose kubelet refuses": {func(s *removeScene) { s.answers["10.0.0.3"] = types.ReachRefused }, 3, "the device of node node-3 answers at 10.0.0.3"},
		"none that answers elsewhere": {func(s *removeScene) {
			s.answers["1.2.3.4"] = types.ReachOpen
			change("node-3", func(n *types.Node) { n.ExternalIP = "1.2.3.4" })(s)
		}, 3, "answers at 1.2.3.4"},
		"none where nobody answers":     {func(s *removeScene) { clear(s.answers) }, 3, "it is not known"},
		"not without an address to try": {change("node-3", func(n *types.Node) { n.InternalIP = "" }), 3, "has no address"},
		"none with a last replica":      {func(s *removeScene) { s.lastReplica("pvc-1") }, 3, "pvc-1 (app/data). To give one up: --give-up-volume"},
		"nor if another is given up":    {func(s *removeScene) { s.lastReplica("pvc-1"); s.giveUp = []string{"pvc-2"} }, 3, "pvc-1"},
		"nor if --yes is given":         {func(s *removeScene) { s.lastReplica("pvc-1"); s.yes = true }, 3, "pvc-1"},
		"though that one is given up":   {func(s *removeScene) { s.lastReplica("pvc-1"); s.giveUp = []string{"pvc-1"} }, 0, "Volume pvc-1 is lost."},
		"none while another drains":     {func(s *removeScene) { s.cluster.SetLock(types.DrainLock{Holder: "node-1", BootID: "b"}) }, 3, "node-1 holds the drain lock"},
		"though it went down draining":  {func(s *removeScene) { s.cluster.SetLock(types.DrainLock{Holder: "node-3", BootID: "b"}) }, 0, "removed"},
		"none without an answer":        {func(s *removeScene) { s.typed = "y" }, 1, "the answer is not node-3"},
		"though --yes needs none":       {func(s *removeScene) { s.typed, s.yes = "", true }, 0, "removed"},
		"none where nobody is asked":    {func(s *removeScene) { s.asks = false }, 1, "add --yes"},
		"none while another repairs":    {func(s *removeScene) { s.cluster.SetRepairer("node-1", time.Hour) }, 3, "another node is repairing"},
		"though a dead agent held it":   {func(s *removeScene) { s.cluster.SetRepairer("node-2", 10*time.Second) }, 0, "removed"},
		"none that comes back meanwhile": {func(s *removeScene) {
			s.onAnswer = func() { change("node-3", func(n *types.Node) { n.Ready = types.ConditionTrue })(s) }
		}, 3, "is Ready"},
		"none whose kubelet begins to report": {func(s *removeScene) {
			s.onAnswer = func() { s.cluster.SetRenewed("node-3", time.Now()) }
		}, 3, "renewed its Lease"},
		"none that another has replaced": {func(s *removeScene) {
			s.onAnswer = func() { change("node-3", func(n *types.Node) { n.UID = "new" })(s) }
		}, 3, "was replaced by another one"},
		"none once a replica is the last":      {func(s *removeScene) { s.onAnswer = func() { s.lastReplica("pvc-1") } }, 3, "pvc-1"},
		"none where a peer only seems Ready":   {func(s *removeScene) { s.cluster.SetRenewed("node-1", time.Now()) }, 3, "no quorum"},
		"none that the server does not delete": {func(s *removeScene) { s.cluster.FailVerb("deletenode", types.ErrRefused) }, 2, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRemoveScene()
				c.change(s)
				before := s.cluster.Lock()
				ctx := types.Because(types.ActAs(t.Context(), "command"), "OPERATOR", "zedkube nodes remove")
				err := device.APIError(s.run(ctx, &s.cluster))
				if code := terminal.ExitCode(err); code != c.code {
					t.Errorf("exit code %d: %v", code, err)
				}
				if text := fmt.Sprint(s.out.String(), err); !strings.Contains(text, c.says) {
					t.Errorf("says %q", text)
				}
				if _, there := s.nodes.Get("node-3"); there == (c.code == 0) {
					t.Errorf("there: %v", there)
				}
				if lock := s.cluster.Lock(); c.code == 0 && lock.Holder != "" || c.code != 0 && lock.Holder != before.Holder {
					t.Errorf("the lock is left %+v", lock)
				}
				s.checkAudit(t, c.code)
			})
		})
	}
}

// checkAudit checks that what was done is in the audit, and was before it was done.
func (s *removeScene) checkAudit(t *testing.T, code int) {
	t.Helper()
	wrote := len(s.cluster.Calls("setlock")) + len(s.cluster.Calls("deletenode"))
	switch {
	case wrote > 0 && (len(s.audit) != 2 || !strings.HasPrefix(s.audit[0], "remove member node/node-3: zedkube nodes remove")):
		t.Errorf("audit: %q", s.audit)
	case code == 0 && s.audit[1] != "ok", code != 0 && len(s.audit) > 1 && s.audit[1] == "ok":
		t.Errorf("audit: %q", s.audit)
	case code == 0 && len(s.lost) > 0 && !strings.Contains(s.audit[0], "gives up volumes pvc-1"):
		t.Errorf("audit: %q", s.audit)
	}
	if events := s.cluster.Events(); code == 0 && (len(events) != 1 || events[0].Reason != "MemberRemoved" || events[0].Node != "node-3") {
		t.Errorf("events: %+v", events)
	}
}

func TestAnOperatorWhoIsInterruptedRemovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRemoveScene()
		ctx, cancel := context.WithCancel(t.Context())
		never := make(chan struct{})
		s.onAnswer = func() { cancel(); <-never }
		err := s.run(ctx, &s.cluster)
		close(never)
		if err == nil || !strings.Contains(err.Error(), "nothing was changed") {
			t.Error(err)
		}
		if _, there := s.nodes.Get("node-3"); !there {
			t.Error("it is removed")
		}
	})
}

func TestHowARemovalIsRecorded(t *testing.T) {
	for want, err := range map[types.OperationOutcome]error{
		types.OperationOK: nil, types.OperationRefused: refused("no"), types.OperationUnanswered: fmt.Errorf("x: %w", types.ErrNoAnswer),
		types.OperationFailed: errors.New("no"),
	} {
		if got := outcomeOf(err); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}
