// Package house checks the source as such: who imports whom, and calls that the
// program must not make. It links nothing of the program, so that `make lint` can
// run it.
package house

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
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
	"types":                 {nil, "the nouns know nobody"},
	"docs":                  {nil, "it is documents"},
	"pkg/operate/manual":    {[]string{"docs"}, "documents in, what they say out"},
	"pubsub":                {[]string{"pkg/base/safefile", "pkg/base/peer", "pkg/base/failpoint"}, "pubsub knows files and sockets only, and names no topic"},
	"kubeapi":               {[]string{"types", "pkg/base/*", "kubeapi/*"}, "kubeapi knows Kubernetes only and decides nothing"},
	"kubeapi/access":        {[]string{"types", "pkg/base/*"}, "what all packages of kubeapi share knows none of them"},
	"pkg/base/failpoint":    {[]string{"types"}, "it knows names only"},
	"kubeapi/apiserver":     {[]string{"types", "kubeapi/access", "pkg/base/promtext"}, "the packages of kubeapi know each other only through kubeapi/access; metrics are read as others read them"},
	"kubeapi/*":             {[]string{"types", "kubeapi/access"}, "the packages of kubeapi know each other only through kubeapi/access"},
	"pkg/*":                 {nil, "it says what lives in the group"},
	"pkg/base/*":            {[]string{"types", "pubsub", "pkg/base/*"}, "what all stand on knows no component"},
	"pkg/base/loop":         {nil, "the loop knows time only"},
	"pkg/base/span":         {nil, "it knows time only"},
	"pkg/base/redact":       {nil, "text in, text out"},
	"pkg/base/printable":    {nil, "text in, text out"},
	"pkg/base/promtext":     {nil, "text in, numbers out"},
	"pkg/base/compat":       {[]string{"types"}, "it is a table, and pure"},
	"pkg/base/phrase":       {nil, "text in, text out"},
	"pkg/base/safefile":     {[]string{"pkg/base/failpoint"}, "it reads files and knows none of them"},
	"pkg/base/boundedhttp":  {[]string{"pkg/base/peer"}, "it knows HTTP and sockets only"},
	"pkg/base/peer":         {[]string{"pkg/base/safefile"}, "it knows sockets and /proc only"},
	"pkg/cluster/*":         {[]string{"types", "pubsub", "pkg/base/*"}, "components share facts only through topics and name what they need of the cluster as an interface"},
	"pkg/workload/*":        {[]string{"types", "pubsub", "pkg/base/*"}, "components share facts only through topics and name what they need of the cluster as an interface"},
	"pkg/report/*":          {[]string{"types", "pubsub", "pkg/base/*"}, "components share facts only through topics and name what they need of the cluster as an interface"},
	"pkg/operate/*":         {[]string{"types", "pubsub", "pkg/base/*"}, "what serves people reads files and topics"},
	"pkg/operate/topicview": {[]string{"types", "pkg/base/redact", "pkg/base/safefile"}, "it reads directories of any agent"},
	"pkg/operate/health":    {[]string{"types", "pkg/operate/overview", "pkg/base/phrase", "pkg/base/safefile", "pkg/base/boundedhttp", "pkg/base/clusterauth", "pkg/operate/topicview"}, "it judges what files, sockets and an interface on the cluster tell"},
	"pkg/operate/bundle":    {[]string{"pkg/base/redact", "pkg/operate/topicview"}, "it packs what it is given and shows no secret"},
	"pkg/operate/metrics":   {[]string{"types", "pubsub", "pkg/base/*", "pkg/operate/overview"}, "it counts what parts do and what an overview says"},
	"pkg/operate/page":      {[]string{"types", "pubsub", "pkg/operate/overview", "pkg/operate/audit", "pkg/operate/localserver", "pkg/operate/manual", "pkg/base/printable", "pkg/base/boundedhttp"}, "it shows what files and tables say, through the local server"},
	"pkg/cli":               {[]string{"pkg/base/*", "pkg/cluster/*", "pkg/workload/*", "pkg/cli/*"}, "it puts the commands together"},
	"pkg/cli/*":             {append([]string{"pkg/cli/terminal", "pkg/cli/device", "pkg/cli/plan"}, beneathCommands...), "commands stand on terminal, device and plan, and do not know each other"},
	"pkg/cli/statuscmd":     {append([]string{"pkg/cli/terminal", "pkg/cli/device", "pkg/cli/nodescmd", "pkg/cli/appscmd", "pkg/cli/draincmd"}, beneathCommands...), "status shows nodes, applications and the drain as their own commands do"},
	"pkg/cli/terminal":      {nil, "it prints, and knows neither the device nor a command"},
	"pkg/cli/device":        {append([]string{"pkg/cli/terminal"}, beneathCommands...), "it knows no command"},
	"pkg/cli/plan":          {[]string{"types", "pkg/base/phrase", "pkg/workload/drain", "pkg/workload/drain/outlook", "pkg/operate/joinplan", "pkg/cli/terminal", "pkg/cli/device"}, "it looks at the cluster and knows no command"},
	"kubeapi/edge":          {[]string{"types", "kubeapi/access", "pkg/edge/object"}, "it knows objects as JSON, and nothing of KubeEdge"},
	"pkg/edge/object":       {nil, "it names objects, and is pure"},
	"pkg/edge/settings":     {nil, "it is pure"},
	"pkg/edge/join":         {[]string{"pkg/edge/settings"}, "it is pure"},
	"pkg/edge/cloud":        {[]string{"pkg/base/loop", "pkg/edge/join", "pkg/edge/object", "pkg/edge/settings"}, "it names what it needs of the cluster as an interface, and knows nothing of this device"},
	"pkg/edge/stream":       {[]string{"pkg/base/boundedhttp", "pkg/edge/settings"}, "it knows requests and who sends them, and nothing of objects"},
	"pkg/edge/certificates": {[]string{"pkg/base/boundedhttp", "pkg/edge/join"}, "it knows requests and names, and nothing of objects"},
	"pkg/edge/path":         {[]string{"pkg/base/loop"}, "it knows addresses and ports, and nothing of objects"},
	"pkg/edge/edgecmd":      {[]string{"types", "pkg/cli/terminal", "pkg/edge/*"}, "its commands look at the cluster alone, and know nothing of this device"},
	"cmd/zedkube-edge":      {[]string{"types", "kubeapi/edge", "pkg/base/boundedhttp", "pkg/base/loop", "pkg/cli/terminal", "pkg/edge/*", "pkg/operate/audit", "pkg/operate/overview"}, "it is a program of its own, without anything of the agent but its audit trail and the name of the device"},
	"cmd/*":                 {[]string{"types", "pubsub", "kubeapi", "pkg/*/*", "pkg/cli"}, "the wiring knows everything but the tests' tools"},
	"test/cmdtest":          {[]string{"types", "pkg/operate/overview", "pkg/operate/health", "pkg/operate/clusterview"}, "it makes devices for the tests of commands to look at"},
	"test/kubetest":         {[]string{"types"}, "the fake cluster that components are tested with does what it is asked; it knows the nouns only"},
	"test":                  {[]string{"types", "pubsub", "pkg/report/evereport", "pkg/base/printable", "test/*"}, "the tests' tools stand outside: they meet the program through files, sockets and the API server"},

	"pkg/operate/clusterview":    {[]string{"types", "pubsub", "pkg/base/*", "pkg/operate/overview"}, "it tells what an overview says, and asks the others by a verb that it is given"},
	"pkg/workload/drain":         {[]string{"types", "pubsub", "pkg/base/*", "pkg/workload/drain/outlook"}, "components share facts only through topics; its own pure part is no other component"},
	"pkg/workload/drain/outlook": {[]string{"types", "pkg/base/phrase"}, "it explains what it is given, and is pure"},
}

