package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/pkg/operate/operator"
	"github.com/zedkube/zedkube/pubsub"
)

// routes are the paths of an agent's local server.
func routes(t *testing.T) map[string]localserver.Route {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	_, components := wire(t.Context(), device.Options{Root: t.TempDir()}.Paths(), log, io.Discard)
	return components["localserver"].(*localserver.Component).Routes
}

var accessWords = map[localserver.Access]string{
	localserver.SocketOnly: "socket", localserver.WithToken: "socket, TCP with the token",
	localserver.WithPage: "socket, TCP with the page", localserver.Always: "socket, TCP",
}

func TestTheTableOfRoutesIsThatOfTheProgram(t *testing.T) {
	content, err := os.ReadFile("../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	const head = "| path | methods | changes | answered |\n|---|---|---|---|\n"
	_, rest, found := strings.Cut(string(content), head)
	if !found {
		t.Fatal("docs/wire.md has no table of routes")
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	var want []string
	for path, r := range routes(t) {
		methods := r.Methods
		if methods == nil {
			methods = []string{http.MethodGet, http.MethodHead}
		}
		changes := r.Effect
		if changes == "" {
			changes = "nothing"
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", path, strings.Join(methods, ", "), changes, accessWords[r.Access]))
	}
	slices.Sort(want)
	if text := strings.Join(want, "\n"); table != text {
		t.Errorf("the table of routes in docs/wire.md is not\n%s", text)
	}
}

// TestNoQuestionChangesAnythingBeyondTheTable asks for each path of an agent of its
// own, and compares what the table says with what has changed of all it knows and
// keeps.
func TestNoQuestionChangesAnythingBeyondTheTable(t *testing.T) {
	for _, path := range slices.Sorted(maps.Keys(routes(t))) {
		root, log := t.TempDir(), logrus.New()
		log.SetOutput(io.Discard)
		bus, components := wire(t.Context(), device.Options{Root: root}.Paths(), log, io.Discard)
		r := components["localserver"].(*localserver.Component).Routes[path]
		if r.Methods != nil && (r.Effect == "" || r.Access != localserver.SocketOnly) {
			t.Errorf("%s: what changes something says so and is for the socket alone", path)
		}
		if r.Methods != nil && !slices.Contains(r.Methods, http.MethodGet) {
			continue
		}
		ctx, end := context.WithCancel(t.Context())
		if r.Stream {
			end() // it ends after what it says first
		}
		before := state(t, root, bus, components)
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r.Handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, method, path+"?seconds=1", nil))
		}
		end()
		var changed []string
		for name, now := range state(t, root, bus, components) {
			if before[name] != now {
				changed = append(changed, name)
			}
		}
		slices.Sort(changed)
		want := map[bool][]string{true: {"edgemetrics.Looks", "nodemetrics.Looks"}}[r.Effect != "" && r.Methods == nil]
		if !slices.Equal(changed, want) {
			t.Errorf("%s: changed are %q, want %q", path, changed, want)
		}
	}
}

// state is all that an agent knows and keeps, by name: the tables and topics of its
// components, the counts of its topics, and the files below its root.
func state(t *testing.T, root string, bus *pubsub.Bus, components map[string]component) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, c := range components {
		fields := reflect.ValueOf(c).Elem()
		for i := range fields.NumField() {
			field, value := fields.Type().Field(i), fields.Field(i)
			if !field.IsExported() || value.Kind() == reflect.Interface && value.IsNil() {
				continue
			}
			if table := value.MethodByName("All"); table.IsValid() && table.Type().NumIn() == 0 {
				all[name+"."+field.Name] = fmt.Sprint(table.Call(nil)[0])
			}
		}
	}
	for _, s := range bus.Stats() {
		all[s.Topic] += fmt.Sprint(s)
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var content []byte
			content, err = os.ReadFile(path)
			all[path] = string(content)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("%d things are known: the test does not see them", len(all))
	}
	return all
}

// TestEveryRouteIsAnsweredWhereTheTableSays asks for each of them in each way.
func TestEveryRouteIsAnsweredWhereTheTableSays(t *testing.T) {
	socket, p := runLocal(t)
	found := pageOf(t, p)
	code := func(client *http.Client, method, url string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close() // a stream ends so
		return resp.StatusCode
	}
	near, bears := &http.Client{Transport: bearer("")}, &http.Client{Transport: bearer(found.Token)}
	is := map[localserver.Access][3]int{ // socket, TCP, TCP with the token; 0 for whatever the handler says
		localserver.SocketOnly: {0, 404, 404}, localserver.WithToken: {0, 401, 0}, localserver.WithPage: {0, 0, 0}, localserver.Always: {0, 0, 0},
	}
	all := routes(t)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if path == "/debug/pprof/profile" || path == "/debug/pprof/trace" {
			continue // they take their time
		}
		ask := path
		if path == operator.Path {
			ask += "NodeDrainRequest/global"
		}
		for i, got := range []int{code(socket, http.MethodGet, "http://zedkube"+ask), code(near, http.MethodGet, "http://"+p.PageAddress()+ask), code(bears, http.MethodGet, "http://"+p.PageAddress()+ask)} {
			want := is[all[path].Access][i]
			if refused := got == 401 || got == 403 || got == 404; want != 0 && got != want || want == 0 && refused && path != "/api/logs" {
				t.Errorf("%s, way %d: %d, want %d", path, i, got, want)
			}
		}
		for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
			if got := code(bears, method, "http://"+p.PageAddress()+ask); got != http.StatusMethodNotAllowed {
				t.Errorf("%s %s over TCP: %d", method, path, got)
			}
		}
	}
}
