package statusserver

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// documented are the methods of each path in the table of docs/wire.md.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	content, err := os.ReadFile("../../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	const head = "| path | method | answer |\n|---|---|---|\n"
	_, rest, found := strings.Cut(string(content), head)
	if !found {
		t.Fatal("docs/wire.md has no table of the status server's paths")
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	methods := map[string][]string{}
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(row, "|")
		for _, path := range regexp.MustCompile("`(/[a-z/-]*)(<uuid>)?`").FindAllStringSubmatch(cells[1], -1) {
			if words := strings.TrimSpace(cells[2]); !strings.HasPrefix(words, "other") {
				methods[path[1]] = strings.Split(words, ", ")
			}
		}
	}
	return methods
}

func TestTheTableOfPathsIsThatOfTheProgram(t *testing.T) {
	log, _ := logtest.NewNullLogger()
	c := &Component{
		Log: log, Status: &pubsub.Table[types.EdgeNodeClusterStatus]{}, Nodes: &pubsub.Table[types.Node]{}, EdgeNodes: &pubsub.Table[types.Node]{},
		API: &pubsub.Table[types.APIStatus]{}, Info: &pubsub.Table[types.EdgeNodeInfo]{},
	}
	want := documented(t)
	served := c.routes()
	if paths := slices.Sorted(maps.Keys(served)); !slices.Equal(paths, slices.Sorted(maps.Keys(want))) {
		t.Fatalf("served are %q, documented %q", paths, slices.Sorted(maps.Keys(want)))
	}
	h := c.handler()
	for path, methods := range want {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "BREW"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
			if refused := w.Code == http.StatusMethodNotAllowed; refused == slices.Contains(methods, method) {
				t.Errorf("%s %s: %d, documented are %q", method, path, w.Code, methods)
			}
		}
	}
}
