package edgecmd

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/edge/cloud"
	"github.com/zedkube/zedkube/pkg/edge/join"
	"github.com/zedkube/zedkube/pkg/edge/object"
)

// up is a cluster in which a device may join.
func up(t *testing.T, set ...string) *played {
	t.Helper()
	p := &played{objects: map[object.Ref]object.Object{}}
	if _, err := p.run(t, append([]string{"enable", "--yes", "advertiseAddress=192.0.2.1"}, set...)...); err != nil {
		t.Fatal(err)
	}
	p.audit = nil
	deployment := object.Ref{Kind: object.Deployment, Namespace: cloud.Where, Name: cloud.Name}
	p.objects[deployment] = object.New(deployment).With(object.Map{"status": object.Map{"availableReplicas": 1}})
	encode := base64.StdEncoding.EncodeToString
	p.objects[cloud.RefCA] = object.New(cloud.RefCA).With(object.Map{"data": object.Map{"cadata": encode([]byte("CA")), "cakeydata": encode([]byte("key"))}})
	member := object.Ref{Kind: object.Node, Name: "node-1"}
	p.objects[member] = object.New(member)
	return p
}

func (p *played) record(t *testing.T) join.Record {
	t.Helper()
	data, _ := p.objects[cloud.RefNodes].At("data").(object.Map)
	r, err := join.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhoMayNotJoin(t *testing.T) {
	for _, c := range []struct {
		set   string
		with  func(p *played)
		args  []string
		wrong string
	}{
		{"https=false", nil, []string{"a"}, "https is false"},
		{"", func(p *played) {
			delete(p.objects, object.Ref{Kind: object.Deployment, Namespace: cloud.Where, Name: cloud.Name})
		}, []string{"a"}, "no cloudcore"},
		{"", func(p *played) { delete(p.objects, cloud.RefSettings) }, []string{"a"}, "KubeEdge is off"},
		{"", func(p *played) { delete(p.objects, cloud.RefCA) }, []string{"a"}, "has no authority"},
		{"", nil, []string{"node-1"}, "is a member"},
		{"", nil, []string{"A"}, "no name of a node"},
		{"", nil, []string{"a", "--arch", "mips"}, "amd64 or arm64"},
		{"", nil, []string{"a", "--token-for", "25h"}, "1m to 24h"},
		{"", nil, []string{"a", "--address", "192.0.2.9"}, "no address of edgeBlock"},
		{"", nil, []string{"a", "--label", "node-uuid=x"}, "that of a member"},
		{"", nil, []string{"a", "--bundle", "-", "-o", "json"}, "name a file"},
		{"", func(p *played) { p.fails = errors.New("conflict") }, []string{"a"}, "somebody else has just changed"},
	} {
		p := up(t, slices.DeleteFunc([]string{c.set}, func(s string) bool { return s == "" })...)
		if c.with != nil {
			c.with(p)
		}
		out, err := p.run(t, append([]string{"join", "--yes"}, c.args...)...)
		if err == nil || !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%v: %v\n%s", c.args, err, out)
		}
		if p.objects[cloud.RefNodes] != nil {
			t.Errorf("%v: it is recorded", c.args)
		}
	}
}

// TestProgramsReadStandardOutput: only the archive, or only JSON, is there.
func TestProgramsReadStandardOutput(t *testing.T) {
	p := up(t)
	out, err := p.stdout(t, "join", "a", "--yes", "--bundle", "-")
	if err != nil {
		t.Fatal(err)
	}
	if z, err := gzip.NewReader(strings.NewReader(out)); err != nil || z.Close() != nil {
		t.Errorf("%v: it is %.80q", err, out)
	}
	out, err = p.stdout(t, "join", "a", "--yes", "-o", "json", "--token-for", "10m")
	var d Joining
	if err := errors.Join(err, json.Unmarshal([]byte(out), &d)); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	until := p.record(t).Asked["a"].TokenUntil
	if d.Address != "100.127.254.1" || d.Token != join.Token([]byte("CA"), []byte("key"), "a", until) || time.Until(until) > 10*time.Minute || len(d.Notes) != 1 || !strings.Contains(d.Command, "join.sh") {
		t.Errorf("it says %+v", d)
	}
	if _, err := p.run(t, "leave", "a", "--yes"); err != nil {
		t.Error(err)
	}
	const at = "|configmap/kubeedge/zedkube-edge-nodes|zedkube edge "
	if want := []string{"command|OPERATOR|join edge" + at + "join a|ok|<nil>", "command|OPERATOR|join edge" + at + "join a|ok|<nil>", "command|OPERATOR|leave edge" + at + "leave a|ok|<nil>"}; !slices.Equal(p.audit, want) {
		t.Errorf("audited is %q", p.audit)
	}
	if r := p.record(t); len(r.Asked) > 0 || r.Left["a"].Since.IsZero() {
		t.Errorf("the record is %v", r)
	}
}

