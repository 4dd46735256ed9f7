package edgecmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/edge/cloud"
	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/types"
)

// played is a cluster that has what was put into it, and an audit trail.
type played struct {
	objects map[object.Ref]object.Object
	fails   error // of each write
	taken   error // of a Service, as where its port is another one's
	audit   []string
	version string    // of the program
	closes  time.Time // when the controller takes all names out of cloudcore's role; zero for never

	deleted   func(r object.Ref) // what happens after a deletion; nil for nothing
	asked     func()             // what happens before an object is read; nil for nothing
	confirmed func()             // what happens before somebody types yes; nil where he types no
}

func (p *played) Get(_ context.Context, r object.Ref) (object.Object, error) {
	if p.asked != nil {
		p.asked()
	}
	if r == cloud.RefRole && !p.closes.IsZero() && !time.Now().Before(p.closes) {
		return object.New(r), nil
	}
	return p.objects[r], nil
}

func (p *played) List(_ context.Context, v cloud.View) (list []object.Object, _ error) {
	for r, o := range p.objects {
		if r.Kind == v.Ref.Kind && r.Namespace == v.Ref.Namespace && (v.Ref.Name == "" || v.Ref.Name == r.Name) {
			list = append(list, o)
		}
	}
	return list, nil
}

func (p *played) put(r object.Ref, o object.Object) error {
	if p.fails == nil {
		p.objects[r] = o
	}
	return p.fails
}

func (p *played) Apply(_ context.Context, r object.Ref, o object.Object, dry bool) (object.Object, error) {
	if r.Kind == object.Service && p.taken != nil {
		return nil, p.taken
	}
	if dry {
		return o, nil
	}
	return o, p.put(r, o)
}

func (p *played) Create(_ context.Context, r object.Ref, o object.Object) error { return p.put(r, o) }

func (p *played) Update(_ context.Context, r object.Ref, o object.Object) error { return p.put(r, o) }

func (p *played) Delete(_ context.Context, r object.Ref, uid string) error {
	if uid != "" && p.objects[r].UID() != uid {
		return nil // another one has its name
	}
	delete(p.objects, r)
	if p.deleted != nil {
		p.deleted(r)
	}
	return nil
}

// Read implements io.Reader for what somebody types.
func (p *played) Read(b []byte) (int, error) {
	if p.confirmed == nil {
		return copy(b, "no\n"), nil
	}
	p.confirmed()
	return copy(b, "yes\n"), nil
}

// edgeNode is a Node of KubeEdge that is Ready.
func edgeNode(name, uid string) object.Object {
	return object.New(object.Ref{Kind: object.Node, Name: name}).With(object.Map{
		"metadata": object.Map{"name": name, "uid": uid, "labels": object.Map{"node-role.kubernetes.io/edge": ""}},
		"status":   object.Map{"conditions": []any{object.Map{"type": "Ready", "status": "True"}}},
	})
}

func (p *played) Evict(_ context.Context, r object.Ref, _ string) (string, error) {
	delete(p.objects, r)
	return "", nil
}

// Begin implements types.OperationLog.
func (p *played) Begin(o types.Operation) func(types.OperationOutcome, error) {
	line := strings.Join([]string{o.Component, o.By, o.Op, o.Target, o.Why}, "|")
	return func(outcome types.OperationOutcome, err error) {
		p.audit = append(p.audit, fmt.Sprintf("%s|%s|%v", line, outcome, err))
	}
}

func (p *played) program() Program {
	return Program{
		Version: p.version,
		Connect: func(string) (Cluster, error) { return p, nil },
		Record:  func(string) types.OperationLog { return p },
	}
}

