package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// drained is the node of the story that drains.
func (s *stage) drained() *player.Member { return s.nodes[1] }

func (s *stage) drainBegins(ctx context.Context) (string, error) {
	s.drained().CommandReboot()
	return s.drained().Name + ", ", s.until(ctx, func() string {
		status, _ := s.drained().Watch.Drain.Get(types.Global)
		if status.Status < types.DrainRequested || status.RequestedBy != types.DrainRequesterDeviceOp {
			return "NodeDrainStatus is " + status.Status.String()
		}
		return ""
	})
}

func (s *stage) budgetBlocks(ctx context.Context) (string, error) {
	if err := s.until(ctx, func() string {
		if status, _ := s.drained().Watch.Drain.Get(types.Global); status.Status != types.DrainRetrying {
			return "NodeDrainStatus is " + status.Status.String()
		}
		if left := s.podsOn(ctx, s.drained().Name); left != budgeted {
			return fmt.Sprintf("%d application pods are left, not the %d that the budget holds", left, budgeted)
		}
		return ""
	}); err != nil {
		return "", err
	}
	// It must hold, not only be passed through.
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(3 * time.Second):
	}
	if left := s.podsOn(ctx, s.drained().Name); left != budgeted {
		return "", fmt.Errorf("%d application pods are left, not the %d that the budget holds", left, budgeted)
	}
	var why string
	err := s.until(ctx, func() string {
		progress, _ := s.drained().Watch.Progress.Get(types.Global)
		if len(progress.Blockers) != budgeted || progress.Blockers[0].Cause != "budget" {
			return fmt.Sprintf("NodeDrainProgress names %d pods in the way", len(progress.Blockers))
		}
		why = progress.Blockers[0].Why
		return ""
	})
	return why + ", ", err
}

func (s *stage) drainCompletes(ctx context.Context) (string, error) {
	if err := s.openBudget(ctx); err != nil {
		return "", err
	}
	return "", s.until(ctx, func() string {
		status, _ := s.drained().Watch.Drain.Get(types.Global)
		if status.Status == types.DrainComplete || s.drained().Boots() > 1 {
			return ""
		}
		return "NodeDrainStatus is " + status.Status.String()
	})
}

func (s *stage) appsMoved(ctx context.Context) (string, error) {
	return "", s.everyApp(ctx, func(claiming []string) bool {
		return len(claiming) == 1 && !slices.Contains(claiming, s.drained().Name)
	})
}

func (s *stage) nodeReturns(ctx context.Context) (string, error) {
	return "", s.until(ctx, func() string {
		if s.drained().Boots() < 2 {
			return s.drained().Name + " has not rebooted"
		}
		if status, _ := s.drained().Watch.Drain.Get(types.Global); status.Status != types.DrainNotRequested {
			return "NodeDrainStatus is " + status.Status.String()
		}
		return s.nodeFault(ctx, s.drained().Name)
	})
}
