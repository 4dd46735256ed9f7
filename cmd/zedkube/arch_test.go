package main

import (
	"context"
	"errors"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const module = "github.com/zedkube/zedkube/"

// may lists, for each kind of package, the packages of ours it may import, and
// why no more.
var may = map[string]struct {
	imports []string
	why     string
}{
	"types":            {nil, "the nouns know nobody"},
	"pubsub":           {nil, "pubsub knows files and sockets only, and names no topic"},
	"pkg/loop":         {nil, "the loop knows time only"},
	"kubeapi":          {[]string{"types", "pkg/loop", "pkg/safefile"}, "kubeapi knows Kubernetes only and decides nothing"},
	"kubeapi/kubetest": {[]string{"types"}, "the fake cluster obeys; it knows the nouns only"},
	"pkg/*":            {[]string{"types", "pubsub", "pkg/loop", "pkg/cipher", "pkg/keptfile", "pkg/caught", "pkg/peer", "pkg/proof", "pkg/reach", "pkg/redact", "pkg/safefile", "pkg/printable"}, "components share facts only through topics and name what they need of the cluster as an interface"},
	"pkg/redact":       {nil, "text in, text out"},
	"pkg/printable":    {nil, "text in, text out"},
	"pkg/safefile":     {nil, "it reads files and knows none of them"},
	"pkg/caught":       {nil, "it knows HTTP and the log only"},
	"pkg/peer":         {nil, "it knows sockets and /proc only"},
	"pkg/topicview":    {[]string{"types", "pkg/redact"}, "it reads directories of any agent"},
	"pkg/doctor":       {[]string{"types", "pkg/overview", "pkg/safefile", "pkg/topicview"}, "it judges what files, sockets and an interface on the cluster tell"},
	"pkg/bundle":       {[]string{"pkg/redact", "pkg/topicview"}, "it packs what it is given and shows no secret"},
	"pkg/page":         {[]string{"types", "pubsub", "pkg/overview", "pkg/printable"}, "it shows what files and tables say"},
	"cmd/*":            {[]string{"types", "pubsub", "kubeapi", "pkg/*"}, "the wiring knows everything but the tests' tools"},
	"test":             {[]string{"types", "pubsub", "pkg/eveapi", "pkg/evereport", "test/*"}, "the tests' tools stand outside: they meet the program through files, sockets and the API server"},
}

// foreign lists who alone may import a family of modules.
var foreign = []struct {
	prefix string
	who    []string
	why    string
}{
	{"k8s.io/kubernetes", nil, "it would bring a second Kubernetes into the module: it lives in test/devcluster/devkube"},
	{"k8s.io/client-go/util/jsonpath", []string{"cmd/*", "kubeapi", "test"}, "commands print by the same expressions as kubectl; it is text, and reaches no API server"},
	{"k8s.io/", []string{"kubeapi", "test"}, "only kubeapi knows Kubernetes"},
	{"sigs.k8s.io/yaml", []string{"cmd/*", "kubeapi", "pkg/redact", "pkg/doctor", "pkg/k3sconfig", "test"}, "commands print YAML, and a kubeconfig and the configuration of k3s are YAML; components read and write JSON"},
	{"kubevirt.io/", []string{"kubeapi", "test"}, "only kubeapi knows KubeVirt"},
	{"github.com/longhorn/", []string{"kubeapi", "test"}, "only kubeapi knows Longhorn"},
	{"github.com/lf-edge/eve-api/", []string{"pkg/cipher", "pkg/eveapi", "pkg/evereport", "test"}, "only these libraries know the controller's messages"},
	{"github.com/google/go-tpm/", []string{"pkg/cipher"}, "only pkg/cipher talks to a TPM"},
	{"log/slog", nil, "the project logs with logrus"},
}

func TestWhoMayImportWhom(t *testing.T) {
	out, err := exec.Command("go", "list", "-tags", "kustomize_disable_go_plugin_support",
		"-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		pkg := strings.TrimPrefix(f[0], module)
		kind := pkg
		if strings.HasPrefix(pkg, "test/") {
			kind = "test"
		}
		rule, ok := may[kind]
		if !ok {
			rule, ok = may[path.Dir(pkg)+"/*"]
		}
		if !ok {
			t.Errorf("%s: no rule for this package in arch_test.go", pkg)
		}
		for _, imported := range f[1:] {
			if ours, isOurs := strings.CutPrefix(imported, module); isOurs && !matches(rule.imports, ours) {
				t.Errorf("%s may not import %s: %s", pkg, ours, rule.why)
			}
			for _, family := range foreign {
				if strings.HasPrefix(imported, family.prefix) {
					if !matches(family.who, kind) {
						t.Errorf("%s may not import %s: %s", pkg, imported, family.why)
					}
					break
				}
			}
		}
	}
}

func matches(patterns []string, pkg string) bool {
	for _, pattern := range patterns {
		if ok, _ := path.Match(pattern, pkg); ok {
			return true
		}
	}
	return false
}

// forbidden are calls that the house rules keep out of the program (not out of
// tests and their tools).
var forbidden = map[string]string{
	"time.Sleep(":         "to wait is to return and be called again",
	"context.Background(": "deadlines and shutdown must reach everything below main",
	"context.TODO(":       "deadlines and shutdown must reach everything below main",
	"log.Fatal":           "an agent that ends takes the device with it",
	"panic(":              "bad input gets an error",
	"func init()":         "what happens at start is in wire.go",
}

func TestHouseRulesInTheSource(t *testing.T) {
	for _, file := range sources(t) {
		content, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		for call, why := range forbidden {
			if file == "cmd/zedkube/main.go" && call == "context.Background(" {
				continue
			}
			for i, line := range strings.Split(string(content), "\n") {
				if code, _, _ := strings.Cut(line, "//"); strings.Contains(code, call) {
					t.Errorf("%s:%d: %s: %s", file, i+1, call, why)
				}
			}
		}
	}
}

// undecided are the components too small for a decide.go: they have no rules.
var undecided = map[string]bool{"loglevel": true, "watchdog": true}

// impure is what no decide.go may need: it says what to do from facts alone.
var impure = []string{`"context"`, `"os"`, `"net/http"`, "logrus", "pkg/loop", "zedkube/pubsub", "time.Now(", "time.Since(", "time.Until("}

func TestEveryComponentHasTheOneShape(t *testing.T) {
	for name, c := range wired(t) {
		if name == "kubeapi" {
			continue // the window on the cluster; it decides nothing
		}
		if _, ok := c.(interface{ Step(context.Context) error }); !ok {
			t.Errorf("%s has no Step(context.Context) error", name)
		}
		if typ := reflect.TypeOf(c).Elem(); typ.Name() != "Component" || path.Base(typ.PkgPath()) != name {
			t.Errorf("%s is %s of %s, not the Component of its own package", name, typ.Name(), typ.PkgPath())
		}
		content, err := os.ReadFile(filepath.Join("../../pkg", name, "decide.go"))
		if errors.Is(err, os.ErrNotExist) && undecided[name] {
			continue
		}
		if err != nil {
			t.Errorf("%s decides nowhere: %v", name, err)
		}
		for i, line := range strings.Split(string(content), "\n") {
			code, _, _ := strings.Cut(line, "//")
			for _, need := range impure {
				if strings.Contains(code, need) {
					t.Errorf("pkg/%s/decide.go:%d: %s: it decides from facts alone", name, i+1, need)
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	documented := map[string]bool{}
	for _, file := range sources(t) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", file), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(file)
		documented[dir] = documented[dir] || f.Doc != nil
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
}

// sources are the program's own Go files, without tests.
func sources(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, dir := range []string{"cmd", "types", "pubsub", "kubeapi", "pkg"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(name string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
				rel, _ := filepath.Rel("../..", name)
				files = append(files, filepath.ToSlash(rel))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}
