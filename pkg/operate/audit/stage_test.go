package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		victim(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// stage is a component and its record in a directory of its own.
type stage struct {
	*testing.T
	*Component
	log *test.Hook

	info                       pubsub.Table[types.EdgeNodeInfo]
	deviceOp, update, operator source[types.NodeDrainRequest]
	leave                      source[types.ClusterLeaveRequest]
	detach                     source[types.AppDetachRequest]

	lifecycle  pubsub.Table[types.KubeLifecycle]
	version    pubsub.Table[types.K3sVersionStatus]
	membership pubsub.Table[types.ClusterMembership]
	object     pubsub.Table[types.ClusterObject]
	parts      pubsub.Table[types.KubeClusterUpdateStatus]
}

// source is a table that can be told to be incomplete yet.
type source[T any] struct {
	pubsub.Table[T]
	late bool
}

func (s *source[T]) Synced() bool { return !s.late }

func newStage(t *testing.T) *stage {
	s := &stage{T: t}
	logger, hook := test.NewNullLogger()
	s.log = hook
	_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "N1"})
	s.Component = &Component{
		Log: logger, Pulse: &loop.Pulse{}, Segments: DefaultSegments,
		Record:   &Record{Log: logger, Info: &s.info, Dir: filepath.Join(t.TempDir(), "audit"), Segment: DefaultSegment},
		DeviceOp: &s.deviceOp, Update: &s.update, Operator: &s.operator, Leave: &s.leave, Detach: &s.detach,
		Lifecycle: &s.lifecycle, Version: &s.version, Membership: &s.membership, Object: &s.object, Parts: &s.parts,
	}
	t.Cleanup(func() { s.Record.mu.Lock(); s.Record.store.close(); s.Record.mu.Unlock() })
	return s
}

// does records an operation that ends with err.
func (s *stage) does(op, target string, err error) {
	outcome := types.OperationOK
	if err != nil {
		outcome = types.OperationRefused
	}
	s.Begin(types.Operation{Component: "drain", Op: op, Target: target, By: "OPERATOR", Why: "w"})(outcome, err)
}

func (s *stage) Begin(o types.Operation) func(types.OperationOutcome, error) {
	return s.Record.Begin(o)
}

// reads are the operations in the directory, which has no others.
func (s *stage) reads() []types.Operation {
	s.Helper()
	all, problems, err := Read(s.Record.Dir)
	if err != nil || problems != (Problems{}) {
		s.Fatalf("reading found %+v, %v", problems, err)
	}
	return all
}

// lines are operations in short.
func lines(all []types.Operation) []string {
	short := []string{}
	for _, o := range all {
		line := fmt.Sprintf("%s %s %s", o.Op, o.Target, o.Outcome)
		if o.Times > 1 {
			line += fmt.Sprintf(" x%d", o.Times)
		}
		short = append(short, line)
	}
	return short
}

var errBudget = errors.New("a budget is in the way")
