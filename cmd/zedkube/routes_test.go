package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/pkg/operate/operator"
)

// routes are the paths of an agent's local server.
func routes(t *testing.T) map[string]localserver.Route {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	_, components := wire(device.Options{Root: t.TempDir()}.Paths(), log, io.Discard)
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

func TestNoQuestionChangesAnything(t *testing.T) {
	for path, r := range routes(t) {
		reads := r.Methods == nil || slices.Contains(r.Methods, http.MethodGet) || slices.Contains(r.Methods, http.MethodHead)
		if reads && r.Effect != "" {
			t.Errorf("%s: a GET there changes something: %s", path, r.Effect)
		}
		if !reads && (r.Effect == "" || r.Access != localserver.SocketOnly) {
			t.Errorf("%s: what changes something says so and is for the socket alone", path)
		}
	}
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
		for i, got := range []int{code(socket, http.MethodGet, "http://zedkube"+ask), code(near, http.MethodGet, "http://"+p.PageAddress+ask), code(bears, http.MethodGet, "http://"+p.PageAddress+ask)} {
			want := is[all[path].Access][i]
			if refused := got == 401 || got == 403 || got == 404; want != 0 && got != want || want == 0 && refused && path != "/api/logs" {
				t.Errorf("%s, way %d: %d, want %d", path, i, got, want)
			}
		}
		for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
			if got := code(bears, method, "http://"+p.PageAddress+ask); got != http.StatusMethodNotAllowed {
				t.Errorf("%s %s over TCP: %d", method, path, got)
			}
		}
	}
}
