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

// wantedPolicy is what Longhorn is to do when a node is drained.
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
