package membercmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
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
