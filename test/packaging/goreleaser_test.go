package packaging

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

type archives struct {
	Archives []struct {
		Files []struct {
			Src, Dst string
			Info     struct {
				Owner, Group, MTime string
				Mode                int64
			}
		}
	}
}

// packed is what lies in an archive, below the directory of its name, and how.
var packed = map[string]int64{
	"zedkube": 0o755, "zedkube-start.sh": 0o755, "zedkube.openrc": 0o755,
	"zedkube.service": 0o644, "LICENSE": 0o644, "README.md": 0o644, "CHANGELOG.md": 0o644, "THIRD-PARTY-LICENSES": 0o644,
	"eve-image.md": 0o644, "operations.md": 0o644, "runbook.md": 0o644, "commands.md": 0o644, "alerts.md": 0o644, "files.md": 0o644, "alerts.yaml": 0o644, "dashboards/node.json": 0o644, "rbac.yaml": 0o644, "man/zedkube.1": 0o644,
}

// goreleaser itself says so only when a release is made, and of a pattern only as a warning.
func TestEveryFileThatIsPackedExists(t *testing.T) {
	content, err := os.ReadFile("../../.goreleaser.yaml")
	var c archives
	if err := errors.Join(err, yaml.Unmarshal(content, &c)); err != nil || len(c.Archives) != 1 {
		t.Fatalf("%d archives: %v", len(c.Archives), err)
	}
	got := map[string]int64{"zedkube": 0o755}
	for _, f := range c.Archives[0].Files {
		found, err := filepath.Glob("../../" + f.Src)
		if made := strings.HasPrefix(f.Src, "bin/linux-{{ .Arch }}/"); (len(found) == 0 || err != nil) && !made {
			t.Errorf("%s: there is none: %v", f.Src, err)
		}
		if f.Info.Owner != "root" || f.Info.Group != "root" || f.Info.MTime != "{{ .Env.MTIME }}" {
			t.Errorf("%s: %+v", f.Src, f.Info)
		}
		if one, is := map[string]string{"man": "man/zedkube.1", "dashboards": "dashboards/node.json"}[f.Dst]; is {
			f.Dst = one
		}
		got[f.Dst] = f.Info.Mode
	}
	if diff := cmp.Diff(packed, got); diff != "" {
		t.Error(diff)
	}
}