func (p *played) stdout(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, people bytes.Buffer
	c := New(p.program())
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&people)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestEdgecoreIsForTheDevice(t *testing.T) {
	p, self := up(t), os.Args[0]
	other := map[bool]string{true: "amd64", false: "arm64"}[strings.Contains(runtime.GOARCH, "arm64")]
	if _, err := p.run(t, "join", "a", "--yes", "--arch", other, "--edgecore", self, "--bundle", filepath.Join(t.TempDir(), "b")); err == nil || !strings.Contains(err.Error(), "not for "+other) {
		t.Errorf("edgecore of another machine: %v", err)
	}
	file := filepath.Join(t.TempDir(), "b")
	if _, err := p.run(t, "join", "a", "--yes", "--arch", runtime.GOARCH, "--edgecore", self, "--bundle", file); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() < 1<<20 {
		t.Errorf("the bundle is %v, %v", info, err)
	}
}

// TestLeaveSaysThatANameIsClosedOnceItIs: what closes it is the controller, which may not run.
func TestLeaveSaysThatANameIsClosedOnceItIs(t *testing.T) {
	for _, row := range []struct {
		controls bool
		name     string // in the role
		lost     bool
		open     bool
	}{
		{true, "a", true, false}, {true, "a", false, false}, {false, "a", true, true}, {false, "a", false, true}, {false, "ab", true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := up(t)
			if _, err := p.run(t, "join", "a", "--yes"); err != nil {
				t.Fatal(err)
			}
			rules := []any{object.Map{"resources": []any{"nodes"}}, object.Map{"resourceNames": []any{"system:node:b", "system:node:" + row.name}}}
			p.objects[cloud.RefRole] = object.New(cloud.RefRole).With(object.Map{"rules": rules})
			if row.controls {
				p.closes = time.Now().Add(3500 * time.Millisecond)
			}
			begun := time.Now()
			out, err := p.run(t, append([]string{"leave", "a", "--yes"}, slices.Repeat([]string{"--lost"}, map[bool]int{true: 1}[row.lost])...)...)
			told := strings.Contains(out, "its name is refused") || strings.Contains(out, "a has left")
			if told == row.open || (terminal.ExitCode(err) == terminal.ExitFound) != row.open || row.open && !strings.Contains(err.Error(), "can still register") {
				t.Errorf("%+v: %v\n%s", row, err, out)
			}
			if took := time.Since(begun); row.controls && took != 4*time.Second {
				t.Errorf("%+v: it took %s", row, took)
			}
			if len(p.record(t).Asked) > 0 {
				t.Errorf("%+v: it is still in the record", row)
			}
		})
	}
}

