package k3supdate

import (
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
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sbinary"
	"github.com/zedkube/zedkube/pkg/base/k3setcd"
	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/types"
)

var sum64 = strings.Repeat("5", 64)

// healthy is a look of a server on which patch is staged and a snapshot was taken.
func healthy(now time.Time) gathered {
	return gathered{at: time.Hour, to: patch, apis: types.DeprecatedAPIs{StartedAt: now.Add(-48 * time.Hour)}, found: Found{
		Binary: old, Staged: k3sbinary.Staged{Version: patch}, Sum: sum64, HasEtcd: true,
		Etcd: k3setcd.Health{Version: "3.6.4", Members: 3, Connected: 2, HasLeader: true, Leader: true}, Snapshot: k3setcd.Snapshot{Name: "s", At: now.Add(-time.Minute)},
	}}
}

func TestWhatALookAtTheDeviceSays(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	parts := types.KubeNodeConditions{KubeVirt: "v1.7.3", Longhorn: "v1.9.1"}
	failed := func(what preparation) prepared {
		return prepared{what: what, of: patch, err: errors.New("no route to host")}
	}
	for name, row := range map[string]struct {
		change func(*gathered)
		last   prepared
		sum    string
		of     func(evidence) finding
		known  bool
		words  string
	}{
		"it is staged":                 {known: true, of: func(e evidence) finding { return e.binary }},
		"with the sum of the setting":  {sum: sum64, known: true, of: func(e evidence) finding { return e.binary }},
		"with another sum":             {sum: strings.Repeat("6", 64), known: true, of: func(e evidence) finding { return e.binary }, words: "asks for another"},
		"the setting is no sum":        {sum: "x", known: true, of: func(e evidence) finding { return e.binary }, words: "is no SHA-256"},
		"another one is staged":        {change: func(g *gathered) { g.found.Staged.Version = minor }, known: true, of: func(e evidence) finding { return e.binary }, words: "is not staged"},
		"it could not be downloaded":   {change: func(g *gathered) { g.found.Staged.Version = "" }, last: failed(fetch), known: true, of: func(e evidence) finding { return e.binary }, words: "no route to host. Without internet, run here: zedkube k3s stage FILE"},
		"it is in its place already":   {change: func(g *gathered) { g.found.Binary, g.found.Staged.Version = patch, "" }, known: true, of: func(e evidence) finding { return e.binary }},
		"no k3s is seen":               {change: func(g *gathered) { g.found = Found{None: k3sbinary.ErrNone} }, of: func(e evidence) finding { return e.binary }, words: "no k3s binary"},
		"k3s does not say its version": {change: func(g *gathered) { g.found.Err = errors.New("it prints nothing") }, of: func(e evidence) finding { return e.binary }, words: "prints nothing"},
		"no space":                     {change: func(g *gathered) { g.found.Space = errors.New("3 MiB are free") }, known: true, of: func(e evidence) finding { return e.binary }, words: "3 MiB are free"},
		"a snapshot":                   {known: true, of: func(e evidence) finding { return e.snapshot }},
		"an old one":                   {change: func(g *gathered) { g.found.Snapshot.At = now.Add(-31 * time.Minute) }, known: true, of: func(e evidence) finding { return e.snapshot }, words: "2026-11-01T11:29:00Z"},
		"one of tomorrow":              {change: func(g *gathered) { g.found.Snapshot.At = now.Add(24 * time.Hour) }, known: true, of: func(e evidence) finding { return e.snapshot }, words: "is of"},
		"one that cannot be read back": {change: func(g *gathered) { g.found.SnapErr = errors.New("its content does not match") }, known: true, of: func(e evidence) finding { return e.snapshot }, words: "does not match"},
		"none, and none can be taken":  {change: func(g *gathered) { g.found.Snapshot = k3setcd.Snapshot{} }, last: failed(save), known: true, of: func(e evidence) finding { return e.snapshot }, words: "none could be taken: no route to host"},
		"snapshots cannot be listed":   {change: func(g *gathered) { g.found.Snapshot, g.found.SnapErr = k3setcd.Snapshot{}, errors.New("EIO") }, of: func(e evidence) finding { return e.snapshot }, words: "EIO"},
		"etcd is well":                 {known: true, of: func(e evidence) finding { return e.etcd }},
		"etcd has an alarm":            {change: func(g *gathered) { g.found.Etcd.Alarm = "ALARM NOSPACE" }, known: true, of: func(e evidence) finding { return e.etcd }, words: "NOSPACE"},
		"etcd does not answer":         {change: func(g *gathered) { g.found.EtcdErr = errors.New("connection refused") }, of: func(e evidence) finding { return e.etcd }, words: "refused"},
		"no API is removed":            {known: true, of: func(e evidence) finding { return e.removed }},
		"an API is removed": {change: func(g *gathered) {
			g.apis.APIs = []types.DeprecatedAPI{{Version: "v1", Resource: "things", RemovedIn: "1.34"}}
		}, known: true, of: func(e evidence) finding { return e.removed }, words: "the API things.v1 is in use"},
		"the API server has just started": {change: func(g *gathered) { g.apis.StartedAt = now.Add(-time.Hour) }, of: func(e evidence) finding { return e.removed }, words: "less than 24 hours"},
		"one removed, and it has just begun": {change: func(g *gathered) {
			g.apis = types.DeprecatedAPIs{StartedAt: now, APIs: []types.DeprecatedAPI{{Resource: "things", RemovedIn: "1.34"}}}
		}, known: true, of: func(e evidence) finding { return e.removed }, words: "things"},
		"the API server does not say": {change: func(g *gathered) { g.apisErr = types.ErrNoAPI }, of: func(e evidence) finding { return e.removed }, words: types.ErrNoAPI.Error()},
		"components work":             {known: true, of: func(e evidence) finding { return e.components }},
	} {
		g := healthy(now)
		if row.change != nil {
			row.change(&g)
		}
		got := row.of(weigh(g, row.last, patch, row.sum, parts, now))
		if text := got.lacks + got.why; got.known != row.known || !strings.Contains(text, row.words) || row.words == "" && text != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if e := weigh(healthy(now), prepared{}, patch, "", parts, now); e.staged != sum64 || e.disk != old || e.etcdHas != "3.6.4" || !e.etcdLead || e.fetches || e.saves {
		t.Errorf("%+v", e)
	}
	for version, want := range map[string]finding{
		"v1.6.0": {known: true, lacks: "kubevirt v1.6.0 supports Kubernetes up to 1.33"}, "": {why: "the version of kubevirt is not known"},
	} {
		parts.KubeVirt = version
		if got := work(parts, 34); got != want {
			t.Errorf("KubeVirt %q: %+v", version, got)
		}
	}
}

// TestWhatIsPreparedAndWhen: a binary early, a snapshot last.
func TestWhatIsPreparedAndWhen(t *testing.T) {
	bare := func() facts {
		f := ready()
		f.evidence.binary, f.evidence.fetches = finding{known: true, lacks: "it is not staged"}, true
		return f
	}
	old := func() facts {
		f := ready()
		f.evidence.snapshot, f.evidence.saves = finding{known: true, lacks: "it is old"}, true
		return f
	}
	with := func(f facts, change func(*facts)) facts { change(&f); return f }
	tried := func(what preparation) func(*facts) {
		return func(f *facts) {
			f.prepared = prepared{what: what, of: patch, at: f.uptime - 3*time.Minute, failed: 3, err: errors.New("no")}
		}
	}
	taken := func(what preparation, ago time.Duration) func(*facts) {
		return func(f *facts) { f.prepared = prepared{what: what, of: patch, at: f.uptime - ago} }
	}
	for name, row := range map[string]struct {
		facts facts
		want  preparation
	}{
		"nothing lacks":    {ready(), noPreparation},
		"it is not staged": {bare(), fetch},
		"it is not staged, nor is it this node's turn":   {with(bare(), func(f *facts) { f.node(1, func(n *types.Node) { n.TieBreaker = true }) }), fetch},
		"it is not staged, and held":                     {with(bare(), func(f *facts) { f.hold = "harvest" }), noPreparation},
		"it failed here":                                 {with(bare(), func(f *facts) { f.journal.Failed.To = patch }), noPreparation},
		"the rules refuse it":                            {with(bare(), func(f *facts) { f.version.Wanted = "v1.38.0+k3s1" }), noPreparation},
		"three downloads failed, three minutes ago":      {with(bare(), tried(fetch)), noPreparation},
		"three of another version did":                   {with(bare(), func(f *facts) { tried(fetch)(f); f.prepared.of = minor }), fetch},
		"three failed, five minutes ago":                 {with(bare(), func(f *facts) { tried(fetch)(f); f.prepared.at -= 2 * time.Minute }), fetch},
		"the snapshot is old":                            {old(), save},
		"the snapshot is old, and volumes are not known": {with(old(), func(f *facts) { f.checked = nil }), save},
		"the snapshot is old, and n2 comes first":        {with(old(), func(f *facts) { f.node(1, func(n *types.Node) { n.TieBreaker = true }) }), noPreparation},
		"three snapshots failed":                         {with(old(), tried(save)), noPreparation},
		"one was taken, and does not count":              {with(old(), taken(save, preparedFor-1)), noPreparation},
		"a quarter of an hour ago":                       {with(old(), taken(save, preparedFor)), save},
		"it was downloaded, and is not there":            {with(bare(), taken(fetch, preparedFor-1)), noPreparation},
	} {
		if a := decide(row.facts); a.prepare != row.want {
			t.Errorf("%s: %d, %s", name, a.prepare, a.status.Reason)
		}
	}
}

func TestABinaryIsDownloadedAndASnapshotTakenBeforeAnythingStops(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		for _, a := range s.agents {
			a.disk.with(func() {
				a.disk.found = Found{Binary: old, HasEtcd: true, Etcd: k3setcd.Health{Version: "3.6.4", HasLeader: true, Leader: a.name == "n1"}}
				a.disk.trouble = errors.New("no route to host")
			})
		}
		s.pass(time.Minute)
		s.wants(patch, false)
		s.pass(20 * time.Minute)
		a, saved := s.agents[0], 0
		var fetched []time.Duration
		a.disk.with(func() { fetched, saved = a.disk.fetched, a.disk.saved })
		if n := len(fetched); n != 5 { // after 0, 1, 3, 7 and 15 minutes
			t.Errorf("it was tried %d times: %v", n, fetched)
		}
		if why := reasonOf(a.is().Preconditions, "Binary"); len(s.order) != 0 || !strings.Contains(why, "no route to host") || saved != 0 {
			t.Fatalf("%v changed, %d snapshots: %s", s.order, saved, why)
		}
		for _, a := range s.agents {
			a.disk.with(func() { a.disk.trouble = nil })
		}
		s.pass(30 * time.Minute)
		s.agents[1].disk.with(func() { saved = s.agents[1].disk.saved })
		if why := s.agents[1].is().Reason; saved == 0 || len(s.order) != 0 || !strings.Contains(why, "none could be taken: k3s answers 503") {
			t.Fatalf("%v changed: %s", s.order, why)
		}
		for _, a := range s.agents {
			a.disk.with(func() { a.disk.snapshot = true })
		}
		s.pass(2 * time.Hour)
		if got := strings.Join(s.order, " "); got != "n2 n3 n1" { // the leader of etcd comes last
			t.Errorf("%s changed: %+v", got, s.agents[2].is())
		}
		if n, _ := s.nodes.Get("n1"); n.K3s == nil || !n.K3s.Leader || n.K3s.Etcd != "3.6.4" {
			t.Errorf("the stamp is %+v", n.K3s)
		}
	})
}

