package cli

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/cmdtest"
)

// answeringAPI is a kubeconfig of an API server that has Events and issued kubeconfigs.
func answeringAPI(t *testing.T) (kubeconfig string) {
	t.Helper()
	type object = map[string]any
	meta := func(namespace, name string, age time.Duration, annotations object) object {
		return object{"namespace": namespace, "name": name, "uid": name, "creationTimestamp": cmdtest.Ago(age).Format(time.RFC3339), "annotations": annotations}
	}
	issued := func(name, role, note string, age time.Duration) object {
		return object{"metadata": meta("", "zedkube-kubeconfig-"+name, age, object{"zedkube.github.io/kubeconfig": note}), "roleRef": object{"kind": "ClusterRole", "name": role}}
	}
	event := func(kind, name, reason, message string, count int, age time.Duration) object {
		return object{
			"metadata": meta("eve-kube-app", name+"."+strings.ToLower(reason), age, nil), "type": "Warning", "reason": reason, "message": message, "count": count,
			"lastTimestamp": cmdtest.Ago(age).Format(time.RFC3339), "source": object{"component": "kubelet", "host": "quay-east"},
			"involvedObject": object{"kind": kind, "namespace": "eve-kube-app", "name": name},
		}
	}
	lists := map[string]object{
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": {"kind": "ClusterRoleBindingList", "apiVersion": "rbac.authorization.k8s.io/v1", "items": []any{
			issued("x7k2p", "view", `{"node":"node-1","from":"root, uid 0, pid 4711 (zedkube)","reason":"ticket 4711: a camera does not come up after the update of the night","for":"1h"}`, 20*time.Minute),
			issued("q9d4m", "edit", `{"node":"node-2","from":"root, uid 0, pid 812 (zedkube)","reason":"a new dashboard","for":"24h"}`, 5*time.Hour),
		}},
		"/api/v1/events involvedObject.kind=Node,involvedObject.name=quay-east": {"kind": "EventList", "apiVersion": "v1", "items": []any{
			event("Node", "quay-east", "NodeNotReady", "Node quay-east status is now: NodeNotReady", 1, 40*time.Minute),
		}},
		"/api/v1/events involvedObject.kind=Pod": {"kind": "EventList", "apiVersion": "v1", "items": []any{
			event("Pod", "camera-inspection-line-3-9f27b-4q8zt2", "BackOff", "Back-off restarting failed container main in pod camera-inspection-line-3-9f27b-4q8zt2", 12, time.Minute),
		}},
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list, known := lists[strings.TrimSpace(r.URL.Path+" "+r.URL.Query().Get("fieldSelector"))]
		if !known {
			http.NotFound(w, r)
			return
		}
		list["metadata"] = object{"resourceVersion": "7"}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(server.Close)
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	kubeconfig = filepath.Join(t.TempDir(), "k3s.yaml")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: c\n  cluster: {certificate-authority-data: " + authority + ", server: '" + server.URL +
		"'}\ncontexts:\n- name: c\n  context: {cluster: c, user: u}\nusers:\n- name: u\n  user: {token: t}\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// lists are the commands that list, with the kinds of what they list.
var lists = map[string]string{
	"nodes": "node", "apps": "app", "volumes": "volume", "audit": "operation", "topics": "topic", "k3s certs": "certificate", "kubeconfig list": "kubeconfig", "events": "event",
	"top --once": "node", "top pods --once --all": "pod", "top containers --once --all": "container", "status": "problem|app|node", "doctor --only agent,files": "check", "drain status": "node", "cluster": "cluster",
}

func TestEveryListUnderstandsTheOptionsOfKubectl(t *testing.T) {
	root, api := filepath.Join(t.TempDir(), "device"), answeringAPI(t)
	copiedDevice(t, root)
	run := func(command string, more ...string) string {
		out, said, code := runCommand(t, append(append([]string{"--root", root, "--kubeconfig", api}, strings.Fields(command)...), more...)...)
		if out == "" {
			t.Errorf("zedkube %s %q: exit code %d\n%s", command, more, code, said)
		}
		return out
	}
	for command, kind := range lists {
		if table, wide := run(command), run(command, "-o", "wide"); table != wide && !strings.HasPrefix(command, "top") { // whose ages go on
			t.Errorf("zedkube %s in a pipe and -o wide:\n%s\n%s", command, table, wide)
		}
		line := regexp.MustCompile(`^(` + kind + `)/\S+$`)
		names := run(command, "-o", "name")
		for name := range strings.Lines(names) {
			if !line.MatchString(strings.TrimSpace(name)) {
				t.Errorf("zedkube %s -o name: %q", command, name)
			}
		}
		if command == "drain status" || command == "cluster" || command == "status" {
			continue // one thing, of which -o json has no list
		}
		var document struct {
			Kind  string
			Items *[]any
		}
		if err := json.Unmarshal([]byte(run(command, "-o", "json")), &document); err != nil || document.Items == nil || len(*document.Items) != strings.Count(names, "\n") {
			t.Errorf("zedkube %s -o json has no Items for the names, %v:\n%s", command, err, names)
		}
	}
}

func TestTopSortsByTheColumnsOfItsTable(t *testing.T) {
	root := filepath.Join(t.TempDir(), "device")
	copiedDevice(t, root)
	if out, said, code := runCommand(t, "--root", root, "top", "pods", "--all", "--once", "--no-headers", "--sort-by", "RX/s"); code != 0 || strings.Contains(out, "MEMORY") {
		t.Errorf("by a column without titles: exit code %d, %s\n%s", code, said, out)
	}
	if _, said, code := runCommand(t, "--root", root, "top", "pods", "--sort-by", "CPU%"); code != 1 || !strings.Contains(said, "want one of NAME, CPU, MEMORY, RX/s, TX/s, DISK, AGE") {
		t.Errorf("a column that only nodes have: exit code %d, %s", code, said)
	}
}

func TestEventsWithoutAnAPIServerSayWhatIsKnown(t *testing.T) {
	root := filepath.Join(t.TempDir(), "device")
	copiedDevice(t, root)
	out, said, code := runCommand(t, "--root", root, "--kubeconfig", "/no/k3s.yaml", "events")
	if out != "" || code != 2 || !strings.Contains(said, "Only the API server has Events") || !strings.Contains(said, "zedkube audit --since 1h") || !strings.Contains(said, "zedkube status") {
		t.Errorf("exit code %d, %s\n%s", code, out, said)
	}
}