// TestALeaveEndsWithoutANode: a device that is alive may register until its name is closed.
func TestALeaveEndsWithoutANode(t *testing.T) {
	node := object.Ref{Kind: object.Node, Name: "a"}
	member := object.New(node).With(object.Map{"metadata": object.Map{"name": "a", "uid": "3", "labels": object.Map{"node-role.kubernetes.io/control-plane": "true"}}})
	for name, row := range map[string]struct {
		args  string
		at    time.Duration // after the deletion of its Node
		next  object.Object
		stays bool
		wrong string
	}{
		"lost, and it registers again":  {"leave a --lost --yes", time.Second, edgeNode("a", "2"), false, ""},
		"when no controller closes it":  {"leave a --lost --yes", 5 * time.Second, edgeNode("a", "2"), true, "can still register"},
		"a member that takes the name":  {"leave a --lost --yes", time.Second, member, true, ""},
		"one that does not":             {"leave a --lost --yes", 0, nil, false, ""},
		"it registers before it is out": {"leave a", 0, nil, true, "has just registered"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := up(t)
			if _, err := p.run(t, "join", "a", "--yes"); err != nil {
				t.Fatal(err)
			}
			p.objects[cloud.RefRole] = object.New(cloud.RefRole).With(object.Map{"rules": []any{object.Map{"resourceNames": []any{"system:node:a"}}}})
			if row.wrong != "can still register" {
				p.closes = time.Now().Add(3500 * time.Millisecond)
			}
			if strings.Contains(row.args, "--yes") {
				p.objects[node] = edgeNode("a", "1")
			}
			p.confirmed = func() { p.objects[node] = edgeNode("a", "1") }
			p.deleted = func(r object.Ref) {
				if p.deleted = nil; r != node || row.next == nil {
					return
				}
				at := time.Now().Add(row.at)
				p.asked = func() {
					if !time.Now().Before(at) {
						p.objects[node], p.asked = row.next, nil
					}
				}
			}
			out, err := p.run(t, strings.Fields(row.args)...)
			if (p.objects[node] != nil) != row.stays || (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
				t.Errorf("%s: Node %v, %v\n%s", name, p.objects[node], err, out)
			}
			if _, asked := p.record(t).Asked["a"]; asked != (row.wrong == "has just registered") {
				t.Errorf("%s: asked to join: %t", name, asked)
			}
		})
	}
}

