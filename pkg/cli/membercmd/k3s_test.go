package membercmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

func TestWhereNothingIsToBeReleasedNothingIsWritten(t *testing.T) {
	const from, to = "v1.34.2+k3s1", "v1.34.4+k3s1"
	for name, row := range map[string]types.KubeLifecycle{
		"the rules refuse it":                {Phase: types.LifecycleRefused, To: to, Refused: types.K3sMixed, Reason: "Node n3 runs another version."},
		"nothing is decided yet":             {Phase: types.LifecycleWaits, Reason: "The API server does not answer."},
		"another version is decided on":      {To: "v1.34.3+k3s1", Preconditions: []types.KubeLifecyclePrecondition{{Name: "Binary", Release: true}}},
		"no release does without what lacks": {To: to, Preconditions: []types.KubeLifecyclePrecondition{{Name: "Quorum"}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := device.Options{Root: t.TempDir()}.Paths()
			write(t, p.TopicFile(device.Self, "K3sVersionStatus"), types.K3sVersionStatus{Version: from, Running: from, Wanted: to, Held: true})
			write(t, p.TopicFile(device.Self, "KubeLifecycle"), row)
			var out bytes.Buffer
			if err := releaseK3s(&out, p, to, time.Now()); terminal.ExitCode(err) != exitRefused || out.Len() != 0 {
				t.Errorf("%v: %s", err, out.String())
			}
		})
	}
}

func write(t *testing.T, path string, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnOverrideIsReleasedWithoutWhatTheSentenceAllows(t *testing.T) {
	at := time.Date(2026, 11, 23, 11, 0, 0, 0, time.UTC)
	waits := types.K3sOverrideTurn{Wanted: "5ab4", Reason: "It waits.", Preconditions: []types.KubeLifecyclePrecondition{
		{Name: "NotHeld"}, {Name: "QuorumWithoutThis", Release: true}, {Name: "Agreed", Release: true},
	}}
	held := types.K3sOverrideTurn{Wanted: "5ab4", Reason: "It is held.", Preconditions: waits.Preconditions[:1]}
	for name, row := range map[string]struct {
		turn types.K3sOverrideTurn
		why  string
	}{
		"it waits":                     {waits, ""},
		"for what is not done without": {held, "It is held."},
		"nothing is to change":         {types.K3sOverrideTurn{}, "in the way of the override: "},
	} {
		p := device.Options{Root: t.TempDir()}.Paths()
		write(t, p.TopicFile(device.Self, "KubeLifecycle"), types.KubeLifecycle{Override: row.turn})
		var out bytes.Buffer
		err := releaseK3s(&out, p, "override", at)
		r := requested[types.K3sReleaseRequest](t, p, "K3sReleaseRequest")
		if row.why == "" {
			if err != nil || r == nil || r.Version != "5ab4" || strings.Join(r.Without, " ") != "QuorumWithoutThis Agreed" || !strings.Contains(out.String(), "QuorumWithoutThis, Agreed") {
				t.Errorf("%s: %v, %+v, %s", name, err, r, out.String())
			}
		} else if terminal.ExitCode(err) != exitRefused || !strings.Contains(err.Error(), row.why) || r != nil {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
}
