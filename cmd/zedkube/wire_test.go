package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
)

var update = flag.Bool("update", false, "rewrite docs/dataflow.md")

// wired is the program's wiring, on an empty root.
func wired(t *testing.T) map[string]component {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	_, components := wire(options{root: t.TempDir()}.paths(), log)
	return components
}

// flow reads a component's fields: a field that can publish is an output, any
// other field that rings is an input. Agent and topic make a table's name.
func flow(c component) (reads, writes map[any]string) {
	reads, writes = map[any]string{}, map[any]string{}
	v := reflect.Indirect(reflect.ValueOf(c))
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || v.Field(i).Kind() != reflect.Interface || v.Field(i).IsNil() {
			continue
		}
		table := v.Field(i).Interface()
		if _, ok := field.Type.MethodByName("Publish"); ok {
			writes[table] = name(table)
		} else if _, ok := field.Type.MethodByName("Notify"); ok {
			reads[table] = name(table)
		}
	}
	return reads, writes
}

// name says how the documentation calls a table.
func name(table any) string {
	if named, ok := table.(interface{ Name() string }); ok {
		return named.Name()
	}
	full := reflect.TypeOf(table).String() // *pubsub.Table[…/types.Node]
	return "table of " + strings.TrimSuffix(full[strings.LastIndex(full, ".")+1:], "]")
}

func TestEveryTopicHasOneWriter(t *testing.T) {
	writer := map[any]string{}
	for component, c := range wired(t) {
		_, writes := flow(c)
		for table, topic := range writes {
			if other, taken := writer[table]; taken {
				t.Errorf("%s is written by %s and by %s", topic, other, component)
			}
			writer[table] = component
		}
	}
	if len(writer) == 0 {
		t.Error("no component writes anything: flow does not see the fields")
	}
}

func TestEveryFieldOfEveryComponentIsFilled(t *testing.T) {
	for component, c := range wired(t) {
		v := reflect.Indirect(reflect.ValueOf(c))
		for i := range v.NumField() {
			field := v.Type().Field(i)
			kind := v.Field(i).Kind()
			if field.IsExported() && (kind == reflect.Interface || kind == reflect.Pointer || kind == reflect.Map) && v.Field(i).IsNil() {
				t.Errorf("%s: field %s is empty", component, field.Name)
			}
		}
	}
}

func TestTheWiringIsAMapAndNotAProgram(t *testing.T) {
	content, err := os.ReadFile("wire.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(content), "\n"); lines > 150 {
		t.Errorf("wire.go has %d lines; a map has at most 150", lines)
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
	for _, component := range slices.Sorted(maps.Keys(components)) {
		reads, writes := flow(components[component])
		fmt.Fprintf(&b, "| %s | %s | %s |\n", component,
			strings.Join(slices.Sorted(maps.Values(reads)), ", "), strings.Join(slices.Sorted(maps.Values(writes)), ", "))
	}
	const doc = "../../docs/dataflow.md"
	if *update {
		if err := os.WriteFile(doc, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(doc)
	if err != nil || string(got) != b.String() {
		t.Errorf("docs/dataflow.md is stale (%v): go test ./cmd/zedkube -run Dataflow -update", err)
	}
}
