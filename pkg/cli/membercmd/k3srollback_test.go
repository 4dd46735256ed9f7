package membercmd

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// requested is what lies in the topic; nil for nothing.
func requested[T any](t *testing.T, p device.Paths, name string) *T {
	t.Helper()
	raw, err := os.ReadFile(p.TopicFile(device.CommandAgent, name))
	if err != nil {
		return nil
	}
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return &v
}

func TestAFailureIsRetriedOnTheNodeThatFailed(t *testing.T) {
	at := time.Date(2026, 11, 23, 11, 0, 0, 0, time.UTC)
	failed := types.K3sFailure{To: "v1.34.4+k3s1", Why: "No.", At: at}
	for name, row := range map[string]struct {
		is  types.KubeLifecycle
		why string
	}{
		"it failed":                    {types.KubeLifecycle{Phase: types.LifecycleFailed, Failed: failed}, ""},
		"nothing failed":               {types.KubeLifecycle{Phase: types.LifecycleIdle}, "there is no version or override to which this node failed"},
		"another node failed":          {types.KubeLifecycle{Phase: types.LifecycleWaits, Preconditions: []types.KubeLifecyclePrecondition{{Name: "OthersNotFailed", Reason: "Node n2 failed."}}}, "Node n2 failed. Run it there"},
		"it has not returned yet":      {types.KubeLifecycle{Phase: types.LifecycleReturns, Failed: failed}, "k3s has not returned"},
		"it does not return by far":    {types.KubeLifecycle{Phase: types.LifecycleStuck, Failed: failed}, "k3s has not returned"},
		"an override failed":           {types.KubeLifecycle{Phase: types.LifecycleIdle, Override: types.K3sOverrideTurn{Failed: failed}}, ""},
		"an override failed elsewhere": {types.KubeLifecycle{Override: types.K3sOverrideTurn{Preconditions: []types.KubeLifecyclePrecondition{{Name: "OthersNotFailed", Reason: "K3s on node n2 did not."}}}}, "K3s on node n2 did not. Run it there"},
		"it was released since then":   {types.KubeLifecycle{Phase: types.LifecycleWaits, Failed: failed}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := device.Options{Root: t.TempDir()}.Paths()
			write(t, p.TopicFile(device.Self, "KubeLifecycle"), row.is)
			var out bytes.Buffer
			err := retryK3s(&out, p, at.Add(time.Hour))
			r := requested[types.K3sRetryRequest](t, p, "K3sRetryRequest")
			if row.why == "" {
				if err != nil || r == nil || r.Version != failed.To || !r.FailedAt.Equal(at) {
					t.Errorf("%v, %+v", err, r)
				}
			} else if terminal.ExitCode(err) != exitRefused || !strings.Contains(err.Error(), row.why) || r != nil {
				t.Errorf("%v, %+v", err, r)
			}
		})
	}
}

func TestARollbackSaysWhatItLosesAndIsConfirmed(t *testing.T) {
	const from, to = "v1.34.2+k3s1", "v1.34.4+k3s1"
	can := func(r types.K3sRollback) types.KubeLifecycle {
		return types.KubeLifecycle{Phase: types.LifecycleChanges, To: to, Reason: "The reason.", Rollback: r}
	}
	const loses = "What was written since 12:00 is lost."
	for name, row := range map[string]struct {
		is        types.KubeLifecycle
		lose, yes bool
		says      string
		exit      int
	}{
		"it is said what would be": {can(types.K3sRollback{To: from}), false, false, "No data is lost", exitRefused},
		"confirmed":                {can(types.K3sRollback{To: from}), false, true, "No data is lost", 0},
		"data would be lost":       {can(types.K3sRollback{To: from, Loses: loses}), false, true, loses, exitRefused},
		"no consent to that":       {can(types.K3sRollback{To: from, Loses: loses}), false, true, "--lose-changes", exitRefused},
		"data may be lost":         {can(types.K3sRollback{To: from, Loses: loses}), true, true, loses, 0},
		"and is not confirmed":     {can(types.K3sRollback{To: from, Loses: loses}), true, false, "--yes", exitRefused},
		"it is not possible":       {can(types.K3sRollback{To: from, Lacks: "It has run."}), true, true, "It has run.", exitRefused},
		"nothing is under way":     {can(types.K3sRollback{}), true, true, "it is Changes. The change of a single node may be taken back afterwards. See operations.md", exitRefused},
	} {
		t.Run(name, func(t *testing.T) {
			p := device.Options{Root: t.TempDir()}.Paths()
			write(t, p.TopicFile(device.Self, "KubeLifecycle"), row.is)
			var out bytes.Buffer
			err := rollbackK3s(&out, p, row.lose, row.yes, time.Now())
			said := out.String()
			if err != nil {
				said += err.Error()
			}
			if terminal.ExitCode(err) != row.exit || !strings.Contains(said, row.says) {
				t.Errorf("exit code %d: %s", terminal.ExitCode(err), said)
			}
			q := requested[types.K3sRollbackRequest](t, p, "K3sRollbackRequest")
			if (q != nil) != (row.exit == 0) || q != nil && (q.Version != to || q.LoseChanges != row.lose || !strings.HasPrefix(q.RequestedBy, "uid ")) {
				t.Errorf("it is requested: %+v", q)
			}
		})
	}
}
