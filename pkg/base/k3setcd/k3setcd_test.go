package k3setcd

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// healthy are the metrics of the second of three servers, as etcd 3.6 writes them.
const healthy = `# TYPE etcd_server_version gauge
etcd_server_version{server_version="3.6.4"} 1
etcd_network_known_peers{Local="1",Remote="1"} 1
etcd_network_known_peers{Local="1",Remote="2"} 1
etcd_network_known_peers{Local="1",Remote="3"} 1
etcd_network_known_peers{Local="1",Remote="9"} 0
etcd_network_active_peers{Local="1",Remote="2"} 1
etcd_network_active_peers{Local="1",Remote="3"} 1
etcd_server_is_learner 0
etcd_server_has_leader 1
etcd_server_is_leader 1
etcd_mvcc_db_total_size_in_bytes 1.048576e+06
etcd_server_quota_backend_bytes 2.147483648e+09
`

// before36 are those that etcd 3.5.21 wrote after its start, while one of three servers was off.
const before36 = `etcd_network_active_peers{Local="bdae9bbc11dd390d",Remote="2943212f5e2cf73"} 1
etcd_network_peer_round_trip_time_seconds_bucket{To="3760a4ec3b84f7fa",le="0.0001"} 8
etcd_network_peer_round_trip_time_seconds_count{To="2943212f5e2cf73"} 2
etcd_network_peer_round_trip_time_seconds_count{To="3760a4ec3b84f7fa"} 8
etcd_server_has_leader 1
etcd_server_is_leader 0
etcd_server_is_learner 0
etcd_mvcc_db_total_size_in_bytes 20480
etcd_server_quota_backend_bytes 2.147483648e+09
etcd_server_version{server_version="3.5.21"} 1
`

// etcd answers as etcd does.
func etcd(t *testing.T, code int, health, metrics string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			fmt.Fprint(w, metrics)
			return
		}
		w.WriteHeader(code)
		fmt.Fprint(w, health)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestWhatEtcdSaysOfItself(t *testing.T) {
	h, err := Look(t.Context(), etcd(t, 200, `{"health":"true","reason":""}`, healthy))
	if err != nil {
		t.Fatal(err)
	}
	want := Health{Version: "3.6.4", Members: 3, Connected: 2, HasLeader: true, Leader: true, Size: 1 << 20, Quota: 2 << 30}
	if d := cmp.Diff(want, h); d != "" {
		t.Error(d)
	}
}

func TestWhyK3sShouldNotBeStopped(t *testing.T) {
	const ok = `{"health":"true","reason":""}`
	for name, row := range map[string]struct {
		code            int
		health, metrics string
		why             string
	}{
		"nothing is against it":        {200, ok, healthy, ""},
		"an alarm":                     {503, `{"health":"false","reason":"ALARM NOSPACE"}`, healthy, "etcd reports ALARM NOSPACE"},
		"no quorum":                    {503, `{"health":"false","reason":"RAFT NO LEADER"}`, healthy, "etcd reports RAFT NO LEADER"},
		"no reason":                    {503, `{"health":"false"}`, healthy, "etcd reports HTTP 503"},
		"an odd answer":                {202, ok, healthy, "etcd reports HTTP 202"},
		"no leader":                    {200, ok, strings.Replace(healthy, "has_leader 1", "has_leader 0", 1), "etcd has no leader"},
		"a learner":                    {200, ok, strings.Replace(healthy, "is_learner 0", "is_learner 1", 1), "is a learner"},
		"one member is away":           {200, ok, strings.Replace(healthy, `active_peers{Local="1",Remote="3"} 1`, `active_peers{Local="1",Remote="3"} 0`, 1), "connected with 1 of 2 other members"},
		"a database that is full soon": {200, ok, strings.Replace(healthy, "1.048576e+06", "1.72e+09", 1), "has 1640 MiB of the 2048 MiB"},
		"3.5, one was never connected": {200, ok, before36, "connected with 1 of 2 other members"},
		"3.5, all are connected":       {200, ok, before36 + "etcd_network_active_peers{Local=\"bdae9bbc11dd390d\",Remote=\"3760a4ec3b84f7fa\"} 1\n", ""},
		"3.5, before it has measured":  {200, ok, strings.Replace(strings.ReplaceAll(before36, "round_trip", "x"), `2cf73"} 1`, `2cf73"} 0`, 1), "connected with 0 of 1 other member"},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := Look(t.Context(), etcd(t, row.code, row.health, row.metrics))
			if err != nil {
				t.Fatal(err)
			}
			if got := h.Why(); !strings.Contains(got, row.why) || (got == "") != (row.why == "") {
				t.Errorf("it says %q, want %q", got, row.why)
			}
		})
	}
}

