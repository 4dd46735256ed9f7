package storage

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/robfig/cron/v3"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

// What EVE takes for a setting that it does not send (docs/wire.md, "Settings").
const (
	defaultReserved = 2 // gigabytes
	defaultCron     = "0 0 * * *"
	defaultPolicy   = "block-for-eviction-if-contains-last-replica"
)

const (
	gigabyte = 1 << 30
	// leaveReserved is the largest number allowed, and says that what Longhorn
	// reserves is to stay.
	leaveReserved = 1 << 20
	// maxCron is far more than a schedule needs, in bytes.
	maxCron = 256
)

// policies are the values that Longhorn knows, from 1.6 to 1.12. One more than
// EVE offers: it is Longhorn's own default.
func policies() []string {
	return []string{
		"block-for-eviction", defaultPolicy, "block-if-contains-last-replica",
		types.DrainPolicyAllowStopped, types.DrainPolicyAlwaysAllow,
	}
}

// wantedReserved is how much of each disk is to be reserved; keep is false where
// that is left to Longhorn.
func wantedReserved(m types.ConfigItemValueMap) (bytes int64, keep bool, err error) {
	const key = types.SettingDiskReserved
	item, ok := m.GlobalSettings[key]
	switch {
	case !ok:
		return defaultReserved * gigabyte, true, nil
	case item.ItemType != types.ConfigItemInt:
		return 0, false, fmt.Errorf("%s is not a number but of type %s", key, item.ItemType)
	case item.IntValue > leaveReserved:
		return 0, false, fmt.Errorf("%s is %d, and at most %d is allowed", key, item.IntValue, leaveReserved)
	}
	return int64(item.IntValue) * gigabyte, item.IntValue != leaveReserved, nil
}

// wantedCron is when snapshots are to be made, "" for never. It is read as
// Kubernetes reads it: of this Longhorn makes a CronJob.
func wantedCron(m types.ConfigItemValueMap) (string, error) {
	const key = types.SettingSnapshotCron
	text, given, err := text(m, key)
	switch {
	case err != nil:
		return "", err
	case !given:
		return defaultCron, nil
	case text == "":
		return "", nil
	case len(text) > maxCron:
		return "", fmt.Errorf("%s has %d bytes, and at most %d are allowed", key, len(text), maxCron)
	case strings.ContainsFunc(text, unicode.IsControl):
		return "", fmt.Errorf("%s %s is more than one line", key, strconv.Quote(text))
	case strings.Contains(text, "TZ"): // Kubernetes refuses it, and the parser does not take half of one
		return "", fmt.Errorf("%s %s names a time zone", key, strconv.Quote(text))
	}
	if _, err := cron.ParseStandard(text); err != nil {
		return "", fmt.Errorf("%s is not a schedule: %s: %w", key, strconv.Quote(text), err)
	}
	return text, nil
}

func wantedPolicy(m types.ConfigItemValueMap) (string, error) {
	const key = types.SettingNodeDrainPolicy
	text, _, err := text(m, key)
	switch {
	case err != nil:
		return "", err
	case text == "":
		return defaultPolicy, nil
	case !slices.Contains(policies(), text):
		return "", fmt.Errorf("%s is not a policy of Longhorn: %s", key, strconv.Quote(clip(text)))
	}
	return text, nil
}

// text is a setting of type string. An item without a type is taken for one.
func text(m types.ConfigItemValueMap, key string) (value string, given bool, err error) {
	item, given := m.GlobalSettings[key]
	if given && item.ItemType != types.ConfigItemString && item.ItemType != types.ConfigItemInvalid {
		return "", true, fmt.Errorf("%s is not a string but of type %s", key, item.ItemType)
	}
	return strings.TrimSpace(item.StrValue), given, nil
}

// maxText is how much is quoted of a text that comes from outside, in bytes.
const maxText = 512

// clip is text, without its end where that is too long.
func clip(text string) string {
	return phrase.Cut(strings.ToValidUTF8(text, "?"), maxText)
}

// desired is what a level is to be, and what is there.
type desired struct {
	kept    bool // by this node
	wanted  string
	actual  string
	target  string // what is written: another target is no correction of someone else's change
	reached bool
	why     string // why nothing is to be done although it is not reached, or not kept
	flaw    bool   // of which people have to be told
	change  change // that reaches it
}

// change is what is written for one level; which of them, the level says.
type change struct {
	node    types.LonghornNode
	bytes   int64
	setting types.LonghornSetting
	policy  string
	cron    string // "" to delete the job
	job     types.SnapshotJob
}