// beneathCommands is what commands may import beside packages of their own group: all but
// cmd and the tests' tools.
var beneathCommands = []string{"types", "pubsub", "kubeapi", "pkg/base/*", "pkg/cluster/*", "pkg/workload/*", "pkg/workload/drain/outlook", "pkg/report/*", "pkg/operate/*"}

// foreign lists who alone may import a family of modules.
var foreign = []struct {
	prefix string
	who    []string
	why    string
}{
	{"k8s.io/kubernetes", nil, "it would bring a second Kubernetes into the module: it lives in test/devcluster/devkube"},
	{"k8s.io/client-go/util/jsonpath", []string{"pkg/cli/*", "kubeapi", "kubeapi/*", "test"}, "commands print by the same expressions as kubectl; it is text, and reaches no API server"},
	{"k8s.io/apimachinery/pkg/util/json", []string{"pkg/cli/*", "kubeapi", "kubeapi/*", "test"}, "it reads numbers as those expressions take them; it is text, and reaches no API server"},
	{"k8s.io/", []string{"kubeapi", "kubeapi/*", "test"}, "only kubeapi knows Kubernetes"},
	{"sigs.k8s.io/yaml", []string{"pkg/cli/*", "kubeapi", "pkg/base/redact", "pkg/cluster/k3sconfig", "pkg/edge/cloud", "test"}, "commands print YAML, and the configuration of k3s and KubeEdge's definitions are YAML; components read and write JSON"},
	{"go.yaml.in/yaml/", []string{"pkg/cluster/k3sconfig", "test"}, "the configuration of k3s is read without expanding its aliases; elsewhere sigs.k8s.io/yaml does"},
	{"kubevirt.io/", []string{"kubeapi", "kubeapi/*", "test"}, "only kubeapi knows KubeVirt"},
	{"github.com/longhorn/", []string{"kubeapi", "kubeapi/*", "test"}, "only kubeapi knows Longhorn"},
	{"github.com/lf-edge/eve-api/", []string{"pkg/base/cipher", "pkg/report/evereport", "test"}, "only these libraries know the controller's messages"},
	{"github.com/google/go-tpm/", []string{"pkg/base/cipher"}, "only pkg/base/cipher talks to a TPM"},
	{"log/slog", nil, "the project logs with logrus"},
}

