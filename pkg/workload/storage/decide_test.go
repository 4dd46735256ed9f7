package storage

import (
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

const gb = int64(1) << 30

func number(n uint32) types.ConfigItemValue {
	return types.ConfigItemValue{ItemType: types.ConfigItemInt, IntValue: n}
}

func words(s string) types.ConfigItemValue {
	return types.ConfigItemValue{ItemType: types.ConfigItemString, StrValue: s}
}

// with gives one setting a value.
func with(key string, v types.ConfigItemValue) func(*facts) {
	return func(f *facts) { f.settings.GlobalSettings[key] = v }
}

// scene is the leader, with nothing as the settings want it: they are EVE's
// defaults, none of which is sent.
func scene() facts {
	whole := types.TableStatus{Complete: true}
	return facts{
		now: time.Date(2026, 5, 3, 6, 41, 17, 0, time.UTC), uptime: time.Hour,
		heard: true, settings: types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{}},
		own: types.Node{Name: "n1"}, joined: true, leads: true,
		tables: map[string]types.TableStatus{types.TableLonghornNode: whole, types.TableDrainPolicy: whole, types.TableSnapshotJob: whole},
		node: &types.LonghornNode{Name: "n1", UID: "u1", Disks: []types.LonghornDisk{
			{Name: "a", Reserved: 0, Maximum: 100 * gb}, {Name: "b", Reserved: gb, Maximum: 50 * gb},
		}},
		policy: &types.LonghornSetting{Name: types.LonghornDrainPolicy, UID: "s1", Version: "7", Value: "block-if-contains-last-replica"},
	}
}

// job is one there is.
func job(cron string, ours bool) func(*facts) {
	return func(f *facts) {
		f.job = &types.SnapshotJob{Name: types.SnapshotJobName, UID: "j1", Version: "7", Cron: cron, Ours: ours}
	}
}

func unseen(table, why string) func(*facts) {
	return func(f *facts) { f.tables[table] = types.TableStatus{Why: why} }
}

func absent(table string) func(*facts) {
	return func(f *facts) { f.tables[table] = types.TableStatus{Complete: true, Absent: true} }
}

