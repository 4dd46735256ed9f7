package audit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

func TestWhatTheDeviceIsAskedForIsOnRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		asked := time.Now().Add(-time.Minute)
		step := func() { _ = s.Step(t.Context()) }
		step()
		_ = s.operator.Publish(types.Global, types.NodeDrainRequest{RequestedAt: asked, Context: "a disk is changed"})
		_ = s.update.Publish(types.Global, types.NodeDrainRequest{RequestedAt: asked.Add(time.Second), Context: "base OS"})
		step()
		step()
		_ = s.operator.Unpublish(types.Global)
		step()
		_ = s.leave.Publish(types.Global, types.ClusterLeaveRequest{RequestedAt: asked.Add(2 * time.Second), Context: "moved"})
		detach := types.AppDetachRequest{Node: "n2", Force: true, ID: uuid.New(), Asked: asked.Add(3 * time.Second)}
		for range 2 { // it is renewed as long as the command waits
			_ = s.detach.Publish("app-1", detach)
			step()
			detach.Asked = detach.Asked.Add(5 * time.Minute)
		}
		_ = s.detach.Unpublish("app-1") // it has run out
		_ = s.leave.Unpublish(types.Global)
		step()
		all := s.reads()
		if diff := cmp.Diff([]string{
			"request drain node/n1 ok", "request drain node/n1 ok", "withdraw drain node/n1 ok",
			"request leave node/n1 ok", "request detach app/app-1 ok", "withdraw leave node/n1 ok",
		}, lines(all)); diff != "" {
			t.Fatal(diff)
		}
		first := all[0]
		if first.By != "OPERATOR" || first.Why != "a disk is changed" || !first.At.Equal(asked) || all[1].By != "UPDATE" || all[2].By != "OPERATOR" {
			t.Errorf("the first ones are %+v", all[:3])
		}
	})
}

func TestARequestThatStandsOverARestartIsOnRecordOnce(t *testing.T) {
	s := newStage(t)
	_ = s.deviceOp.Publish(types.Global, types.NodeDrainRequest{RequestedAt: time.Now(), Context: "reboot"})
	_ = s.Step(t.Context())
	again := newStage(t)
	again.Record.Dir = s.Record.Dir
	again.deviceOp.late = true // nothing is heard yet
	_ = again.Step(t.Context())
	again.deviceOp.late = false
	r, _ := s.deviceOp.Get(types.Global)
	_ = again.deviceOp.Publish(types.Global, r)
	_ = again.Step(t.Context())
	if diff := cmp.Diff([]string{"request drain node/n1 ok"}, lines(again.reads())); diff != "" {
		t.Error(diff)
	}
}

func TestSilenceIsNoWithdrawal(t *testing.T) {
	s := newStage(t)
	_ = s.update.Publish(types.Global, types.NodeDrainRequest{RequestedAt: time.Now()})
	_ = s.Step(t.Context())
	s.update.late = true
	_ = s.update.Unpublish(types.Global)
	_ = s.Step(t.Context())
	_ = s.Step(t.Context())
	if diff := cmp.Diff([]string{"request drain node/n1 ok"}, lines(s.reads())); diff != "" {
		t.Error(diff)
	}
	s.update.late = false
	_ = s.Step(t.Context())
	if diff := cmp.Diff([]string{"request drain node/n1 ok", "withdraw drain node/n1 ok"}, lines(s.reads())); diff != "" {
		t.Error(diff)
	}
}

// A topic whose directory nobody has made yet is never whole: that of leaves has
// one when someone has asked for a leave.
func TestATopicThatNobodyUsesHidesNoWithdrawalOfAnother(t *testing.T) {
	s := newStage(t)
	s.leave.late, s.detach.late, s.update.late = true, true, true
	_ = s.operator.Publish(types.Global, types.NodeDrainRequest{RequestedAt: time.Now()})
	_ = s.Step(t.Context())
	_ = s.operator.Unpublish(types.Global)
	_ = s.Step(t.Context())
	if diff := cmp.Diff([]string{"request drain node/n1 ok", "withdraw drain node/n1 ok"}, lines(s.reads())); diff != "" {
		t.Error(diff)
	}
}

func TestARequestToLeaveThatEndsWithTheLeaveIsNotWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		_ = s.leave.Publish(types.Global, types.ClusterLeaveRequest{RequestedAt: time.Now(), Context: "moved"})
		_ = s.Step(t.Context())
		_ = s.membership.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeft})
		_ = s.leave.Unpublish(types.Global)
		_ = s.Step(t.Context())
		_ = s.Step(t.Context())
		if diff := cmp.Diff([]string{"request leave node/n1 ok"}, lines(s.reads())); diff != "" {
			t.Error(diff)
		}
	})
}
