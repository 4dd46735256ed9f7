package packaging

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// put writes files into dir.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheSearchForVulnerabilitiesSaysWhatIsKnown(t *testing.T) {
	tool, module, known := filepath.Join(t.TempDir(), "govulncheck"), t.TempDir(), t.TempDir()
	build := exec.Command("go", "build", "-o", tool, "golang.org/x/vuln/cmd/govulncheck")
	build.Dir = "../tools"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	put(t, module, map[string]string{
		"go.mod":  "module tiny\n\ngo 1.26.0\n",
		"main.go": "package main\n\nimport \"bytes\"\n\nfunc main() { print(bytes.Title([]byte(\"a\"))) }\n",
	})
	const changed = `"modified":"2026-01-01T00:00:00Z"`
	put(t, known, map[string]string{
		"index/db.json":      `{` + changed + `}`,
		"index/modules.json": `[{"path":"stdlib","vulns":[{"id":"GO-2026-9999",` + changed + `,"fixed":"1.99.0"}]}]`,
		"index/vulns.json":   `[{"id":"GO-2026-9999",` + changed + `}]`,
		"ID/GO-2026-9999.json": `{"schema_version":"1.3.1","id":"GO-2026-9999",` + changed + `,"published":"2026-01-01T00:00:00Z","details":"planted",
			"affected":[{"package":{"name":"stdlib","ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"fixed":"1.99.0"}]}],
			"ecosystem_specific":{"imports":[{"path":"bytes","symbols":["Title"]}]}}],"database_specific":{"url":"https://pkg.go.dev/vuln/GO-2026-9999"}}`,
	})
	none := t.TempDir()
	put(t, none, map[string]string{"index/db.json": `{` + changed + `}`, "index/modules.json": `[]`, "index/vulns.json": `[]`})
	for _, test := range []struct {
		database string
		code     int
		says     string
	}{
		{"file://" + none, 0, "No vulnerabilities found"},
		{"file://" + known, 3, "GO-2026-9999"},
		{"http://127.0.0.1:1", 1, "NOT CHECKED, the database http://127.0.0.1:1 is out of reach: nothing is known"},
		{"file:///nowhere", 1, "NOT CHECKED, the database file:///nowhere is out of reach: nothing is known"},
	} {
		c := exec.Command("../../.ci/govulncheck", module)
		c.Env = append(os.Environ(), "GOVULNCHECK="+tool, "VULNDB="+test.database)
		out, err := c.CombinedOutput()
		if c.ProcessState == nil || c.ProcessState.ExitCode() != test.code || !strings.Contains(string(out), test.says) {
			t.Errorf("%s: %v, want code %d and %q:\n%s", test.database, err, test.code, test.says, out)
		}
	}
}
