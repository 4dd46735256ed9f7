package appscmd

import (
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/test/cmdtest"
)

// TestViewsOfApps holds what people see: go test ./pkg/cli/appscmd -run Views
// -update writes it anew.
func TestViewsOfApps(t *testing.T) {
	o := cmdtest.Troubled()
	text := func(lines []string) string { return strings.Join(lines, "\n") + "\n" }
	cmdtest.SameView(t, "apps", text(terminal.Draw(80, false, func(s *terminal.Screen) { putApps(s, o, false) })))
	cmdtest.SameView(t, "apps-pipe", text(terminal.Draw(cmdtest.Pipe, false, func(s *terminal.Screen) { putApps(s, o, false) })))
	cmdtest.SameView(t, "apps-colour", text(terminal.Draw(80, true, func(s *terminal.Screen) { putApps(s, o, false) })))
	for i, a := range o.Apps.List {
		one := o
		one.Apps.List = []overview.App{a}
		cmdtest.SameView(t, "app-"+[]string{"down", "runs", "off"}[i], text(terminal.Draw(80, false, func(s *terminal.Screen) { putApps(s, one, true) })))
	}
}

func TestApplicationsAreFoundByTheirNames(t *testing.T) {
	o := cmdtest.Troubled()
	for name, want := range map[string]string{
		"camera_9": "Camera_9", "bbbbbbbb": "Camera_9", o.Apps.List[1].UUID: "plc", strings.ToUpper(o.Apps.List[0].UUID): "Camera_9",
		"x-aaaaa-0": "plc", "x": "", "": "", "b": "Camera_9",
	} {
		a, err := chosenApp(o, name)
		if a.Name != want || (want == "") != (err != nil) {
			t.Errorf("%q: found %q, %v", name, a.Name, err)
		}
	}
	twice := o
	twice.Apps.List = append(twice.Apps.List[:len(twice.Apps.List):len(twice.Apps.List)], o.Apps.List[1])
	if _, err := chosenApp(twice, "plc"); err == nil || !strings.Contains(err.Error(), "2 applications") {
		t.Errorf("two of the same name: %v", err)
	}
}
