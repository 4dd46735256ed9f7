package apps

import (
	"testing"

	"github.com/zedkube/zedkube/types"
)

func TestARepairSaysForWhomAndWhy(t *testing.T) {
	for name, row := range map[string]struct {
		task    task
		target  target
		by, why string
	}{
		"a failover":         {task{act: types.ActFailover, lost: types.Node{Name: "n2"}}, target{}, "apps", "node n2 is gone"},
		"one by hand":        {task{act: types.ActFailover, lost: types.Node{Name: "n2"}}, target{asked: true}, "OPERATOR", "node n2 is gone"},
		"one by force":       {task{act: types.ActFailover, lost: types.Node{Name: "n2"}}, target{asked: true, force: true}, "OPERATOR", "an operator detaches it from node n2 by force: it is proved neither that its device is off nor that its storage is redundant"},
		"a stuck machine":    {task{act: types.ActUnstick}, target{}, "apps", "its virtual machine is stuck"},
		"a fence":            {task{act: actFence, lost: types.Node{Name: "n2"}}, target{}, "apps", "node n2 is gone"},
		"the end of a fence": {task{act: actUnfence, lost: types.Node{Name: "n2"}}, target{}, "apps", "the node is back"},
		"a failback":         {task{act: types.ActFailback}, target{}, "apps", "it prefers its designated node, which is available again"},
	} {
		w := &worker{task: row.task}
		o := types.Acting(w.because(types.ActAs(t.Context(), "apps"), row.target))
		if o.By != row.by || o.Why != row.why {
			t.Errorf("%s: %q, %q", name, o.By, o.Why)
		}
	}
}