func (f facts) desiredLevels() [levels]desired {
	if !f.heard {
		unknown := desired{why: "the device's settings are not known yet"}
		return [levels]desired{unknown, unknown, unknown}
	}
	return [levels]desired{reservation: f.reservation(), snapshots: f.snapshots(), drainPolicy: f.drainPolicy()}
}

// refused is a setting that is invalid: what is there stays.
func refused(err error, actual string) desired {
	return desired{why: clip(err.Error()), flaw: true, actual: actual}
}

// hidden says why a table cannot be acted upon, "" if it can.
func (f facts) hidden(table string) string {
	t, ok := f.tables[table]
	switch {
	case !ok:
		return "the state of Longhorn is not known yet"
	case !t.Complete:
		return "the state of Longhorn is unknown: " + t.Why
	case t.Absent:
		return "Longhorn is not installed"
	}
	return ""
}

// reservation is for the disks of this node, no matter who leads. A tie-breaker holds
// no replicas.
func (f facts) reservation() desired {
	actual := ""
	if f.node != nil {
		actual = reserved(f.node.Disks)
	}
	bytes, keep, err := wantedReserved(f.settings)
	switch {
	case err != nil:
		return refused(err, actual)
	case !keep, f.joined && f.own.TieBreaker:
		return desired{actual: actual}
	}
	a := desired{kept: true, wanted: strconv.FormatInt(bytes, 10), actual: actual}
	switch hidden := f.hidden(types.TableLonghornNode); {
	case !f.joined:
		a.why = "this device has no Node in the cluster yet"
	case hidden != "":
		a.why = hidden
	case f.node == nil:
		a.why = "Longhorn does not know this node yet"
	case len(f.node.Disks) == 0:
		a.why = "Longhorn has no disk on this node yet"
	default:
		f.reserve(bytes, &a)
	}
	return a
}

func (f facts) reserve(bytes int64, a *desired) {
	a.change = change{node: *f.node, bytes: bytes}
	a.reached = true
	names := []string{a.wanted} // a disk that comes later is nobody's correction
	for _, d := range f.node.Disks {
		names = append(names, d.Name)
		a.reached = a.reached && d.Reserved == bytes
		if d.Maximum > 0 && bytes > d.Maximum {
			a.why = fmt.Sprintf("%s asks for %d bytes, and disk %s has %d", types.SettingDiskReserved, bytes, clip(d.Name), d.Maximum)
			a.flaw = true
			return
		}
	}
	a.target = strings.Join(names, "\x00")
}

// reserved is what disks have reserved, in one number if it is the same.
func reserved(disks []types.LonghornDisk) string {
	const most = 8 // are told
	if len(disks) == 0 {
		return ""
	}
	first := strconv.FormatInt(disks[0].Reserved, 10)
	if !slices.ContainsFunc(disks, func(d types.LonghornDisk) bool { return d.Reserved != disks[0].Reserved }) {
		return first
	}
	var parts []string
	for _, d := range disks[:min(len(disks), most)] {
		parts = append(parts, d.Name+"="+strconv.FormatInt(d.Reserved, 10))
	}
	if left := len(disks) - most; left > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", left))
	}
	return strings.Join(parts, " ")
}

// snapshots is for the cluster. Of the job only its schedule counts: the rest is
// the operator's once it is made.
func (f facts) snapshots() desired {
	actual := ""
	if f.job != nil {
		actual = f.job.Cron
	}
	cron, err := wantedCron(f.settings)
	if err != nil {
		return refused(err, actual)
	}
	a := desired{kept: f.leads, wanted: cron, actual: actual, target: cron}
	switch hidden := f.hidden(types.TableSnapshotJob); {
	case !f.leads:
	case hidden != "":
		a.why = hidden
	case f.job == nil:
		a.reached = cron == ""
	case !f.job.Ours:
		a.why, a.flaw = "the job "+types.SnapshotJobName+" exists and was not made by zedkube", cron != ""
	default:
		a.reached = cron != "" && f.job.Cron == cron
		a.change.job = *f.job
	}
	a.change.cron = cron
	return a
}

func (f facts) drainPolicy() desired {
	actual := ""
	if f.policy != nil {
		actual = f.policy.Value
	}
	policy, err := wantedPolicy(f.settings)
	if err != nil {
		return refused(err, actual)
	}
	a := desired{kept: f.leads, wanted: policy, actual: actual, target: policy}
	switch hidden := f.hidden(types.TableDrainPolicy); {
	case !f.leads:
	case hidden != "":
		a.why = hidden
	case f.policy == nil:
		a.why = "Longhorn has no setting " + types.LonghornDrainPolicy + " yet"
	default:
		a.reached = f.policy.Value == policy
		a.change = change{setting: *f.policy, policy: policy}
	}
	return a
}
