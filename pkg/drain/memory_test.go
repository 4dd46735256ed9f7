package drain

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestTheSameBootGoesOnFromAnyPointToCompleteAndBack(t *testing.T) {
	killedAnywhere(t, 3, func(s *stage) {
		s.request(&s.zedagent, deviceOp)
		time.Sleep(20 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.cordoned(true, true)
		if s.kube.Lock().Holder != "n1" {
			s.t.Error("complete without the lock")
		}
		s.oneDrain(3)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(40 * time.Second)
		s.is(types.DrainNotRequested, nobody)
		s.nothingLeft()
	})
}
