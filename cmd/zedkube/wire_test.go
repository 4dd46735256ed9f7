package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pkg/base/watchdog"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cluster/clustertoken"
	"github.com/zedkube/zedkube/pkg/cluster/k3scerts"
	"github.com/zedkube/zedkube/pkg/cluster/k3sconfig"
	"github.com/zedkube/zedkube/pkg/cluster/k3supdate"
	"github.com/zedkube/zedkube/pkg/cluster/statusserver"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/pkg/workload/applogs"
	"github.com/zedkube/zedkube/pkg/workload/console"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/pkg/workload/mounts"
	"github.com/zedkube/zedkube/pkg/workload/podnetworks"
	"github.com/zedkube/zedkube/pkg/workload/sriov"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

// wired is the program's wiring, on an empty root.
func wired(t *testing.T) map[string]component {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	_, components := wire(t.Context(), device.Options{Root: t.TempDir()}.Paths(), log, io.Discard)
	return components
}

// flow reads a component's fields: a field that can publish is an output, any
// other field that rings is an input.
func flow(c component) (reads, writes []wiredTable) {
	v := reflect.Indirect(reflect.ValueOf(c))
	for _, field := range reflect.VisibleFields(v.Type()) {
		if !field.IsExported() || field.Type.Kind() != reflect.Interface || len(field.Index) > 1 && !embedded(v.Type(), field.Index) {
			continue
		}
		value := v.FieldByIndex(field.Index)
		if value.IsNil() {
			continue
		}
		t := wiredTable{field.Name, value.Interface()}
		if _, ok := field.Type.MethodByName("Publish"); ok {
			writes = append(writes, t)
		} else if _, ok := field.Type.MethodByName("Notify"); ok {
			reads = append(reads, t)
		}
	}
	return reads, writes
}

// embedded reports whether a field is one of an exported struct that is part of the
// component: what a pointer leads to is not wired here.
func embedded(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		field := t.Field(i)
		if !field.IsExported() || field.Type.Kind() != reflect.Struct {
			return false
		}
		t = field.Type
	}
	return true
}

// wiredTable is a topic or a table in memory as a component's field holds it.
type wiredTable struct {
	field string
	value any
}