// TestALookThatHangsHoldsNothingUp also when the agent ends.
func TestALookThatHangsHoldsNothingUp(t *testing.T) {
	play(t, "n1", func(s *site) {
		hangs := make(chan struct{})
		s.agents[0].disk.with(func() { s.agents[0].disk.hangs = hangs })
		defer close(hangs)
		s.wants(patch, true)
		s.pass(10 * time.Minute)
		if got := s.agents[0].is(); len(s.order) != 1 || got.Phase != types.LifecycleIdle {
			t.Errorf("%v changed: %+v", s.order, got)
		}
		synctest.Wait()
	})
}

func script(version string) string {
	return "#!/bin/sh\necho \"k3s version " + version + " (0123abcd)\"\n"
}

// newDevice is a device with k3s old, for which patch has been released.
func newDevice(t *testing.T) (d Device, dir string) {
	t.Helper()
	root := t.TempDir()
	dir = filepath.Join(root, "kube/k3s/bin")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "k3s"), []byte(script(old)), 0o755)); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(script(patch)))
	releases := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/k3s") {
			fmt.Fprint(w, script(patch))
			return
		}
		fmt.Fprintf(w, "%s  k3s\n", hex.EncodeToString(sum[:]))
	}))
	t.Cleanup(releases.Close)
	return Device{
		Files:    k3sbinary.Files{VarLib: filepath.Join(root, "kube"), K3s: k3sprocess.K3s{PID: filepath.Join(root, "k3s.pid"), Proc: "/proc"}},
		Releases: k3sbinary.Releases{URL: releases.URL, Arch: "amd64", Client: releases.Client()},
	}, dir
}