// TestAPurgeIsForNoEdgeNode: what one that is offline needs to connect again is removed, too.
func TestAPurgeIsForNoEdgeNode(t *testing.T) {
	const again = "have to join again: a"
	for name, row := range map[string]struct {
		args    string
		left    bool
		refused string
		says    string
	}{
		"one that was asked":                 {"disable --purge --yes", false, again, ""},
		"one that has left":                  {"disable --purge --yes", true, "", "KubeEdge is off"},
		"it goes on later without --purge":   {"disable --yes", false, "", "KubeEdge is off"},
		"somebody wants it":                  {"disable --purge --force --yes", false, "", again},
		"nobody has to where nobody is left": {"disable --purge --dry-run", true, "", "Nothing was changed"},
	} {
		p := up(t)
		if _, err := p.run(t, "join", "a", "--yes"); err != nil {
			t.Fatal(err)
		}
		if row.left {
			if _, err := p.run(t, "leave", "a", "--yes"); err != nil {
				t.Fatal(err)
			}
		}
		out, err := p.run(t, strings.Fields(row.args)...)
		if !strings.Contains(out, row.says) || (err == nil) != (row.refused == "") || row.left && strings.Contains(out, again) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if err != nil && (terminal.ExitCode(err) != terminal.ExitFound || !strings.Contains(err.Error(), row.refused)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSetCutsNobodyOffUnasked: the files of edge nodes go on naming what they were given.
func TestSetCutsNobodyOffUnasked(t *testing.T) {
	p := up(t)
	if out, err := p.run(t, "set", "--yes", "websocketPort=31200"); err != nil {
		t.Errorf("before anybody was asked: %v\n%s", err, out)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := p.run(t, "join", name, "--yes"); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range []string{"set websocketPort=31100 --yes", "set websocketPort=31100 --dry-run", "enable websocketPort=31100 --yes"} {
		out, err := p.run(t, strings.Fields(args)...)
		if terminal.ExitCode(err) != terminal.ExitFound || !strings.Contains(err.Error(), "asked to join (2) have in their own files: port 31200/tcp (cloudhub).") || !strings.Contains(err.Error(), "--force") {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
	if text := p.objects[cloud.RefSettings].Text("data", cloud.SettingsAt); !strings.Contains(text, `"websocketPort": 31200`) {
		t.Errorf("what was refused is written: %s", text)
	}
	out, err := p.run(t, "set", "websocketPort=31100", "--force", "--yes")
	if err != nil || !strings.Contains(out, "Warning: this takes away") || !strings.Contains(out, "The settings are written.") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := p.run(t, "disable", "--yes"); err != nil { // who is to connect again once it is on
		t.Fatal(err)
	}
	if out, err := p.run(t, "set", "websocketPort=31300", "--yes"); terminal.ExitCode(err) != terminal.ExitFound {
		t.Errorf("while it is off: %v\n%s", err, out)
	}
}

// TestADeviceThatDoesNotSayWhatItIsCanLeave: the address that join gave it tells it from a member, which has none of these.
func TestADeviceThatDoesNotSayWhatItIsCanLeave(t *testing.T) {
	node := object.Ref{Kind: object.Node, Name: "a"}
	for name, row := range map[string]struct {
		address, label, args string
		takenOver, stays     bool
	}{
		"it leaves":                         {"100.127.254.1", "site", "leave a", false, false},
		"it is lost":                        {"100.127.254.1", "site", "leave a --lost", false, false},
		"all is purged":                     {"100.127.254.1", "site", "disable --purge --force", false, false},
		"a member with its own address":     {"192.0.2.2", "site", "leave a", false, true},
		"a purge beside that":               {"192.0.2.2", "site", "disable --purge --force", false, true},
		"one without an address":            {"", "site", "leave a --lost", false, true},
		"one with the label of a device":    {"100.127.254.1", "node-uuid", "leave a --lost", false, true},
		"a purge beside that one":           {"100.127.254.1", "node-uuid", "disable --purge --force", false, true},
		"an address that nobody gave":       {"100.127.254.1", "site", "leave a --lost", true, true},
		"an edge node from before a record": {"100.127.254.1", join.EdgeRole, "leave a --lost", true, false},
	} {
		p := up(t)
		if _, err := p.run(t, "join", "a", "--yes"); err != nil {
			t.Fatal(err)
		}
		if row.takenOver {
			p.objects[cloud.RefNodes] = cloud.RecordObject(object.Map{"a": `{"address":"100.127.254.1","takenOver":true}`})
		}
		p.objects[node] = object.New(node).With(object.Map{
			"metadata": object.Map{"name": "a", "uid": "1", "labels": object.Map{row.label: ""}},
			"status":   object.Map{"nodeInfo": object.Map{"kubeletVersion": "v1.34.4+k3s1"}, "addresses": []any{object.Map{"type": "InternalIP", "address": row.address}}},
		})
		p.closes = time.Now()
		out, err := p.run(t, append(strings.Fields(row.args), "--yes")...)
		if refused := row.stays && strings.HasPrefix(row.args, "leave"); (err != nil) != refused || refused && !strings.Contains(err.Error(), "is a member") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if (p.objects[node] != nil) != row.stays {
			t.Errorf("%s: its Node is %v\n%s", name, p.objects[node], out)
		}
	}
}

func TestWhoMayNotLeave(t *testing.T) {
	for name, wrong := range map[string]string{"node-1": "is a member", "nobody": "no edge node nobody", "A": "no name of a node"} {
		if out, err := up(t).run(t, "leave", name, "--yes", "--lost"); err == nil || !strings.Contains(err.Error(), wrong) || wrong != "no name of a node" && terminal.ExitCode(err) != terminal.ExitFound {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestAPurgeDeletesNoMember: one may have taken the name of an edge node since the plan.
func TestAPurgeDeletesNoMember(t *testing.T) {
	node := object.Ref{Kind: object.Node, Name: "a"}
	p := up(t)
	p.objects[node] = edgeNode("a", "1")
	p.confirmed = func() {
		p.objects[node] = object.New(node).With(object.Map{"metadata": object.Map{"name": "a", "uid": "2", "labels": object.Map{"node-role.kubernetes.io/control-plane": "true"}}})
	}
	if out, err := p.run(t, "disable", "--purge", "--force"); err != nil || p.objects[node] == nil {
		t.Errorf("the Node is %v; %v\n%s", p.objects[node], err, out)
	}
	p.objects[node] = edgeNode("a", "1")
	if out, err := p.run(t, "disable", "--purge", "--force", "--yes"); err != nil || p.objects[node] != nil {
		t.Errorf("of an edge node it is %v; %v\n%s", p.objects[node], err, out)
	}
}
