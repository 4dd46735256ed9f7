package main

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const module = "github.com/zedkube/zedkube/"

// undecided are the components too small for a decide.go: they have no rules.
var undecided = map[string]bool{"loglevel": true, "watchdog": true}

// impure is what no decide.go may need: it says what to do from facts alone.
var impure = []string{`"context"`, `"os"`, `"net/http"`, "logrus", "pkg/base/loop", "zedkube/pubsub", "time.Now(", "time.Since(", "time.Until("}

func TestEveryComponentHasTheOneShape(t *testing.T) {
	for name, c := range wired(t) {
		if name == "kubeapi" {
			continue // the window on the cluster; it decides nothing
		}
		if _, ok := c.(interface{ Step(context.Context) error }); !ok {
			t.Errorf("%s has no Step(context.Context) error", name)
		}
		typ := reflect.TypeOf(c).Elem()
		if typ.Name() != "Component" || path.Base(typ.PkgPath()) != name {
			t.Errorf("%s is %s of %s, not the Component of its own package", name, typ.Name(), typ.PkgPath())
		}
		content, err := os.ReadFile(filepath.Join("../..", strings.TrimPrefix(typ.PkgPath(), module), "decide.go"))
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
					t.Errorf("%s/decide.go:%d: %s: it decides from facts alone", typ.PkgPath(), i+1, need)
				}
			}
		}
	}
}