func TestADeviceShowsWhatItHas(t *testing.T) {
	d, dir := newDevice(t)
	f := d.Look(t.Context(), Found{})
	if f.Binary != old || f.Staged.Version != "" || f.Err != nil || f.HasEtcd {
		t.Fatalf("%+v", f)
	}
	if err := d.Fetch(t.Context(), patch, strings.Repeat("0", 64)); err == nil || !strings.Contains(err.Error(), "its SHA-256 is") {
		t.Errorf("with another sum: %v", err)
	}
	if err := d.Fetch(t.Context(), patch, ""); err != nil {
		t.Fatal(err)
	}
	f = d.Look(t.Context(), f)
	if f.Staged.Version != patch || len(f.Sum) != 64 || f.Err != nil {
		t.Fatalf("%+v", f)
	}
	again := d.Look(t.Context(), f)
	if again.Binary != old || again.Sum != f.Sum || again.ran != f.ran {
		t.Errorf("%+v", again)
	}
	if err := os.WriteFile(filepath.Join(dir, "k3s"), []byte(script(patch)+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if again = d.Look(t.Context(), f); again.Binary != patch {
		t.Errorf("another binary: %+v", again)
	}
	if err := os.MkdirAll(filepath.Join(dir, "../../rancher/k3s/server/db/etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	snapshots := filepath.Join(dir, "../../rancher/k3s/server/db/snapshots")
	if err := errors.Join(os.Mkdir(snapshots, 0o700), os.WriteFile(filepath.Join(snapshots, "zedkube-1"), []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if again = d.Look(t.Context(), f); !again.HasEtcd || again.EtcdErr == nil || again.SnapErr == nil {
		t.Errorf("etcd without an answer, and half a snapshot: %+v", again)
	}
	if err := d.Save(t.Context()); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("a snapshot without k3s: %v", err)
	}
	d.Releases = k3sbinary.Releases{}
	if err := d.Fetch(t.Context(), patch, ""); err == nil || !strings.Contains(err.Error(), "another root") {
		t.Errorf("%v", err)
	}
	d.Files.VarLib = "/nowhere"
	if f = d.Look(t.Context(), f); !errors.Is(f.None, k3sbinary.ErrNone) {
		t.Errorf("%+v", f)
	}
}

func TestASnapshotOfTomorrowDoesNotHideTheNewestOne(t *testing.T) { // it was taken by a clock that was wrong
	d, dir := newDevice(t)
	db := filepath.Join(dir, "../../rancher/k3s/server/db")
	if err := errors.Join(os.MkdirAll(filepath.Join(db, "etcd"), 0o700), os.MkdirAll(filepath.Join(db, "snapshots"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, ago := range map[string]time.Duration{"old": time.Hour, "new": time.Minute, "tomorrow": -day} {
		path := filepath.Join(db, "snapshots", name)
		if err := errors.Join(os.WriteFile(path, []byte(name), 0o600), os.Chtimes(path, time.Now(), time.Now().Add(-ago))); err != nil {
			t.Fatal(err)
		}
	}
	if f := d.Look(t.Context(), Found{}); f.Snapshot.Name != "new" {
		t.Errorf("%+v", f.Snapshot)
	}
}