func TestHalfOfItsMetricsAreNoHealth(t *testing.T) {
	const ok = `{"health":"true","reason":""}`
	for name, row := range map[string]struct{ health, metrics, why string }{
		"no health":          {"<html>", healthy, "without a health"},
		"no quota":           {ok, strings.Replace(healthy, "etcd_server_quota", "x", 1), "without a number of etcd_server_quota_backend_bytes"},
		"no version":         {ok, strings.Replace(healthy, "etcd_server_version{", "x{", 1), "without a number of etcd_server_version"},
		"a size of nothing":  {ok, strings.Replace(healthy, "1.048576e+06", "NaN", 1), "without a number of etcd_mvcc_db_total_size_in_bytes"},
		"fewer than no peer": {ok, strings.Replace(healthy, `Remote="9"} 0`, `Remote="9"} -9`, 1), "without a number of etcd_network_known_peers"},
		"no members, in 3.6": {ok, strings.ReplaceAll(healthy, "known_peers", "x"), "without a number of etcd_network_known_peers"},
		"it ends early":      {ok, healthy[:len(healthy)-9], "unexpected EOF"},
		"it has no end":      {ok, strings.Repeat("x 1\n", maxMetrics/4+1), "more than"},
		"another program":    {ok, "404 page not found", "unexpected EOF"},
		"the health is long": {strings.Repeat(" ", maxHealth) + ok, healthy, "without a health"},
	} {
		if h, err := Look(t.Context(), etcd(t, 200, row.health, row.metrics)); err == nil || !strings.Contains(err.Error(), row.why) || h != (Health{}) {
			t.Errorf("%s: %+v, %v; want %q", name, h, err, row.why)
		}
	}
	if _, err := Look(t.Context(), "http://127.0.0.1:1"); err == nil {
		t.Error("nothing answers, and there is no error")
	}
}

// database is a snapshot as etcd writes one.
func database(pages int) string {
	data := strings.Repeat("x", pages*databasePages)
	sum := sha256.Sum256([]byte(data))
	return data + string(sum[:])
}

// k3s is a server of k3s with its data directory.
type k3s struct {
	Snapshots
	asked  map[string]any
	answer func(w http.ResponseWriter, dir string)
}

func newK3s(t *testing.T) *k3s {
	t.Helper()
	k := &k3s{}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if r.Method != http.MethodPost || r.URL.Path != "/db/snapshot" || user != "server" || password != "hunter2" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "not for %s with hunter2", user)
			return
		}
		_ = json.NewDecoder(r.Body).Decode(&k.asked)
		k.answer(w, filepath.Join(k.Server, "db/snapshots"))
	}))
	t.Cleanup(s.Close)
	k.Server, k.URL = t.TempDir(), s.URL
	for name, text := range map[string]string{
		"token":             "K10" + strings.Repeat("a", 64) + "::server:hunter2\n",
		"tls/server-ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})),
	} {
		k.write(t, name, text)
	}
	k.answer = func(w http.ResponseWriter, dir string) {
		_ = os.MkdirAll(dir, 0o700)
		_ = os.WriteFile(filepath.Join(dir, "zedkube-node-1-1795432850"), []byte(database(3)), 0o600)
		fmt.Fprint(w, `{"created":["zedkube-node-1-1795432850"],"deleted":["zedkube-node-1-1"]}`)
	}
	return k
}