func (p *played) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := New(p.program())
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetIn(p)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestWhatIsChangedIsAudited(t *testing.T) {
	p := &played{objects: map[object.Ref]object.Object{}}
	for _, args := range [][]string{
		{"enable", "--dry-run", "--ha"}, {"enable", "nodeLimit=20"}, {"enable", "--yes", "nodeLimit=x"}, // nothing is changed by these
		{"enable", "--yes", "--ha"}, {"set", "--yes", "nodeLimit=20", "quic=true"}, {"disable", "--yes", "--purge"},
	} {
		_, _ = p.run(t, args...)
	}
	p.fails = errors.New("disk full")
	_, _ = p.run(t, "set", "--yes", "nodeLimit=30")
	const at = "|configmap/kubeedge/zedkube-edge|zedkube edge "
	if want := []string{
		"command|OPERATOR|enable edge" + at + "enable ha=true|ok|<nil>",
		"command|OPERATOR|set edge" + at + "set nodeLimit=20 quic=true|ok|<nil>",
		"command|OPERATOR|disable edge" + at + "disable --purge|ok|<nil>",
		"command|OPERATOR|set edge" + at + "set nodeLimit=30|failed|disk full; if somebody else has just changed the settings, try again",
	}; !slices.Equal(p.audit, want) {
		t.Errorf("audited is\n%s\nwant\n%s", strings.Join(p.audit, "\n"), strings.Join(want, "\n"))
	}
}

// TestATakenPortLeavesNothingThatRuns: also where the namespace, in which alone it can be asked, has to be made first.
func TestATakenPortLeavesNothingThatRuns(t *testing.T) {
	p := &played{objects: map[object.Ref]object.Object{}, taken: errors.New("provided port is already allocated")}
	for range 2 { // the second time the namespace is there
		if out, err := p.run(t, "enable", "--yes"); terminal.ExitCode(err) != terminal.ExitFound || !strings.Contains(err.Error(), "already allocated") {
			t.Errorf("%v\n%s", err, out)
		}
		for r := range p.objects {
			if r.Kind != object.Namespace {
				t.Errorf("there is %s", r)
			}
		}
	}
}

