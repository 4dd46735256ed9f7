package membercmd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sbinary"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

const goodEtcd = `etcd_server_version{server_version="3.6.4"} 1
etcd_network_known_peers{Local="1",Remote="1"} 1
etcd_server_is_learner 0
etcd_server_has_leader 1
etcd_server_is_leader 1
etcd_mvcc_db_total_size_in_bytes 1.048576e+06
etcd_server_quota_backend_bytes 2.147483648e+09
`

func k3sScript(version string) string {
	return "#!/bin/sh\necho \"k3s version " + version + " (0123abcd)\"\n"
}

func hexSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// k3sDevice is a server with everything in order, and how its status is found out.
func k3sDevice(t *testing.T) k3sLook {
	t.Helper()
	root := t.TempDir()
	data := strings.Repeat("x", 1024)
	sum := sha256.Sum256([]byte(data))
	const bin = "persist/vault/kube/k3s/bin/k3s"
	cmdtest.LayFiles(t, root, map[string]string{
		bin: k3sScript("v1.33.3+k3s1"),
		"persist/vault/kube/rancher/k3s/server/db/etcd/name":               "x",
		"persist/vault/kube/rancher/k3s/server/db/snapshots/zedkube-n1-17": data + string(sum[:]),
		"run/zedkube/K3sVersionStatus/global.json":                         `{"Version":"v1.33.3+k3s1","Running":"v1.33.3+k3s1","OnDisk":true,"Wanted":"v1.34.2+k3s1","Held":true,"Why":"The setting is held."}`,
		"run/zedkube/KubeLifecycle/global.json":                            `{"Phase":"Idle","Reason":"k3s stays as it is."}`,
		"persist/status/zedkube/KubeNodeConditions/global.json":            `{"KubeVirt":"v1.7.3","Longhorn":"v1.9.1"}`,
	})
	if err := os.Chmod(filepath.Join(root, bin), 0o755); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := goodEtcd
		if r.URL.Path == "/health" {
			text = `{"health":"true","reason":""}`
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(s.Close)
	p := device.Options{Root: root}.Paths()
	files := k3sFiles(p)
	files.Need = 1
	return k3sLook{Paths: p, files: files, metrics: s.URL, deprecated: func(context.Context) (types.DeprecatedAPIs, error) {
		return types.DeprecatedAPIs{StartedAt: time.Now().Add(-48 * time.Hour), APIs: []types.DeprecatedAPI{{Version: "v1", Resource: "endpoints"}}}, nil
	}}
}

func drawn(s k3sStatus) string { return strings.Join(terminal.Draw(200, false, s.put), "\n") }

func TestAServerInOrderHasNothingAgainstAChange(t *testing.T) {
	s := k3sDevice(t).at(t.Context(), time.Now())
	if len(s.Against)+len(s.Unknown) != 0 || s.Next != "v1.34.2+k3s1" {
		t.Errorf("against %s: %q, not known: %q", s.Next, s.Against, s.Unknown)
	}
	got := drawn(s)
	for _, want := range []string{
		"runs        v1.33.3+k3s1", "on disk     v1.33.3+k3s1 /", "held        The setting is held.", "staged      none",
		"etcd        3.6.4, 1 member, 1.0Mi of 2.0Gi", "snapshot    zedkube-n1-17", "components  kubevirt v1.7.3, longhorn v1.9.1", "APIs        1 deprecated API in use",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}

func TestTheStatusOfK3sSaysWhatTheAgentAndTheKubeContainerSay(t *testing.T) {
	at := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		is    types.KubeLifecycle
		words []string
		not   []string
	}{
		"it stays": {types.KubeLifecycle{Phase: types.LifecycleIdle, Reason: "k3s stays as it is."}, []string{"phase       Idle: k3s stays as it is."}, []string{"commit ", "failed ", "rollback ", "announced "}},
		"it is stuck on the last server": {
			types.KubeLifecycle{
				Phase: types.LifecycleStuck, Reason: "The API server does not answer.", Since: at, To: "v1.34.2+k3s1", Commit: "This node is the last server.",
				Rollback: types.K3sRollback{To: "v1.33.3+k3s1", Lacks: "The data is of it."}, Nodes: []types.KubeLifecycleNode{{Name: "n1", Version: "v1.34.2+k3s1", State: "done"}},
			},
			[]string{"phase       Stuck: The API server does not answer.", "since       2026-11-01 10:00:00Z", "to          v1.34.2+k3s1", "commit      This node is the last server.", "rollback    v1.33.3+k3s1 The data is of it.", "1 n1 v1.34.2+k3s1 done"},
			nil,
		},
		"it failed, and waits": {
			types.KubeLifecycle{
				Phase: types.LifecycleWaits, Reason: "It failed.", Failed: types.K3sFailure{To: "v1.34.2+k3s1", Why: "It did not start.", At: at},
				Preconditions: []types.KubeLifecyclePrecondition{{Name: "Quorum", Holds: true}, {Name: "NotFailed", Reason: "It failed.", Release: true}},
			},
			[]string{"failed      v1.34.2+k3s1, 2026-11-01 10:00:00Z", ": It did not start.", "holds Quorum", "lacks NotFailed: It failed. (zedkube k3s release does without)"},
			[]string{"rollback "},
		},
		"a restart waits": {
			types.KubeLifecycle{Phase: types.LifecycleIdle, Restart: types.K3sRestartStatus{
				Reason: "k3s is not restarted yet.", Announced: "etcd has no quorum", Failed: "The last one renewed none.", Preconditions: []types.KubeLifecyclePrecondition{{Name: "Turn", Reason: "Node n2 is first."}},
			}},
			[]string{"restart     The last one renewed none.", "restart     k3s is not restarted yet.", "announced   etcd has no quorum", "lacks Turn: Node n2 is first."},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := k3sDevice(t)
			write(t, l.TopicFile(device.Self, "KubeLifecycle"), row.is)
			write(t, l.TopicFile("kube-init", "KubeInitStatus"), types.KubeInitStatus{State: "BACKOFF\x1b", LastError: "no space"})
			write(t, l.PersistentFile("zedagent", "KubeClusterUpdateStatus"), types.KubeClusterUpdateStatus{Component: types.KubeCompLonghorn, Status: types.KubeCompUpdateFailed})
			got := drawn(l.at(t.Context(), time.Now()))
			for _, want := range append(row.words, "in state BACKOFF", "Its last error: no space", "update of component longhorn failed, and it begins no other one") {
				if !strings.Contains(got, want) {
					t.Errorf("there is no %q in\n%s", want, got)
				}
			}
			for _, word := range append(row.not, "\x1b") {
				if strings.Contains(got, word) {
					t.Errorf("there is %q in\n%s", word, got)
				}
			}
		})
	}
}

