package packaging

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// goreleaser are the parts of its configuration that are ours: a key that is not
// here is an error, as it is for goreleaser itself.
type goreleaser struct {
	Version     int    `json:"version"`
	ProjectName string `json:"project_name"`
	Dist        string `json:"dist"`
	Builds      []struct {
		ID, Main, Binary               string
		Env, Goos, Goarch, Tags, Flags []string
		Ldflags                        []string
		Timestamp                      string `json:"mod_timestamp"`
	} `json:"builds"`
	Archives []struct {
		ID            string   `json:"id"`
		Formats       []string `json:"formats"`
		NameTemplate  string   `json:"name_template"`
		WrapDirectory bool     `json:"wrap_in_directory"`
		BuildsInfo    fileInfo `json:"builds_info"`
		Files         []struct {
			Src  string   `json:"src"`
			Dst  string   `json:"dst"`
			Info fileInfo `json:"info"`
		} `json:"files"`
	} `json:"archives"`
	SBOMs []struct {
		ID        string   `json:"id"`
		Artifacts string   `json:"artifacts"`
		Documents []string `json:"documents"`
		Cmd       string   `json:"cmd"`
		Args      []string `json:"args"`
		Env       []string `json:"env"`
	} `json:"sboms"`
	Checksum struct {
		NameTemplate string `json:"name_template"`
	} `json:"checksum"`
	Snapshot struct {
		VersionTemplate string `json:"version_template"`
	} `json:"snapshot"`
	Changelog, Release struct {
		Disable bool `json:"disable"`
	}
}

type fileInfo struct {
	Owner string `json:"owner"`
	Group string `json:"group"`
	MTime string `json:"mtime"`
}

func readRelease(t *testing.T) goreleaser {
	t.Helper()
	content, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var g goreleaser
	if err := yaml.UnmarshalStrict(content, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAReleaseIsBuiltAsTheMakefileBuilds(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	g := readRelease(t)
	if len(g.Builds) != 1 {
		t.Fatalf("%d builds", len(g.Builds))
	}
	b := g.Builds[0]
	for what, row := range map[string]struct{ got, want []string }{
		"systems":       {b.Goos, []string{"linux"}},
		"architectures": {b.Goarch, []string{"amd64", "arm64"}},
		"environment":   {b.Env, []string{"CGO_ENABLED=0"}},
		"program":       {[]string{b.Main, b.Binary}, []string{"./cmd/zedkube", "zedkube"}},
		"tags":          {b.Tags, assigned(t, makefile, "TAGS")},
	} {
		if !slices.Equal(row.got, row.want) {
			t.Errorf("%s: %q, want %q", what, row.got, row.want)
		}
	}
	flags := strings.Join(b.Flags, " ") + " -tags $(TAGS) -ldflags '" + strings.Join(b.Ldflags, " ") + "'"
	flags = strings.ReplaceAll(flags, "{{ .Env.VERSION }}", "$(VERSION)")
	if want := strings.Join(assigned(t, makefile, "RELEASE"), " "); flags != want {
		t.Errorf("flags: %s, want %s", flags, want)
	}
}

// assigned are the words that a variable of the Makefile has.
func assigned(t *testing.T, makefile []byte, name string) []string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + ` *:= *(.*)$`).FindSubmatch(makefile)
	if m == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return strings.Fields(string(m[1]))
}

func TestAReleaseHoldsWhatItTakesToRunIt(t *testing.T) {
	g := readRelease(t)
	if len(g.Archives) != 1 {
		t.Fatalf("%d archives", len(g.Archives))
	}
	a := g.Archives[0]
	packed := map[string]string{}
	for _, f := range a.Files {
		packed[f.Src] = f.Dst
		if f.Info != a.BuildsInfo || f.Info.Owner != "root" || f.Info.MTime == "" {
			t.Errorf("%s: packed as %+v", f.Src, f.Info)
		}
		if strings.HasPrefix(f.Src, "bin/") {
			continue // made by the build
		}
		if found, err := filepath.Glob("../../" + f.Src); err != nil || len(found) == 0 {
			t.Errorf("%s is not there", f.Src)
		}
	}
	for _, src := range []string{"LICENSE", "bin/THIRD-PARTY-LICENSES", "docs/man/*.1", "docs/eve-image.md"} {
		if _, ok := packed[src]; !ok {
			t.Errorf("%s is not packed", src)
		}
	}
	if packed[".package/start.sh"] != "zedkube-start.sh" || packed[".package/zedkube.openrc"] == "" || packed[".package/zedkube.service"] == "" {
		t.Errorf("scripts and units: %v", packed)
	}
	if len(g.SBOMs) != 1 || g.SBOMs[0].Artifacts != "binary" || !slices.Contains(g.SBOMs[0].Args, "github.com/zedkube/zedkube/test/sbom") {
		t.Errorf("SBOMs: %+v", g.SBOMs)
	}
	if g.Checksum.NameTemplate != "SHA256SUMS" || !g.Release.Disable {
		t.Error("no SHA256SUMS, or it would be published")
	}
}
