package kubeapi

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// withLevels is a cluster of n1, which is this node, and n2, with Longhorn.
func withLevels() *fakeAPI {
	api := someCluster()
	api.storage = map[string][]any{}
	disks := jsonObject{"spec": jsonObject{"disks": jsonObject{
		"b": jsonObject{"path": "/b", "storageReserved": 7}, "a": jsonObject{"path": "/a", "storageReserved": 5},
	}}, "status": jsonObject{"diskStatus": jsonObject{"a": jsonObject{"storageMaximum": 100, "storageAvailable": 60}}}}
	for _, name := range []string{"n1", "n2"} {
		api.storage["nodes"] = append(api.storage["nodes"], level(pathLevels+"nodes/"+name, "Node", "lh-"+name, disks))
	}
	objects := someLevels().objects
	api.storage["settings"] = []any{objects[pathDrain], level(pathLevels+"settings/other", "Setting", "s2", jsonObject{"value": "x"})}
	api.storage["recurringjobs"] = []any{objects[pathSnapshots], level(pathLevels+"recurringjobs/other", "RecurringJob", "j2", nil)}
	return api
}

func TestEachNodeSeesItsOwnDisksAndTheLeaderWhatIsKeptForTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := withLevels()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		time.Sleep(time.Second)
		want := map[string]types.LonghornDisk{"a": {Name: "a", Reserved: 5, Maximum: 100}, "b": {Name: "b", Reserved: 7}}
		check(t, "own node of Longhorn", kubetest.Keys(tb.disks.All()), []string{"n1"})
		row, _ := tb.disks.Get("n1")
		for _, d := range row.Disks {
			if d.Reserved != want[d.Name].Reserved || d.Maximum != want[d.Name].Maximum {
				t.Errorf("disk is %+v", d)
			}
		}
		if row.UID != "lh-n1" || len(row.Disks) != 2 || row.Disks[0].Name != "a" {
			t.Errorf("row is %+v", row)
		}
		if s, ok := tb.tables.Get(types.TableLonghornNode); !ok || !s.Complete || s.Absent {
			t.Errorf("the table is %+v", s)
		}
		for _, table := range []string{types.TableDrainPolicy, types.TableSnapshotJob} {
			if s, ok := tb.tables.Get(table); ok {
				t.Errorf("%s is %+v on a node that does not lead", table, s)
			}
		}
		tb.lead(true)
		time.Sleep(time.Second)
		if d := cmp.Diff(map[string]types.LonghornSetting{types.LonghornDrainPolicy: policyRow()}, tb.settings.All()); d != "" {
			t.Error(d)
		}
		job := types.SnapshotJob{
			Name: types.SnapshotJobName, UID: "j1", Version: "5", Task: "snapshot", Groups: []string{"default"}, Cron: "0 3 * * *",
			Retain: 9, Concurrency: 2, Ours: true,
		}
		if d := cmp.Diff(map[string]types.SnapshotJob{types.SnapshotJobName: job}, tb.jobs.All()); d != "" {
			t.Error(d)
		}
		tb.lead(false)
		time.Sleep(time.Second)
		if n := len(tb.settings.All()) + len(tb.jobs.All()); n != 0 {
			t.Errorf("a former leader has %d rows", n)
		}
		check(t, "own node of Longhorn", kubetest.Keys(tb.disks.All()), []string{"n1"})
	})
}

func TestWithoutLonghornNothingIsKeptAndItIsAskedForOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := withLevels()
		storage := api.storage
		api.storage = nil
		end := startInMemory(t, c, &kubetest.InMemory{Handler: api})
		defer end()
		tb.lead(true)
		time.Sleep(2 * time.Second)
		for _, table := range []string{types.TableLonghornNode, types.TableDrainPolicy, types.TableSnapshotJob} {
			if s, ok := tb.tables.Get(table); !ok || !s.Complete || !s.Absent {
				t.Errorf("%s is %+v", table, s)
			}
		}
		asked := func() (n int) {
			api.set(func() {
				for name, times := range api.requests {
					if strings.Contains(name, "longhorn.io") {
						n += times
					}
				}
			})
			return n
		}
		before := asked()
		time.Sleep(10 * time.Minute)
		if n := asked() - before; n > 10 {
			t.Errorf("asked %d times in ten minutes", n)
		}
		api.set(func() { api.storage = storage })
		time.Sleep(62 * time.Second)
		if len(tb.disks.All()) != 1 || len(tb.settings.All()) != 1 || len(tb.jobs.All()) != 1 {
			t.Error("Longhorn is not seen a minute after it came")
		}
		if s, _ := tb.tables.Get(types.TableDrainPolicy); !s.Complete || s.Absent {
			t.Errorf("the table is %+v", s)
		}
	})
}

func TestAKindThatCannotBeListedSpoilsOnlyItsOwnTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := withLevels()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/recurringjobs") {
				reply(w, 403, failure(403, "Forbidden"))
				return
			}
			api.ServeHTTP(w, r)
		})})
		defer end()
		tb.lead(true)
		time.Sleep(10 * time.Second)
		if s, _ := tb.tables.Get(types.TableSnapshotJob); s.Complete || s.Why == "" {
			t.Errorf("the table is %+v", s)
		}
		if s, _ := tb.tables.Get(types.TableDrainPolicy); !s.Complete || !tb.status().Synced {
			t.Errorf("the other table is %+v, the status %+v", s, tb.status())
		}
	})
}
