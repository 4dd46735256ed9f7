package membercmd

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

func TestACancelledLeaveIsCalledWhatItIs(t *testing.T) {
	decided := &types.WithoutDecision{Dead: []string{"n2"}}
	for name, row := range map[string]struct {
		m    types.ClusterMembership
		says string
		undo bool // is asked for; else the request is gone
		boot bool // since the request, which is gone as well
	}{
		"of a doubtful member":                     {types.ClusterMembership{State: types.MembershipDoubtful}, "has been withdrawn", false, false},
		"decided by the controller's word":         {types.ClusterMembership{State: types.MembershipLeaving}, "What was already decided stays in effect", false, false},
		"that too after a reboot":                  {types.ClusterMembership{State: types.MembershipLeaving}, "There is no request", false, true},
		"decided on request":                       {types.ClusterMembership{State: types.MembershipLeaving, ByOperator: true}, "The leave has been withdrawn", false, false},
		"that too, and the request went by reboot": {types.ClusterMembership{State: types.MembershipLeaving, ByOperator: true}, "The leave has been withdrawn", false, true},
		"decided without the cluster":              {types.ClusterMembership{State: types.MembershipLeaving, Without: decided}, "is undone, if its minute has not passed", true, false},
		"without the cluster, and it has happened": {types.ClusterMembership{State: types.MembershipLeft, Without: decided}, "What was already decided stays in effect", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := device.Options{Root: t.TempDir()}.Paths()
			raw, err := json.Marshal(row.m)
			if err != nil {
				t.Fatal(err)
			}
			cmdtest.Lay(t, p.PersistentFile(device.Self, "ClusterMembership"), string(raw))
			file := p.TopicFile(device.CommandAgent, "ClusterLeaveRequest")
			if !row.boot {
				cmdtest.Lay(t, file, `{"RequestedAt":"2026-05-03T06:41:17Z","WithoutCluster":{"Dead":["n2"]}}`)
			}
			var out strings.Builder
			if err := cancelLeave(t.Context(), &out, p, time.Now()); err != nil || !strings.Contains(out.String(), row.says) {
				t.Errorf("it says %q, %v", out.String(), err)
			}
			r, _, err := device.ReadRecord[types.ClusterLeaveRequest](file)
			if gone := errors.Is(err, fs.ErrNotExist); gone == row.undo || r.Undo != row.undo {
				t.Errorf("the request is %+v, %v", r, err)
			}
			if _, err := os.Stat(filepath.Dir(file)); (err != nil) != (row.boot && !row.m.ByOperator) {
				t.Errorf("what tells the agent that there is none: %v", err)
			}
		})
	}
}
