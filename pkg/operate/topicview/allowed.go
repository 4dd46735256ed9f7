package topicview

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/types"
)

// ownAgents are zedkube and its commands: their topics hold no secret but those
// that pkg/base/redact knows by name.
var ownAgents = []string{"zedkube", "zedkube-cli"}

// Own reports whether an agent, with its scope, is zedkube or its commands.
func Own(agent string) bool {
	name, _, _ := strings.Cut(agent, "/")
	return slices.Contains(ownAgents, name)
}

// otherFields are the fields to show of topics that zedkube does not read itself
// and that help to understand a device: states, names and errors.
var otherFields = map[string][]string{
	"AppInstanceStatus": {"UUIDandVersion", "DisplayName", "DomainName", "Activated", "State", "EffectiveActivate", "BootTime", "Error", "ErrorTime"},
	"BaseOsStatus":      {"UUIDandVersion", "BaseOsVersion", "Activated", "State", "PartitionLabel", "PartitionDevice", "PartitionState", "Error", "ErrorTime"},
	"DomainStatus":      {"UUIDandVersion", "DisplayName", "DomainName", "DomainId", "State", "Activated", "BootTime", "BootFailed", "Error", "ErrorTime"},
	"NodeAgentStatus":   {"Name", "CurPart", "UpdateInprogress", "RemainingTestTime", "DeviceReboot", "DeviceShutdown", "DevicePoweroff", "RebootReason", "BootReason", "RebootTime", "RestartCounter"},
	"VaultStatus":       {"Name", "Status", "ConversionComplete", "Error", "ErrorTime"},
	"ZbootStatus":       {"PartitionLabel", "PartitionState", "ShortVersion", "LongVersion", "CurrentPartition", "TestComplete"},
}

// notShown is the name under which is said how much of a value is missing.
const notShown = "(not shown)"

// Allowed is the part of a value of an agent's topic that may be shown to people
// and leave the device: all of zedkube's own, and of another agent's the fields
// that zedkube knows. It is nil where nothing is known of the topic. What is not
// shown is counted under "(not shown)".
func Allowed(agent, topic string, v any) any {
	if Own(agent) {
		return v
	}
	hidden := 0
	if t, ok := known()[topic]; ok {
		v = allowed(t, v, &hidden)
	} else if fields, ok := otherFields[topic]; ok {
		v = listed(fields, v, &hidden)
	} else {
		return nil
	}
	if m, is := v.(map[string]any); is && hidden > 0 {
		m[notShown] = fmt.Sprintf("%d unknown fields", hidden)
	}
	return v
}

var setting = reflect.TypeFor[types.ConfigItemValue]()

// allowed is what a type of zedkube has of a value.
func allowed(t reflect.Type, v any, hidden *int) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := v.(type) {
	case []any:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			return v
		}
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = allowed(t.Elem(), x, hidden)
		}
		return out
	case map[string]any:
		return allowedObject(t, v, hidden)
	}
	return v
}

func allowedObject(t reflect.Type, m map[string]any, hidden *int) any {
	out := make(map[string]any, len(m))
	switch t.Kind() {
	case reflect.Map:
		for k, x := range m {
			out[k] = allowed(t.Elem(), x, hidden)
		}
	case reflect.Struct:
		fields := fieldsOf(t)
		for k, x := range m {
			f, ok := fields[strings.ToLower(strings.TrimPrefix(k, largePrefix))]
			if !ok || t == setting && strings.EqualFold(k, "StrValue") && !knownSetting(m) && x != "" {
				*hidden++
				continue
			}
			out[k] = allowed(f, x, hidden)
		}
	default:
		*hidden += len(m)
	}
	return out
}

// knownSetting reports whether an item is a setting that zedkube reads, by its
// key: the text of another one may be anything.
func knownSetting(item map[string]any) bool {
	key, _ := item["Key"].(string)
	return slices.Contains(types.SettingKeys, key)
}

// listed is what a list of names has of an object; objects within are shown
// whole, since a name is listed only where all of its value may be shown.
func listed(names []string, v any, hidden *int) any {
	m, is := v.(map[string]any)
	if !is {
		*hidden++
		return nil
	}
	out := map[string]any{}
	for k, x := range m {
		if !slices.Contains(names, k) {
			*hidden++
			continue
		}
		out[k] = x
	}
	return out
}