func (k *k3s) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(k.Server, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestASnapshotIsTakenAndReadBack(t *testing.T) {
	k := newK3s(t)
	s, err := k.Save(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "zedkube-node-1-1795432850" || s.Size != 3*databasePages+sha256.Size || time.Since(s.At) > time.Hour {
		t.Errorf("%+v", s)
	}
	want := map[string]any{"operation": "save", "name": []any{"zedkube"}, "compress": false, "retention": float64(3)}
	if d := cmp.Diff(want, k.asked); d != "" {
		t.Error(d)
	}
	k.write(t, "token", "hunter2")
	if _, err := k.Save(t.Context()); err != nil {
		t.Errorf("with a bare password as the token: %v", err)
	}
}

func TestWhatIsNoSnapshotIsAnError(t *testing.T) {
	wrote := func(text string) func(http.ResponseWriter, string) {
		return func(w http.ResponseWriter, dir string) {
			_ = os.MkdirAll(dir, 0o700)
			_ = os.WriteFile(filepath.Join(dir, "z"), []byte(text), 0o600)
			fmt.Fprint(w, `{"created":["z"]}`)
		}
	}
	said := func(code int, text string) func(http.ResponseWriter, string) {
		return func(w http.ResponseWriter, _ string) { w.WriteHeader(code); fmt.Fprint(w, text) }
	}
	elsewhere := func(w http.ResponseWriter, dir string) {
		wrote(database(3))(httptest.NewRecorder(), dir)
		fmt.Fprint(w, `{"created":["../snapshots/z"]}`)
	}
	old := func(w http.ResponseWriter, dir string) {
		wrote(database(3))(w, dir)
		_ = os.Chtimes(filepath.Join(dir, "z"), time.Time{}, time.Now().Add(-time.Hour))
	}
	good := database(3)
	for name, row := range map[string]struct {
		answer func(http.ResponseWriter, string)
		why    string
	}{
		"it is cut":                 {wrote(good[:len(good)-databasePages]), "does not match its SHA-256"},
		"it is cut within a page":   {wrote(good[:len(good)-7]), "which no snapshot has"},
		"a byte is another":         {wrote("y" + good[1:]), "does not match its SHA-256"},
		"it is empty":               {wrote(""), "which no snapshot has"},
		"it is a sum alone":         {wrote(database(0)), "which no snapshot has"},
		"it is not there":           {said(200, `{"created":["z"]}`), "k3s has not written one"},
		"it is an older one":        {old, "k3s names z, which is of"},
		"its name is a path":        {elsewhere, "k3s has not written one"},
		"none on a learner":         {said(200, `null`), "k3s has not written one"},
		"k3s refuses":               {said(500, `{"message":"snapshot save already in progress"}`), `k3s answers 500: "{\"message\":\"snapshot save already in progress`},
		"k3s says something else":   {said(200, "<html>"), "k3s answers 200"},
		"k3s sends it elsewhere":    {said(302, ""), "k3s answers 302"},
		"k3s prints the password":   {said(500, "wrong: hunter2"), `"wrong: "`},
		"an answer that is too big": {said(200, strings.Repeat(" ", maxAnswer+1)+"{}"), "k3s answers 200"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newK3s(t)
			k.answer = row.answer
			s, err := k.Save(t.Context())
			if err == nil || !strings.Contains(err.Error(), row.why) || strings.Contains(err.Error(), "hunter2") || s != (Snapshot{}) {
				t.Errorf("%+v, %v; want %q", s, err, row.why)
			}
		})
	}
}

func TestOnlyTheOwnServerIsGivenTheToken(t *testing.T) {
	k := newK3s(t)
	other := newK3s(t)
	k.URL = other.URL
	k.write(t, "tls/server-ca.crt", "x")
	if _, err := k.Save(t.Context()); err == nil || !strings.Contains(err.Error(), "authority of k3s cannot be read") {
		t.Errorf("the error is %v", err)
	}
	if err := os.Remove(filepath.Join(k.Server, "token")); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Save(t.Context()); err == nil || !strings.Contains(err.Error(), "server token") {
		t.Errorf("without a token: %v", err)
	}
	k.write(t, "token", "K10abc::server:")
	if _, err := k.Save(t.Context()); err == nil || !strings.Contains(err.Error(), "it has no password") {
		t.Errorf("with half a token: %v", err)
	}
	if len(other.asked) != 0 {
		t.Error("another server was asked")
	}
}

func TestTheNewestSnapshotIsTheFirst(t *testing.T) {
	k := newK3s(t)
	if list, err := k.List(); err != nil || list != nil {
		t.Errorf("without the directory: %v, %v", list, err)
	}
	now := time.Now()
	for name, age := range map[string]time.Duration{"a": time.Hour, "b": time.Minute, "c": 2 * time.Hour, "d.zip": 0, "e.part": 0} {
		k.write(t, "db/snapshots/"+name, name)
		if err := os.Chtimes(filepath.Join(k.Server, "db/snapshots", name), now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("g", filepath.Join(k.Server, "db/snapshots/f")); err != nil {
		t.Fatal(err)
	}
	list, err := k.List()
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	if err != nil || !slices.Equal(names, []string{"b", "a", "c"}) || list[0].Size != 1 {
		t.Errorf("%v, %v", list, err)
	}
	k.write(t, "db/snapshots/g", database(3))
	if err := k.Verify(t.Context(), "f"); err == nil {
		t.Error("a link is read back")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Verify(ctx, "g"); err == nil {
		t.Error("the end of the context does not end it")
	}
}

func TestWhichServersHaveAnEtcd(t *testing.T) {
	k := newK3s(t)
	k.write(t, "db/state.db", "SQLite")
	if Exists(k.Server) {
		t.Error("SQLite counts as etcd")
	}
	k.write(t, "db/etcd/name", "x")
	if !Exists(k.Server) {
		t.Error("etcd is not seen")
	}
}