// TestSetLeavesThePermissionsOfTheController: they may be those of a later version than that of the program.
func TestSetLeavesThePermissionsOfTheController(t *testing.T) {
	p := &played{objects: map[object.Ref]object.Object{}}
	if _, err := p.run(t, "enable", "--yes"); err != nil {
		t.Fatal(err)
	}
	later := object.Object{}
	for r := range p.objects {
		if r != cloud.RefSettings {
			p.objects[r] = later
		}
	}
	for _, row := range []struct {
		command string
		changed int // objects but the settings
	}{{"set nodeLimit=20", 0}, {"set controllerImage=registry.example/edge:1", 1}, {"enable", len(p.objects) - 1}} {
		if out, err := p.run(t, append(strings.Fields(row.command), "--yes")...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var changed []object.Ref
		for r, o := range p.objects {
			if r != cloud.RefSettings && len(o) > 0 {
				changed = append(changed, r)
			}
		}
		if len(changed) != row.changed || len(changed) == 1 && changed[0].Kind != object.Deployment {
			t.Errorf("%s changes %v", row.command, changed)
		}
	}
}

// TestDisableKeepsSettingsThatItCannotRead: those of a later version have fields that this one does not know.
func TestDisableKeepsSettingsThatItCannotRead(t *testing.T) {
	p := &played{objects: map[object.Ref]object.Object{}}
	if _, err := p.run(t, "enable", "--yes"); err != nil {
		t.Fatal(err)
	}
	const later = `{"enabled":true,"nodeLimit":20,"later":true}`
	p.objects[cloud.RefSettings] = object.New(cloud.RefSettings).With(object.Map{"data": object.Map{cloud.SettingsAt: later}})
	before := len(p.objects)
	for _, flags := range [][]string{nil, {"--purge", "--force"}} {
		out, err := p.run(t, append([]string{"disable", "--yes"}, flags...)...)
		if err == nil || !strings.Contains(err.Error(), "kubectl -n kubeedge edit configmap zedkube-edge") || !strings.Contains(err.Error(), `unknown field "later"`) {
			t.Errorf("%v: %v\n%s", flags, err, out)
		}
		if now := p.objects[cloud.RefSettings].Text("data", cloud.SettingsAt); now != later || len(p.objects) != before {
			t.Errorf("%v: of %d objects there are %d, with the settings %s", flags, before, len(p.objects), now)
		}
	}
}

func TestStatusTellsProgramsEachSetting(t *testing.T) {
	p := &played{objects: map[object.Ref]object.Object{}}
	if _, err := p.run(t, "enable", "--yes", "serviceType=LoadBalancer", "httpsPort=10202", "advertiseAddress=192.0.2.1,192.0.2.2"); err != nil {
		t.Fatal(err)
	}
	edge := object.Ref{Kind: object.Node, Name: "press-1"}
	p.objects[edge] = object.New(edge).With(object.Map{"metadata": object.Map{"name": "press-1", "labels": object.Map{"node-role.kubernetes.io/edge": ""}}})
	out, err := p.run(t, "status", "-o", "json")
	if err == nil || err.Error() != "there are problems" { // no cloudcore runs
		t.Errorf("%v", err)
	}
	var d document
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	var rows []string
	for _, r := range d.Settings {
		rows = append(rows, strings.Join([]string{r.Name, r.Value, r.Default, r.Allowed, r.Restarts}, ";"))
	}
	if want := []string{
		"ha;false;false;true|false;cloudcore", "serviceType;LoadBalancer;NodePort;NodePort|LoadBalancer;",
		"advertiseAddress;192.0.2.1,192.0.2.2;that of the load balancer;text;cloudcore", "nodeLimit;100;100;number;cloudcore",
		"websocket;true;true;true|false;cloudcore", "https;true;true;true|false;cloudcore", "quic;false;false;true|false;cloudcore", "cloudStream;true;true;true|false;cloudcore",
		"websocketPort;0;10000;number;", "quicPort;0;10001;number;", "httpsPort;10202;10002;number;", "cloudStreamPort;0;10003;number;", "cloudTunnelPort;0;10004;number;",
		"exposeCloudStream;false;false;true|false;", "edgeBlock;100.127.254.0/24;100.127.254.0/24;text;cloudcore",
		"destinationAddress;;the cloudcore that has the tunnel;text;", "destinationPort;0;10003;number;", "logPort;10350;10350;number;", "metricsPort;10250;10250;number;",
	}; len(rows) < len(want) || !slices.Equal(rows[:len(want)], want) {
		t.Errorf("the settings are\n%s", strings.Join(rows, "\n"))
	}
	if !d.Enabled || len(d.Problems) == 0 || len(d.Nodes) != 1 || d.Nodes[0].Name != "press-1" || d.Nodes[0].State != "offline" || !slices.Contains(d.Ports, port{10202, "tcp", "cloudhub-https"}) {
		t.Errorf("it says %+v", d)
	}
}

// TestEnableMovesTheControllerToItsOwnVersion: nothing else does, so that of two programs no one puts back what the other one did.
func TestEnableMovesTheControllerToItsOwnVersion(t *testing.T) {
	p := &played{objects: map[object.Ref]object.Object{}}
	deployment := object.Ref{Kind: object.Deployment, Namespace: cloud.Where, Name: cloud.Controller}
	const own = "docker.io/zedkube/zedkube-edge:"
	for _, row := range []struct {
		version, args, want string
	}{
		{"devel", "enable", own + "latest"},
		{"v1.2.0", "set nodeLimit=20", own + "latest"},
		{"v1.2.0", "enable", own + "v1.2.0"},
		{"v1.3.0-rc.1", "enable", own + "v1.3.0-rc.1"},
		{"v1.2.0", "set nodeLimit=30", own + "v1.3.0-rc.1"},
		{"v1.3.0-4-g0123abc", "enable", own + "latest"},
		{"v1.3.0-dirty", "enable", own + "latest"},
		{"v1.3.0", "enable controllerImage=" + own + "v1.1.0", own + "v1.1.0"},
		{"v1.3.0", "set controllerImage=registry.example/edge:1", "registry.example/edge:1"},
		{"v1.4.0", "enable", "registry.example/edge:1"},
	} {
		p.version = row.version
		if out, err := p.run(t, append(strings.Fields(row.args), "--yes")...); err != nil {
			t.Fatalf("%s: %v\n%s", row.args, err, out)
		}
		spec := p.objects[deployment].At("spec", "template", "spec").(object.Map)
		if got := spec["containers"].([]any)[0].(object.Map)["image"]; got != row.want {
			t.Errorf("%s with %s: the controller is %v, want %s", row.args, row.version, got, row.want)
		}
	}
	out, err := p.run(t, "status", "-o", "json")
	if !strings.Contains(out, "docker.io/zedkube/zedkube-edge of the version that enables it") {
		t.Errorf("%s, %v", out, err)
	}
}
