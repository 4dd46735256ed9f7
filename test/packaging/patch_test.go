package packaging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/report/evereport"
	"github.com/zedkube/zedkube/types"
)

const (
	zedagentPatch = "../../docs/zedagent.patch"
	pillar        = "pkg/pillar"
	zedagent      = pillar + "/cmd/zedagent/"
	reporter      = zedagent + "handleclusterreport.go"
)

func run(t *testing.T, dir string, stdin io.Reader, name string, args ...string) string {
	t.Helper()
	var out, said bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, stdin, &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd.Args, err, &out, &said)
	}
	return out.String()
}

func absolute(t *testing.T) string {
	t.Helper()
	patch, err := filepath.Abs(zedagentPatch)
	if err != nil {
		t.Fatal(err)
	}
	return patch
}

// patched applies the patch to a copy of zedagent's files below from, and of all others with all.
func patched(t *testing.T, from string, all bool) (dir string) {
	t.Helper()
	patch := absolute(t)
	dir = t.TempDir()
	to := filepath.Join(dir, pillar)
	if !all {
		from, to = filepath.Join(from, "cmd/zedagent"), filepath.Join(dir, zedagent)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	run(t, dir, nil, "git", "apply", "--check", patch)
	run(t, dir, nil, "git", "apply", patch)
	return dir
}

func TestPatchOnlyAddsToZedagent(t *testing.T) {
	var files []string
	for line := range strings.Lines(run(t, t.TempDir(), nil, "git", "apply", "--numstat", absolute(t))) {
		var added, removed int
		var file string
		if _, err := fmt.Sscanf(line, "%d %d %s", &added, &removed, &file); err != nil || added == 0 || removed != 0 {
			t.Errorf("%s: %v", line, err)
		}
		files = append(files, file)
	}
	if want := []string{reporter, zedagent + "handleedgenodecluster.go", zedagent + "handlemetrics.go"}; !slices.Equal(files, want) {
		t.Errorf("it changes %v, want %v", files, want)
	}
}

func TestPatchReadsTopicsAsZedkubeWritesThem(t *testing.T) {
	ours := map[string]reflect.Type{}
	for _, v := range []any{
		types.ClusterNodeStatus{}, types.KubeClusterMetrics{}, types.ClusterNodeMetrics{}, types.ClusterAppMetrics{}, types.ENClusterAppStatus{},
	} {
		ours[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	dir := patched(t, "testdata/zedagent", true)
	for _, name := range []string{reporter, pillar + "/types/types.go"} { // the second is what the stand-in lets it read of EVE's
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			topic, known := ours[spec.Name.Name]
			if !ok || !known {
				if name == reporter {
					t.Errorf("zedkube has no %s", spec.Name.Name)
				}
				return true
			}
			delete(ours, spec.Name.Name)
			for _, f := range fields.Fields.List {
				for _, field := range f.Names {
					own, ok := topic.FieldByName(field.Name)
					tag := ""
					if f.Tag != nil {
						tag = strings.Trim(f.Tag.Value, "`")
					}
					if _, pointer := f.Type.(*ast.StarExpr); !ok || string(own.Tag) != tag || pointer != (own.Type.Kind() == reflect.Pointer) {
						t.Errorf("%s.%s with tag %q is %v with tag %q in zedkube", spec.Name.Name, field.Name, tag, own.Type, own.Tag)
					}
				}
			}
			return true
		})
	}
	if len(ours) > 0 {
		t.Errorf("the patch does not read %v", ours)
	}
}

// module gives the stand-in for EVE the versions of libraries that zedkube has.
func module(t *testing.T, dir string) {
	t.Helper()
	own, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	text := "module github.com/lf-edge/eve/pkg/pillar\n\n"
	for _, line := range []string{`(?m)^go .*$`, `(?m)^\t(github.com/lf-edge/eve-api/go [^ \n]*)`, `(?m)^\t(google.golang.org/protobuf [^ \n]*)`} {
		found := regexp.MustCompile(line).FindStringSubmatch(string(own))
		if found == nil {
			t.Fatalf("go.mod has no %s", line)
		}
		if len(found) > 1 {
			found[0] = "require " + found[1]
		}
		text += found[0] + "\n"
	}
	sums, err := os.ReadFile("../../go.sum")
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600), os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600)); err != nil {
		t.Fatal(err)
	}
}

type object = map[string]any

// drive plays steps with the patched stand-in, and returns what it sends, without times.
func drive(t *testing.T, steps ...object) (keys []string, messages []object) {
	t.Helper()
	dir := filepath.Join(patched(t, "testdata/zedagent", true), pillar)
	module(t, dir)
	in, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	sent := json.NewDecoder(strings.NewReader(run(t, dir, bytes.NewReader(in), "go", "run", "-mod=mod", "./cmd/drive")))
	for {
		var m struct {
			Key     string
			Message object
		}
		if err := sent.Decode(&m); err == io.EOF {
			return keys, messages
		} else if err != nil {
			t.Fatal(err)
		}
		delete(m.Message, "atTimeStamp")
		keys, messages = append(keys, m.Key), append(messages, m.Message)
	}
}