func TestWhatIsWrittenForEachLevel(t *testing.T) {
	follows := func(f *facts) { f.leads = false }
	const cron, policy, reserved = types.SettingSnapshotCron, types.SettingNodeDrainPolicy, types.SettingDiskReserved
	for _, row := range []struct {
		rule   string
		level  level
		change []func(*facts)
		begin  bool
		kept   bool
		wanted string
		actual string
		why    string // a part of it
		flaw   bool
	}{
		{"two gigabytes unless the settings say otherwise", reservation, nil, true, true, "2147483648", "a=0 b=1073741824", beingSet, false},
		{"as many as the settings say", reservation, []func(*facts){with(reserved, number(10))}, true, true, "10737418240", "a=0 b=1073741824", beingSet, false},
		{"zero is a number, too", reservation, []func(*facts){with(reserved, number(0))}, true, true, "0", "a=0 b=1073741824", beingSet, false},
		{"the largest number leaves what is there", reservation, []func(*facts){with(reserved, number(1048576))}, false, false, "", "a=0 b=1073741824", "", false},
		{"a number above makes no sense", reservation, []func(*facts){with(reserved, number(1048577))}, false, false, "", "a=0 b=1073741824", "at most 1048576 is allowed", true},
		{"the largest there is does not, either", reservation, []func(*facts){with(reserved, number(1<<32-1))}, false, false, "", "a=0 b=1073741824", "is allowed", true},
		{"a text is not a number", reservation, []func(*facts){with(reserved, words("2"))}, false, false, "", "a=0 b=1073741824", "is not a number", true},
		{"nothing where all disks have it", reservation, []func(*facts){func(f *facts) { f.node.Disks = f.node.Disks[1:] }, with(reserved, number(1))}, false, true, "1073741824", "1073741824", "", false},
		{"nothing larger than a disk", reservation, []func(*facts){with(reserved, number(51))}, false, true, "54760833024", "a=0 b=1073741824", "disk b has 53687091200", true},
		{"a disk of which the size is not known yet is no hindrance", reservation, []func(*facts){with(reserved, number(51)), func(f *facts) { f.node.Disks[1].Maximum = 0 }}, true, true, "54760833024", "a=0 b=1073741824", beingSet, false},
		{"a tie-breaker reserves nothing", reservation, []func(*facts){func(f *facts) { f.own.TieBreaker = true }}, false, false, "", "a=0 b=1073741824", "", false},
		{"whoever leads", reservation, []func(*facts){follows}, true, true, "2147483648", "a=0 b=1073741824", beingSet, false},
		{"nothing before the settings are known", reservation, []func(*facts){func(f *facts) { f.heard = false }}, false, false, "", "", "not known yet", false},
		{"nothing before the Node is there", reservation, []func(*facts){func(f *facts) { f.joined, f.node = false, nil }}, false, true, "2147483648", "", "no Node in the cluster", false},
		{"nothing without Longhorn", reservation, []func(*facts){absent(types.TableLonghornNode), func(f *facts) { f.node = nil }}, false, true, "2147483648", "", "not installed", false},
		{"nothing on old news", reservation, []func(*facts){unseen(types.TableLonghornNode, "the server is silent")}, false, true, "2147483648", "a=0 b=1073741824", "the server is silent", false},
		{"nothing on no news", reservation, []func(*facts){func(f *facts) { f.tables = nil }}, false, true, "2147483648", "a=0 b=1073741824", "state of Longhorn is not known yet", false},
		{"nothing before Longhorn knows the node", reservation, []func(*facts){func(f *facts) { f.node = nil }}, false, true, "2147483648", "", "does not know this node", false},
		{"nothing before it has a disk", reservation, []func(*facts){func(f *facts) { f.node.Disks = nil }}, false, true, "2147483648", "", "no disk", false},

		{"a job every midnight unless the settings say otherwise", snapshots, nil, true, true, "0 0 * * *", "", beingSet, false},
		{"another schedule", snapshots, []func(*facts){with(cron, words(" 30 2 * * 1-5 ")), job("0 0 * * *", true)}, true, true, "30 2 * * 1-5", "0 0 * * *", beingSet, false},
		{"nothing where it is so", snapshots, []func(*facts){job("0 0 * * *", true)}, false, true, "0 0 * * *", "0 0 * * *", "", false},
		{"no schedule takes the job away", snapshots, []func(*facts){with(cron, words("")), job("0 0 * * *", true)}, true, true, "", "0 0 * * *", beingSet, false},
		{"also one that never had one", snapshots, []func(*facts){with(cron, words("")), job("", true)}, true, true, "", "", beingSet, false},
		{"nothing where there is none", snapshots, []func(*facts){with(cron, words(""))}, false, true, "", "", "", false},
		{"somebody else's job of that name stays", snapshots, []func(*facts){with(cron, words("")), job("0 0 * * *", false)}, false, true, "", "0 0 * * *", "not made by zedkube", false},
		{"and keeps its schedule, which people are told", snapshots, []func(*facts){job("0 3 * * *", false)}, false, true, "0 0 * * *", "0 3 * * *", "not made by zedkube", true},
		{"what is not a schedule changes nothing", snapshots, []func(*facts){with(cron, words("every night")), job("0 3 * * *", true)}, false, false, "", "0 3 * * *", "is not a schedule", true},
		{"half a time zone, either", snapshots, []func(*facts){with(cron, words("TZ=0"))}, false, false, "", "", "time zone", true},
		{"nor more than one line", snapshots, []func(*facts){with(cron, words("0 0\n* * *"))}, false, false, "", "", "more than one line", true},
		{"nor a number", snapshots, []func(*facts){with(cron, number(0))}, false, false, "", "", "is not a string", true},
		{"not by a node that does not lead", snapshots, []func(*facts){follows}, false, false, "0 0 * * *", "", "", false},
		{"of which such a node sees nothing", snapshots, []func(*facts){follows, func(f *facts) { f.tables = nil }}, false, false, "0 0 * * *", "", "", false},
		{"not before the settings are known", snapshots, []func(*facts){func(f *facts) { f.heard = false }, job("0 3 * * *", true)}, false, false, "", "", "not known yet", false},
		{"not on old news", snapshots, []func(*facts){unseen(types.TableSnapshotJob, "")}, false, true, "0 0 * * *", "", "state of Longhorn is unknown", false},
		{"not without Longhorn", snapshots, []func(*facts){absent(types.TableSnapshotJob)}, false, true, "0 0 * * *", "", "not installed", false},

		{"the policy of EVE", drainPolicy, nil, true, true, defaultPolicy, "block-if-contains-last-replica", beingSet, false},
		{"an empty one is EVE's", drainPolicy, []func(*facts){with(policy, words(" "))}, true, true, defaultPolicy, "block-if-contains-last-replica", beingSet, false},
		{"another one", drainPolicy, []func(*facts){with(policy, words("always-allow"))}, true, true, "always-allow", "block-if-contains-last-replica", beingSet, false},
		{"Longhorn's own is one as well", drainPolicy, []func(*facts){with(policy, words("block-if-contains-last-replica"))}, false, true, "block-if-contains-last-replica", "block-if-contains-last-replica", "", false},
		{"one that Longhorn does not know changes nothing", drainPolicy, []func(*facts){with(policy, words("allow"))}, false, false, "", "block-if-contains-last-replica", "not a policy of Longhorn", true},
		{"not by a node that does not lead", drainPolicy, []func(*facts){follows}, false, false, defaultPolicy, "block-if-contains-last-replica", "", false},
		{"of which such a node sees nothing", drainPolicy, []func(*facts){follows, func(f *facts) { f.tables, f.policy = nil, nil }}, false, false, defaultPolicy, "", "", false},
		{"not before Longhorn has the setting", drainPolicy, []func(*facts){func(f *facts) { f.policy = nil }}, false, true, defaultPolicy, "", "no setting", false},
		{"not on old news", drainPolicy, []func(*facts){unseen(types.TableDrainPolicy, "the watch ended")}, false, true, defaultPolicy, "block-if-contains-last-replica", "the watch ended", false},
	} {
		t.Run(row.level.String()+": "+row.rule, func(t *testing.T) {
			f := scene()
			for _, change := range row.change {
				change(&f)
			}
			a := decide(f)
			logged := []types.StorageLevel{a.status.DiskReservation, a.status.SnapshotJob, a.status.DrainPolicy}[row.level]
			m := a.moves[row.level]
			if m.begin != row.begin || m.flaw != row.flaw || m.cancel || m.putBack {
				t.Errorf("writes %v, warns %v", m.begin, m.flaw)
			}
			if logged.Kept != row.kept || logged.Wanted != row.wanted || logged.Actual != row.actual {
				t.Errorf("says %+v", logged)
			}
			if !strings.Contains(logged.Why, row.why) || row.why == "" && logged.Why != "" {
				t.Errorf("says why: %q", logged.Why)
			}
		})
	}
}

func TestALevelKeepsItsDateWhileNothingElseChanges(t *testing.T) {
	f := scene()
	f.last = decide(f).status
	first := f.now
	f.now = f.now.Add(time.Minute)
	with(types.SettingNodeDrainPolicy, words("always-allow"))(&f)
	now := decide(f).status
	if !now.SnapshotJob.Since.Equal(first) || !now.DrainPolicy.Since.Equal(f.now) {
		t.Errorf("says %+v", now)
	}
}

func TestWhatComesFromOutsideIsToldInShort(t *testing.T) {
	f := scene()
	f.node.Disks = nil
	for i := range 10_000 {
		f.node.Disks = append(f.node.Disks, types.LonghornDisk{Name: strings.Repeat("\xff", 300), Reserved: int64(i)})
	}
	f.policy.Value = strings.Repeat("x", 1<<20)
	with(types.SettingSnapshotCron, words(strings.Repeat("0", 60_000)))(&f)
	s := decide(f).status
	for _, text := range []string{s.DiskReservation.Actual, s.DrainPolicy.Actual, s.SnapshotJob.Why} {
		if len(text) > maxText+10 || text == "" {
			t.Errorf("%d bytes are told", len(text))
		}
	}
}