func TestWhatIsAgainstAChangeOfK3sIsNamed(t *testing.T) {
	lay := func(t *testing.T, l k3sLook, file, text string) {
		cmdtest.LayFiles(t, l.Root, map[string]string{file: text})
	}
	removed := func(context.Context) (types.DeprecatedAPIs, error) {
		return types.DeprecatedAPIs{StartedAt: time.Now().Add(-48 * time.Hour), APIs: []types.DeprecatedAPI{{Group: "x.io", Version: "v1", Resource: "things", RemovedIn: "1.34"}}}, nil
	}
	started := func(context.Context) (types.DeprecatedAPIs, error) {
		return types.DeprecatedAPIs{StartedAt: time.Now().Add(-time.Hour)}, nil
	}
	const snapshot = "persist/vault/kube/rancher/k3s/server/db/snapshots/zedkube-n1-17"
	for name, row := range map[string]struct {
		change           func(*testing.T, *k3sLook)
		against, unknown string
	}{
		"KubeVirt is too old": {func(t *testing.T, l *k3sLook) {
			lay(t, *l, "persist/status/zedkube/KubeNodeConditions/global.json", `{"KubeVirt":"v1.6.0","Longhorn":"v1.9.1"}`)
		}, "kubevirt v1.6.0 supports Kubernetes up to 1.33", ""},
		"KubeVirt is not known": {func(t *testing.T, l *k3sLook) {
			lay(t, *l, "persist/status/zedkube/KubeNodeConditions/global.json", `{"Longhorn":"v1.9.1"}`)
		}, "", "the version of kubevirt is not known"},
		"another binary is on disk": {func(t *testing.T, l *k3sLook) {
			const bin = "persist/vault/kube/k3s/bin/k3s"
			lay(t, *l, bin, k3sScript("v1.34.2+k3s1"))
			if err := os.Chmod(filepath.Join(l.Root, bin), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "the binary on disk is v1.34.2+k3s1, and v1.33.3+k3s1 runs", ""},
		"a removed API is in use": {func(_ *testing.T, l *k3sLook) { l.deprecated = removed }, "things.v1.x.io is in use, and removed in Kubernetes 1.34", ""},
		"the API server is young": {func(_ *testing.T, l *k3sLook) { l.deprecated = started }, "", "less than 24 hours"},
		"the API server is silent": {func(_ *testing.T, l *k3sLook) {
			l.deprecated = func(context.Context) (d types.DeprecatedAPIs, err error) { return d, types.ErrNoAPI }
		}, "", types.ErrNoAPI.Error()},
		"etcd is silent":           {func(_ *testing.T, l *k3sLook) { l.metrics = "http://127.0.0.1:1" }, "", "ask etcd for its health"},
		"etcd is another device's": {func(_ *testing.T, l *k3sLook) { l.metrics = "" }, "", "etcd is not asked on another root"},
		"a snapshot is damaged":    {func(t *testing.T, l *k3sLook) { lay(t, *l, snapshot, strings.Repeat("x", 1056)) }, "", "does not match its SHA-256"},
		"a snapshot is old": {func(t *testing.T, l *k3sLook) {
			old := time.Now().Add(-31 * time.Minute)
			if err := os.Chtimes(filepath.Join(l.Root, snapshot), old, old); err != nil {
				t.Fatal(err)
			}
		}, "the newest snapshot of etcd is of ", ""},
		"there is no snapshot": {func(t *testing.T, l *k3sLook) {
			if err := os.Remove(filepath.Join(l.Root, snapshot)); err != nil {
				t.Fatal(err)
			}
		}, "there is no snapshot of etcd", ""},
		"the disk is full": {func(_ *testing.T, l *k3sLook) { l.files.Need = 1 << 62 }, "MiB are free for k3s", ""},
		"there is no status": {func(t *testing.T, l *k3sLook) {
			lay(t, *l, "run/zedkube/K3sVersionStatus/global.json", "{")
		}, "", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			l := k3sDevice(t)
			row.change(t, &l)
			s := l.at(t.Context(), time.Now())
			against, unknown := strings.Join(s.Against, "\n"), strings.Join(s.Unknown, "\n")
			if !strings.Contains(against, row.against) || (against == "") != (row.against == "") {
				t.Errorf("against it is %q, want %q", against, row.against)
			}
			if !strings.Contains(unknown, row.unknown) || (unknown == "") != (row.unknown == "") {
				t.Errorf("not known is %q, want %q", unknown, row.unknown)
			}
			if got := drawn(s); row.against != "" && !strings.Contains(got, "against "+s.Next+": ") || row.unknown != "" && !strings.Contains(got, "unknown: ") {
				t.Errorf("it is not shown:\n%s", got)
			}
		})
	}
}

func TestWithoutK3sItIsSaidWhatIsNotKnown(t *testing.T) {
	l := k3sDevice(t)
	if err := errors.Join(os.RemoveAll(filepath.Join(l.Root, "persist")), os.RemoveAll(filepath.Join(l.Root, "run/zedkube"))); err != nil {
		t.Fatal(err)
	}
	s := l.at(t.Context(), time.Now())
	if got := strings.Join(s.Unknown, "\n"); !strings.Contains(got, "there is no k3s binary") || !strings.Contains(got, "the version that k3s would change to") || s.Next != "" {
		t.Errorf("%s, %q", s.Next, got)
	}
}

func TestTheStagedVersionIsJudgedFirst(t *testing.T) {
	l := k3sDevice(t)
	text := k3sScript("v1.34.9+k3s1")
	g := staging{files: l.files, file: filepath.Join(t.TempDir(), "k3s"), version: "v1.34.9+k3s1", sum: hexSum(text)}
	cmdtest.LayFiles(t, "/", map[string]string{g.file: text})
	if _, err := g.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := l.at(t.Context(), time.Now()); s.Next != "v1.34.9+k3s1" || !strings.Contains(drawn(s), "staged      v1.34.9+k3s1, ") {
		t.Errorf("it is about %s:\n%s", s.Next, drawn(s))
	}
	// What runs already is no change: then it is about the next minor version.
	l = k3sDevice(t)
	cmdtest.LayFiles(t, l.Root, map[string]string{"run/zedkube/K3sVersionStatus/global.json": `{"Running":"v1.33.3+k3s1","Wanted":"v1.33.3+k3s1"}`})
	if s := l.at(t.Context(), time.Now()); s.Next != "v1.34" {
		t.Errorf("it is about %s", s.Next)
	}
}

func TestABinaryIsStagedFromAFileOrFromTheRelease(t *testing.T) {
	text := k3sScript("v1.34.2+k3s1")
	asked := 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if strings.HasSuffix(r.URL.Path, ".txt") {
			fmt.Fprintf(w, "%s  k3s\n", hexSum(text))
			return
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "k3s")
	cmdtest.LayFiles(t, "/", map[string]string{file: text})
	for name, row := range map[string]struct {
		file, version, sum string
		need               uint64
		asked              int
		why                string
	}{
		"a file with a sum":             {file, "v1.34.2+k3s1", hexSum(text), 1, 0, ""},
		"a file with the release's sum": {file, "v1.34.2+k3s1", "", 1, 1, ""},
		"the release":                   {"", "v1.34.2+k3s1", "", 1, 2, ""},
		"another version":               {file, "v1.34.3+k3s1", hexSum(text), 1, 0, "it is k3s v1.34.2+k3s1"},
		"no version":                    {file, "latest", hexSum(text), 1, 0, "it is not a version"},
		"no sum":                        {file, "v1.34.2+k3s1", "abc", 1, 0, "--sha256: it is not a SHA-256"},
		"no file":                       {file + "x", "v1.34.2+k3s1", hexSum(text), 1, 0, "no such file"},
		"no space, nothing downloaded":  {"", "v1.34.2+k3s1", "", 1 << 62, 0, "MiB are free"},
	} {
		t.Run(name, func(t *testing.T) {
			asked = 0
			g := staging{files: k3sDevice(t).files, releases: k3sbinary.Releases{URL: s.URL, Arch: "amd64", Client: s.Client()}, file: row.file, version: row.version, sum: row.sum}
			g.files.Need = row.need
			got, err := g.run(t.Context())
			if (err == nil) != (row.why == "") || err != nil && !strings.Contains(err.Error(), row.why) {
				t.Errorf("%v, want %q", err, row.why)
			}
			if asked != row.asked || (err == nil) != (got.Version == row.version) {
				t.Errorf("%d requests, want %d; staged is %+v", asked, row.asked, got)
			}
		})
	}
}
