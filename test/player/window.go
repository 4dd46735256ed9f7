package player

import "github.com/zedkube/zedkube/types"

// ShortWindow are settings with which EVE's window against drains of all nodes is
// three seconds long. It holds in every drain until the stamps of the other agents
// have been seen to change, which takes up to ten minutes from an agent's start.
func ShortWindow() map[string]types.ConfigItemValue {
	items := map[string]types.ConfigItemValue{}
	for key, value := range map[string]uint32{types.SettingDrainAllNodes: 1, types.SettingConfigInterval: 3} {
		items[key] = types.ConfigItemValue{Key: key, ItemType: types.ConfigItemInt, IntValue: value}
	}
	return items
}

// Configure sends all devices the settings, in place of all others.
func (f *Fleet) Configure(items map[string]types.ConfigItemValue) error {
	for _, m := range f.Members {
		if err := m.ConfigureSettings(types.ConfigItemValueMap{GlobalSettings: items}); err != nil {
			return err
		}
	}
	return nil
}
