package packaging

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

type archives struct {
	Archives []struct {
		ID    string
		Files []struct {
			Src, Dst    string
			StripParent bool `json:"strip_parent"`
			Info        struct {
				Owner, Group, MTime string
				Mode                int64
			}
		}
	}
}

// packed is what lies in the archive of each program, below the directory of its name, and how.
var packed = map[string]map[string]int64{
	"zedkube": {
		"zedkube": 0o755, "zedkube-start.sh": 0o755, "zedkube.openrc": 0o755,
		"zedkube.service": 0o644, "LICENSE": 0o644, "README.md": 0o644, "CHANGELOG.md": 0o644, "THIRD-PARTY-LICENSES": 0o644,
		"eve-image.md": 0o644, "operations.md": 0o644, "runbook.md": 0o644, "commands.md": 0o644, "alerts.md": 0o644, "files.md": 0o644, "alerts.yaml": 0o644, "dashboards/cluster.json": 0o644, "dashboards/fleet.json": 0o644, "dashboards/node.json": 0o644, "rbac.yaml": 0o644, "man/zedkube.1": 0o644,
	},
	"zedkube-edge": {"zedkube-edge": 0o755, "LICENSE": 0o644, "THIRD-PARTY-LICENSES": 0o644, "edge.md": 0o644, "kubeedge.md": 0o644},
}

// goreleaser itself says so only when a release is made, and of a pattern only as a warning.
func TestEveryFileThatIsPackedExists(t *testing.T) {
	content, err := os.ReadFile("../../.goreleaser.yaml")
	var c archives
	if err := errors.Join(err, yaml.Unmarshal(content, &c)); err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]int64{}
	for _, a := range c.Archives {
		got := map[string]int64{a.ID: 0o755}
		for _, f := range a.Files {
			found, err := filepath.Glob("../../" + f.Src)
			if made := strings.HasPrefix(f.Src, "bin/linux-{{ .Arch }}/"); (len(found) == 0 || err != nil) && !made {
				t.Errorf("%s: there is none: %v", f.Src, err)
			}
			if f.Info.Owner != "root" || f.Info.Group != "root" || f.Info.MTime != "{{ .Env.MTIME }}" {
				t.Errorf("%s: %+v", f.Src, f.Info)
			}
			if f.Dst == "man" { // one for each command
				found = []string{"zedkube.1"}
			} else if !f.StripParent {
				got[f.Dst] = f.Info.Mode
				continue
			}
			for _, name := range found {
				got[path.Join(f.Dst, filepath.Base(name))] = f.Info.Mode
			}
		}
		all[a.ID] = got
	}
	if diff := cmp.Diff(packed, all); diff != "" {
		t.Error(diff)
	}
}