func TestPatchSendsWhatZedkubeWouldExport(t *testing.T) {
	const app = "9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34"
	sender := evereport.Sender{Device: uuid.MustParse("c4a1d7e2-90b3-4d58-8a6e-1be0f7723c05"), ClusterID: uuid.MustParse("5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11")}
	number := func(n uint64) *uint64 { return &n }
	measured := func(at time.Time) types.KubeClusterMetrics {
		return types.KubeClusterMetrics{
			Nodes: []types.ClusterNodeMetrics{
				{Name: "n1", At: at, Cores: 4, CPU: number(1_310_000_000), Memory: number(6 << 30), Total: number(8 << 30)},
				{Name: "n2", Stale: "it does not answer"},
			},
			Apps: []types.ClusterAppMetrics{{Name: "cam-0", App: "Camera", CPU: number(250_500_000), Memory: number(100 << 20)}, {Name: "x"}},
			VMIs: []types.ClusterAppMetrics{{Name: "plc", CPU: number(499_999), Memory: number(1)}},
		}
	}
	fresh, old := measured(time.Now()), measured(time.Now().Add(-time.Hour))
	topic := func(key string, v any) object {
		return object{"Topic": "zedkube/" + reflect.TypeOf(v).Name(), "Key": key, "Value": v}
	}
	here := types.ENClusterAppStatus{ScheduledOnThisNode: true, AppKubeStatus: types.AppKubeNotRunning}
	status := func(activated, elsewhere bool) object {
		return object{"App": object{
			"UUIDandVersion": object{"UUID": app, "Version": "3"}, "DisplayName": "Label_Printer", "State": 1,
			"Activated": activated, "NoUploadStatsToController": elsewhere,
		}}
	}
	keys, got := drive(
		t,
		topic("global", types.ClusterNodeStatus{Status: types.KubeNodeReady}),
		topic("global", types.ClusterNodeStatus{Status: types.KubeNodeNotReachable}),
		object{"Metrics": true},
		topic("global", fresh),
		object{"Metrics": true},
		topic("global", old),
		object{"Metrics": true},

		topic(app, here),     // of an application that has no status yet, nothing is sent
		status(false, false), // it is scheduled here and not up yet
		topic(app, types.ENClusterAppStatus{AppKubeStatus: types.AppKubeRunning}), // it has moved; zedmanager has not noticed
		status(true, true), // it has
		topic(app, types.ENClusterAppStatus{AppKubeStatus: types.AppKubeAPIUnreachable}),
		status(true, false), // what is not known is left to EVE
		status(true, true),
	)
	decoded := func(raw []byte, err error) (m object) {
		t.Helper()
		if err = errors.Join(err, json.Unmarshal(raw, &m)); err != nil {
			t.Fatal(err)
		}
		return m
	}
	none := object{"devID": sender.Device.String()}
	application := func(running bool) object {
		m := decoded(evereport.JSON(sender.App(types.ENClusterAppStatus{AppUUID: uuid.MustParse(app), ScheduledOnThisNode: running},
			types.AppInstanceConfig{UUIDandVersion: types.UUIDandVersion{Version: "3"}, DisplayName: "Label_Printer"})))
		m["ainfo"].(object)["state"] = "INITIAL" // zedmanager's, which zedkube does not know
		return m
	}
	want := []object{
		none,
		decoded(evereport.JSON(sender.Node(types.KubeNodeReady))),
		decoded(evereport.JSON(sender.Node(types.KubeNodeNotReachable))),
		none, decoded(evereport.JSON(sender.Metrics(fresh))), none,
		application(true), application(false), application(false), application(true),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if want := []string{"metrics", "clusternode", "clusternode", "metrics", "metrics", "metrics", app, app, app, app}; !slices.Equal(keys, want) {
		t.Errorf("the keys in the queue are %v, want %v", keys, want)
	}
}

// TestPatchAppliesToEVE needs EVE's source at 2c6b41543, with the libraries in its vendor directory.
func TestPatchAppliesToEVE(t *testing.T) {
	source := os.Getenv("ZEDKUBE_EVE_SOURCE")
	if source == "" {
		t.Skip("ZEDKUBE_EVE_SOURCE names no source of EVE") // no package has it
	}
	dir := patched(t, filepath.Join(source, pillar), false)
	replaced := map[string]string{}
	for _, name := range []string{reporter, zedagent + "handleedgenodecluster.go", zedagent + "handlemetrics.go"} {
		replaced[filepath.Join(source, name)] = filepath.Join(dir, name)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, filepath.Join(source, pillar), nil, "go", "build", "-overlay", file, "-o", os.DevNull, "./cmd/zedagent")
}
