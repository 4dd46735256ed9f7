package types

import (
	"math"
	"time"
)

// ConfigItemType says which value field of a ConfigItemValue counts.
type ConfigItemType uint8

// The item types of docs/wire.md, "ConfigItemValueMap".
const (
	ConfigItemInvalid ConfigItemType = iota
	ConfigItemInt
	ConfigItemBool
	ConfigItemString
	ConfigItemTriState
)

// String returns the name of the value.
func (t ConfigItemType) String() string {
	return enumName("ConfigItemType", []string{"Invalid", "Int", "Bool", "String", "TriState"}, t)
}

// ConfigItemValue is one setting.
type ConfigItemValue struct {
	Key           string
	ItemType      ConfigItemType
	IntValue      uint32
	StrValue      string
	BoolValue     bool
	TriStateValue uint8
}

// ConfigItemValueMap is the device's settings, under key "global": the ones
// for everybody and the ones for one agent by name.
type ConfigItemValueMap struct {
	GlobalSettings map[string]ConfigItemValue
	AgentSettings  map[string]map[string]ConfigItemValue
}

// The settings zedkube reads (docs/wire.md, "Settings").
const (
	SettingDrainTimeout    = "kubernetes.drain.timeout"                  // hours
	SettingDrainUnused     = "kubernetes.drain.unused.timeout"           // hours
	SettingDrainSkipAPI    = "drain.skip.k8sapinotreachable.timeout"     // seconds
	SettingDrainAllNodes   = "kubernetes.drain.allnodes.config.multiple" // times the config interval
	SettingNodeDrainPolicy = "storage.longhorn.node-drain-policy"        // Longhorn's, for drains
	SettingDiskReserved    = "storage.longhorn.disk.reserved.gigabytes"  // of each of Longhorn's disks
	SettingSnapshotCron    = "storage.longhorn.snapshot.cron"            // "" for no snapshots
	SettingConfigInterval  = "timer.config.interval"                     // seconds
	SettingK3sVersion      = "k3s.version"                               // "" for the kube container's own
	SettingK3sOverride     = "k3s.config.override"                       // base64 of a k3s configuration file
	SettingDescheduleOn    = "kubernetes.vmi.deschedule.events"          // comma-separated; "boot"
	SettingDefaultLogLevel = "debug.default.loglevel"                    // logrus level
	SettingAgentLogLevel   = "debug.loglevel"                            // logrus level, in AgentSettings
)

// SettingKeys are the settings zedkube reads.
var SettingKeys = []string{
	SettingDrainTimeout, SettingDrainSkipAPI, SettingDrainAllNodes, SettingNodeDrainPolicy, SettingDiskReserved, SettingSnapshotCron,
	SettingConfigInterval, SettingK3sVersion, SettingK3sOverride, SettingDescheduleOn, SettingDefaultLogLevel, SettingAgentLogLevel,
}

// Duration is the integer setting key in units, or def where it is missing,
// of another type, or zero: EVE treats zero as "not set" for these. What is too
// long for a Duration is the longest one there is.
func (m ConfigItemValueMap) Duration(key string, unit, def time.Duration) time.Duration {
	item, ok := m.GlobalSettings[key]
	if !ok || item.ItemType != ConfigItemInt || item.IntValue == 0 {
		return def
	}
	return min(time.Duration(item.IntValue), math.MaxInt64/unit) * unit
}

// LogLevel is the log level set for agent, else the one for every agent, else "".
func (m ConfigItemValueMap) LogLevel(agent string) string {
	if item, ok := m.AgentSettings[agent][SettingAgentLogLevel]; ok && item.StrValue != "" {
		return item.StrValue
	}
	return m.GlobalSettings[SettingDefaultLogLevel].StrValue
}