// namesOf says how the documentation calls tables: a topic by its own name, a
// table in memory by the field of the component that writes it.
func namesOf(tables []wiredTable, inMemory map[any]string) string {
	var list []string
	for _, t := range tables {
		if topic, ok := t.value.(fmt.Stringer); ok {
			list = append(list, topic.String())
		} else {
			list = append(list, inMemory[t.value])
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func TestEveryTopicHasOneWriter(t *testing.T) {
	writer := map[any]string{}
	for component, c := range wired(t) {
		_, writes := flow(c)
		for _, table := range writes {
			if other, taken := writer[table.value]; taken {
				t.Errorf("%s of %s is written by %s too", table.field, component, other)
			}
			writer[table.value] = component
		}
	}
	if len(writer) == 0 {
		t.Error("no component writes anything: flow does not see the fields")
	}
}

// TestNoRuleOnMembersSeesNodesOfKubeEdge: a component that looks at them may not count them, so
// each is named here. The nodes that people are shown are no component.
func TestNoRuleOnMembersSeesNodesOfKubeEdge(t *testing.T) {
	var edges any
	components := wired(t)
	for _, c := range components {
		_, writes := flow(c)
		for _, table := range writes {
			if table.field == "EdgeNodes" {
				edges = table.value
			}
		}
	}
	if edges == nil {
		t.Fatal("nobody writes the table of edge nodes")
	}
	for name, c := range components {
		reads, _ := flow(c)
		for _, table := range reads {
			// The first says which names are taken, the second asks them what they measure.
			if table.value == edges && name+"."+table.field != "statusserver.EdgeNodes" && name+"."+table.field != "edgemetrics.Nodes" {
				t.Errorf("%s has the edge nodes as %s", name, table.field)
			}
		}
	}
}

// TestWhoLooksAtWitnessIsWokenByIt reads the sources: a component that heard late of
// what a node publishes of lost ones would take it for newer than it is.
func TestWhoLooksAtWitnessIsWokenByIt(t *testing.T) {
	looks := regexp.MustCompile(`\.Hear\(nodes|\.Hear\(c\.Nodes|\.Hear\(f\.nodes|\.Witness\b[^(]|types\.(Gone|Silent|Answers|ObservedBy)\b`)
	found := 0
	for component, c := range wired(t) {
		field := reflect.Indirect(reflect.ValueOf(c)).FieldByName("Nodes")
		if !field.IsValid() || field.Kind() != reflect.Interface {
			continue
		}
		dir := strings.TrimPrefix(reflect.TypeOf(c).Elem().PkgPath(), "github.com/zedkube/zedkube/")
		files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no sources in %s: %v", component, dir, err)
		}
		var why string
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(file, "_test.go") && looks.Match(source) {
				why = file
			}
		}
		_, filtered := field.Interface().(*pubsub.Filtered[types.Node])
		switch {
		case why != "" && filtered:
			t.Errorf("%s looks at Witness in %s, and reads nodesButWitness", component, why)
		case why != "":
			found++
		}
	}
	if found < 6 {
		t.Errorf("%d components look at Witness: the sources say it in other words", found)
	}
}

func TestEveryFieldOfEveryComponentIsFilled(t *testing.T) {
	for component, c := range wired(t) {
		v := reflect.Indirect(reflect.ValueOf(c))
		for _, field := range reflect.VisibleFields(v.Type()) {
			if !field.IsExported() || len(field.Index) > 1 && !embedded(v.Type(), field.Index) {
				continue
			}
			kind := field.Type.Kind()
			if (kind == reflect.Interface || kind == reflect.Pointer || kind == reflect.Map) && v.FieldByIndex(field.Index).IsNil() {
				t.Errorf("%s: field %s is empty", component, field.Name)
			}
		}
	}
}

func TestEveryFileOfTheWiringIsBelowTheRoot(t *testing.T) {
	for _, root := range []string{"", "/srv/n1", "n1"} {
		log := logrus.New()
		log.SetOutput(io.Discard)
		_, c := wire(t.Context(), device.Options{Root: root}.Paths(), log, io.Discard)
		k3s, server, drains := c["k3sconfig"].(*k3sconfig.Component), c["statusserver"].(*statusserver.Component), c["drain"].(*drain.Component)
		logs, vnc := c["applogs"].(*applogs.Component), c["console"].(*console.Component)
		volumes := c["mounts"].(*mounts.Component)
		supervised := volumes.K3s.(k3sprocess.K3s)
		got := slices.Concat(server.TopicDirs, drains.ForceFiles, drains.Markers, []string{
			server.InstallLog, server.ProversFile, server.PeersFile, drains.FaultMarker, c["clustertoken"].(*clustertoken.Component).Manifest,
			k3s.OverrideFile, k3s.Files.VarLib, k3s.Files.K3s.PID, k3s.Files.K3s.Proc, logs.Journal, logs.Checkpoints, vnc.File, vnc.OldFile, vnc.KubeInit, vnc.Proc,
			c["sriov"].(*sriov.Component).Sysfs, c["watchdog"].(*watchdog.Component).TouchFile,
			c["localserver"].(*localserver.Component).Socket, c["localserver"].(*localserver.Component).TokenFile,
			volumes.Devices, volumes.File, supervised.PID, supervised.Proc, supervised.Socket, supervised.Marker,
			c["podnetworks"].(*podnetworks.Component).Dir,
			c["k3supdate"].(*k3supdate.Component).HoldFile, c["k3supdate"].(*k3supdate.Component).JournalFile,
		}, c["k3scerts"].(*k3scerts.Component).Dirs)
		for i, want := range []string{
			"/run", "/persist/status", "/tmp/force-NodeDrainStatus-global.json", "/persist/kube-status/force-NodeDrainStatus-global.json",
			"/persist/reboot-reason", "/persist/boot-reason", "/run/systemd/shutdown/scheduled",
			"/persist/kubelog/k3s-install.log", "/persist/zedkube/all-prove", "/persist/zedkube/peers-with-tls", "/tmp/DrainStatus_FaultInjection_Wait",
			"/persist/vault/manifests/registration.yaml",
			"/persist/vault/k3s-user-override.yaml", "/persist/vault/kube", "/run/k3s.pid", "/proc",
			"/run/zedkube.applogs", "/persist/kube-status/zedkube-applogs.jsonl",
			"/run/edgeview/VncParams/vmiVNC.run", "/run/zedkube/vmiVNC.run", "/run/kube-init", "/proc",
			"/sys", "/run/zedkube.touch", "/run/zedkube/zedkube.sock", "/run/zedkube/page-token.json",
			"/dev/longhorn", "/persist/status/zedkube/MountRecovery/global.json", "/run/k3s.pid", "/proc", "/run/k3s-supervisor.sock", "/run/kube/k3s-start",
			"/run/zedkube/kubeapp-net",
			"/persist/zedkube/k3s-hold", "/persist/status/zedkube/KubeLifecycleJournal/global.json",
			"/persist/vault/kube/rancher/k3s", "/var/lib/rancher/k3s",
		} {
			if got[i] != root+want {
				t.Errorf("root %q: want %s, not %s", root, root+want, got[i])
			}
		}
		device := c["clustertoken"].(*clustertoken.Component).Device
		for _, file := range []string{"/persist/certs/ecdh.key.pem", "/dev/tpmrm0"} {
			if text := fmt.Sprintf("%+v", device); !strings.Contains(text, ":"+root+file+" ") {
				t.Errorf("root %q: the device's key is at %s, not at %s", root, text, root+file)
			}
		}
	}
}

func TestTheWiringIsAMapAndNotAProgram(t *testing.T) {
	content, err := os.ReadFile("wire.go")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(content), "\n") {
		if code, _, _ := strings.Cut(line, "//"); strings.HasPrefix(strings.TrimSpace(code), "if ") {
			t.Errorf("wire.go:%d: a map has no if", i+1)
		}
	}
}

func TestDataflowDocIsTrue(t *testing.T) {
	components := wired(t)
	var b strings.Builder
	b.WriteString("# Data flow\n\nWho reads and who writes which topic or table, read from the wiring in cmd/zedkube/wire.go\n" +
		"(`go test ./cmd/zedkube -run Dataflow -update` writes this file).\n\n| component | reads | writes |\n|---|---|---|\n")
	inMemory := map[any]string{}
	for name, c := range components {
		_, writes := flow(c)
		for _, t := range writes {
			inMemory[t.value] = name + "." + t.field
		}
	}
	for _, component := range slices.Sorted(maps.Keys(components)) {
		reads, writes := flow(components[component])
		fmt.Fprintf(&b, "| %s | %s | %s |\n", component, namesOf(reads, inMemory), namesOf(writes, inMemory))
	}
	const doc = "../../docs/dataflow.md"
	if *cmdtest.Update {
		if err := os.WriteFile(doc, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(doc)
	if err != nil || string(got) != b.String() {
		t.Errorf("docs/dataflow.md is stale (%v): go test ./cmd/zedkube -run Dataflow -update", err)
	}
}
