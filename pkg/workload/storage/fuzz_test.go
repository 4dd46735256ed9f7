package storage

import (
	"slices"
	"strings"
	"testing"

	"github.com/robfig/cron/v3"

	"github.com/zedkube/zedkube/types"
)

// Whatever the settings say, what is written is something Longhorn takes, and
// what is not written is explained.
func FuzzSettings(f *testing.F) {
	f.Add(uint8(1), uint32(2), "0 0 * * *", "always-allow")
	f.Add(uint8(3), uint32(1048577), "TZ=0", "")
	f.Add(uint8(0), uint32(1048576), "@every 1h", "block")
	f.Add(uint8(3), uint32(0), "CRON_TZ=", "\x00")
	f.Add(uint8(3), uint32(0), "*/0 60 * * *", strings.Repeat("x", 1000))
	f.Fuzz(func(t *testing.T, kind uint8, n uint32, schedule, policy string) {
		facts := scene()
		for key, text := range map[string]string{types.SettingDiskReserved: "", types.SettingSnapshotCron: schedule, types.SettingNodeDrainPolicy: policy} {
			facts.settings.GlobalSettings[key] = types.ConfigItemValue{Key: key, ItemType: types.ConfigItemType(kind), IntValue: n, StrValue: text}
		}
		a := decide(facts)
		reserve, snap, drain := a.moves[reservation], a.moves[snapshots], a.moves[drainPolicy]
		if reserve.begin && (reserve.change.bytes < 0 || reserve.change.bytes > 50*gb) {
			t.Errorf("reserves %d bytes", reserve.change.bytes)
		}
		if snap.begin {
			if _, err := cron.ParseStandard(snap.change.cron); err != nil {
				t.Errorf("makes a job of %q: %v", snap.change.cron, err)
			}
		}
		if drain.begin && !slices.Contains(policies(), drain.change.policy) {
			t.Errorf("sets the policy %q", drain.change.policy)
		}
		for l, m := range a.moves {
			off := level(l) == reservation && n == leaveReserved || level(l) == snapshots && strings.TrimSpace(schedule) == "" ||
				level(l) == drainPolicy && strings.TrimSpace(policy) == facts.policy.Value
			if !m.begin && m.why == "" && !off {
				t.Errorf("%s is not written, and nobody is told why", level(l))
			}
			if len(m.why) > 2*maxText {
				t.Errorf("%d bytes are logged", len(m.why))
			}
		}
	})
}
