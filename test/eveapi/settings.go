package eveapi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lf-edge/eve-api/go/config"

	"github.com/zedkube/zedkube/types"
)

// integers are the settings of docs/wire.md, "Settings", that are not text.
var integers = []string{
	types.SettingDrainTimeout, types.SettingDrainUnused, types.SettingDrainSkipAPI, types.SettingDrainAllNodes, types.SettingConfigInterval,
	"storage.longhorn.disk.reserved.gigabytes",
}

// agentPrefix begins the key of a setting for one agent: the agent's name and
// the key follow.
const agentPrefix = "agent."

// Settings is what zedagent publishes of a controller's settings: those that
// are sent, without the defaults of the others. What zedkube does not know the
// type of is text.
func Settings(items []*config.ConfigItem) (types.ConfigItemValueMap, error) {
	m := types.ConfigItemValueMap{}
	seen := map[string]bool{}
	for _, item := range items {
		if seen[item.GetKey()] {
			return types.ConfigItemValueMap{}, fmt.Errorf("read setting %q: it is there twice", item.GetKey())
		}
		seen[item.GetKey()] = true
		agent, key := whose(item.GetKey())
		value, err := setting(key, item.GetValue())
		if err != nil {
			return types.ConfigItemValueMap{}, fmt.Errorf("read setting %q: %w", item.GetKey(), err)
		}
		keep(&m, agent, value)
	}
	return m, nil
}

// whose parts the key of one agent's setting; agent is "" for everybody's.
func whose(key string) (agent, rest string) {
	if own, ok := strings.CutPrefix(key, agentPrefix); ok {
		if agent, rest, ok := strings.Cut(own, "."); ok {
			return agent, rest
		}
	}
	return "", key
}

func setting(key, text string) (types.ConfigItemValue, error) {
	if !slices.Contains(integers, key) {
		return types.ConfigItemValue{Key: key, ItemType: types.ConfigItemString, StrValue: text}, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	return types.ConfigItemValue{Key: key, ItemType: types.ConfigItemInt, IntValue: uint32(n)}, err
}

func keep(m *types.ConfigItemValueMap, agent string, v types.ConfigItemValue) {
	if agent == "" {
		if m.GlobalSettings == nil {
			m.GlobalSettings = map[string]types.ConfigItemValue{}
		}
		m.GlobalSettings[v.Key] = v
		return
	}
	if m.AgentSettings == nil {
		m.AgentSettings = map[string]map[string]types.ConfigItemValue{}
	}
	if m.AgentSettings[agent] == nil {
		m.AgentSettings[agent] = map[string]types.ConfigItemValue{}
	}
	m.AgentSettings[agent][v.Key] = v
}

// SetSettings puts m into the document as a controller sends it, in place of
// all settings. It fails on a value that is neither an integer nor text, and
// then changes nothing.
func (d *Document) SetSettings(m types.ConfigItemValueMap) error {
	var items []*config.ConfigItem
	add := func(prefix string, values map[string]types.ConfigItemValue) error {
		for key, v := range values {
			item := &config.ConfigItem{Key: prefix + key, Value: v.StrValue}
			switch v.ItemType {
			case types.ConfigItemString:
			case types.ConfigItemInt:
				item.Value = strconv.FormatUint(uint64(v.IntValue), 10)
			default:
				return fmt.Errorf("write setting %q: it is of type %s", item.Key, v.ItemType)
			}
			items = append(items, item)
		}
		return nil
	}
	if err := add("", m.GlobalSettings); err != nil {
		return err
	}
	for agent, values := range m.AgentSettings {
		if err := add(agentPrefix+agent+".", values); err != nil {
			return err
		}
	}
	slices.SortFunc(items, func(a, b *config.ConfigItem) int { return cmp.Compare(a.Key, b.Key) })
	d.Message.ConfigItems = items
	return nil
}