// imports are the packages of the module in a directory, a line for each with
// what it imports.
func imports(t *testing.T, dir string) string {
	t.Helper()
	list := exec.Command("go", "list", "-tags", "kustomize_disable_go_plugin_support", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestWhoMayImportWhom(t *testing.T) {
	for line := range strings.Lines(imports(t, "../..") + imports(t, "../browser")) {
		f := strings.Fields(line)
		pkg := strings.TrimPrefix(f[0], module)
		kind := pkg
		rule, ok := may[kind]
		if strings.HasPrefix(pkg, "test/") {
			kind = "test"
		}
		if !ok {
			rule, ok = may[kind]
		}
		if !ok {
			rule, ok = may[path.Dir(pkg)+"/*"]
		}
		if !ok {
			t.Errorf("%s: no rule for this package in test/house", pkg)
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

// The agent has nothing of KubeEdge: neither its code nor its definitions.
func TestTheAgentLinksNoEdgePackage(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-tags", "kustomize_disable_go_plugin_support", "./cmd/zedkube")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for pkg := range strings.FieldsSeq(string(out)) {
		ours, isOurs := strings.CutPrefix(pkg, module)
		if isOurs {
			found++
		}
		if isOurs && (ours == "kubeapi/edge" || ours == "pkg/edge" || strings.HasPrefix(ours, "pkg/edge/")) {
			t.Errorf("cmd/zedkube links %s: it belongs to cmd/zedkube-edge", ours)
		}
	}
	if found < 50 {
		t.Errorf("only %d packages of cmd/zedkube are found", found)
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
			if (file == "cmd/zedkube/main.go" || file == "cmd/zedkube-edge/main.go") && call == "context.Background(" {
				continue
			}
			for i, line := range strings.Split(string(content), "\n") {
				if file == "pkg/base/boundedhttp/server.go" && strings.HasPrefix(strings.TrimSpace(line), "panic(f)") {
					continue // it hands on a panic to who answers it
				}
				if code, _, _ := strings.Cut(line, "//"); strings.Contains(code, call) {
					t.Errorf("%s:%d: %s: %s", file, i+1, call, why)
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
