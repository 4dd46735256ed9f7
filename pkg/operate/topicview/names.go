package topicview

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// known are the topics whose types we have, by name.
func known() map[string]reflect.Type {
	byName := map[string]reflect.Type{}
	for _, v := range []any{
		types.AppConsoleStatus{},
		types.AppDetachRequest{},
		types.AppInstanceConfig{},
		types.AppNetworkConfig{},
		types.AppNetworkStatus{},
		types.AppRepairStatus{},
		types.AssignableAdapters{},
		types.CipherBlockStatus{},
		types.CipherMetrics{},
		types.CertsResetRequest{},
		types.ClusterLeaveRequest{},
		types.ClusterMembers{},
		types.ClusterMembership{},
		types.ClusterNodeStatus{},
		types.ClusterObject{},
		types.ClusterPeers{},
		types.WithoutCluster{},
		types.ConfigItemValueMap{},
		types.ClusterMembersJournal{},
		types.ControllerCert{},
		types.DeviceNetworkStatus{},
		types.EdgeNodeCert{},
		types.EdgeNodeClusterConfig{},
		types.EdgeNodeClusterStatus{},
		types.EdgeNodeInfo{},
		types.ENClusterAppStatus{},
		types.K3sCertificates{},
		types.K3sOverrideStatus{},
		types.K3sReleaseRequest{},
		types.K3sRetryRequest{},
		types.K3sRollbackRequest{},
		types.K3sVersionStatus{},
		types.KnownNode{},
		types.KubeClusterInfo{},
		types.KubeClusterMetrics{},
		types.KubeClusterUpdateStatus{},
		types.KubeConfig{},
		types.KubeInitStatus{},
		types.KubeLifecycle{},
		types.KubeLifecycleJournal{},
		types.KubeLeaderElectInfo{},
		types.KubeNodeConditions{},
		types.KubeNodeMetrics{},
		types.KubeReportHealth{},
		types.KubeStorageStatus{},
		types.KubeUserServices{},
		types.MetricsLook{},
		types.NetworkInstanceStatus{},
		types.MountRecovery{},
		types.NodeAgentStatus{},
		types.NodeDrainJournal{},
		types.NodeDrainProgress{},
		types.NodeDrainRequest{},
		types.NodeDrainStatus{},
		types.PodMarkers{},
		types.VolumeConfig{},
		types.WatchdogBeat{},
		types.WorkloadsRequest{},
		types.WorkloadsStatus{},
		types.ZedAgentStatus{},
	} {
		t := reflect.TypeOf(v)
		byName[t.Name()] = t
	}
	return byName
}

// Named is a copy of a value of that topic in which numbers that stand for
// something are followed by, or are, what they stand for: "COMPLETE (9)", "5m0s",
// "10.90.7.21/24". A topic whose type is not known stays as it is.
func Named(topic string, v any) any {
	if t, ok := known()[topic]; ok {
		return named(t, v)
	}
	return v
}

var (
	stringer = reflect.TypeFor[fmt.Stringer]()
	duration = reflect.TypeFor[time.Duration]()
	network  = reflect.TypeFor[net.IPNet]()
)

func named(t reflect.Type, v any) any {
	t = pointee(t)
	if n, ok := v.(json.Number); ok {
		return number(t, n)
	}
	return each(t, v, named, object)
}

// pointee is what a type of pointers leads to, and any other type itself.
func pointee(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// each is a copy of a value of a type: a list with what entry makes of each entry, or
// what object makes of an object. Other values stay.
func each(t reflect.Type, v any, entry func(reflect.Type, any) any, object func(reflect.Type, map[string]any) any) any {
	t = pointee(t)
	switch v := v.(type) {
	case []any:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			return v
		}
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = entry(t.Elem(), x)
		}
		return out
	case map[string]any:
		return object(t, v)
	}
	return v
}

func object(t reflect.Type, m map[string]any) any {
	if cidr := prefix(t, m); cidr != "" {
		return cidr
	}
	out := make(map[string]any, len(m))
	switch t.Kind() {
	case reflect.Map:
		for k, x := range m {
			out[k] = named(t.Elem(), x)
		}
	case reflect.Struct:
		fields := fieldsOf(t)
		for k, x := range m {
			out[k] = x
			if f, ok := fields[strings.ToLower(k)]; ok {
				out[k] = named(f, x)
			}
		}
	default:
		return m
	}
	return out
}

// fieldsOf are the types of a struct's fields by their names in JSON, in lower
// case: encoding/json does not regard it either.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if !f.IsExported() || f.Anonymous {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		fields[strings.ToLower(strings.TrimPrefix(name, largePrefix))] = f.Type
	}
	return fields
}

// number names the number of an enum, and writes durations as people do.
func number(t reflect.Type, n json.Number) any {
	i, err := n.Int64()
	if err != nil || !t.Implements(stringer) {
		return n
	}
	v := reflect.New(t).Elem()
	switch {
	case v.CanInt() && !v.OverflowInt(i):
		v.SetInt(i)
	case v.CanUint() && i >= 0 && !v.OverflowUint(uint64(i)):
		v.SetUint(uint64(i))
	default:
		return n
	}
	text := fmt.Sprint(v.Interface())
	if t == duration || strings.HasSuffix(text, "("+n.String()+")") {
		return text
	}
	return text + " (" + n.String() + ")"
}

// prefix is an address with its mask, as people write it; "" for other objects.
func prefix(t reflect.Type, m map[string]any) string {
	ip, _ := m["IP"].(string)
	mask, _ := m["Mask"].(string)
	raw, err := base64.StdEncoding.DecodeString(mask)
	addr := net.ParseIP(ip)
	if t != network || len(m) != 2 || err != nil || addr == nil || len(raw) == 0 {
		return ""
	}
	singles, bits := net.IPMask(raw).Size()
	if bits == 0 {
		return ""
	}
	return fmt.Sprintf("%s/%d", ip, singles)
}

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

const notShown = "(not shown)" // the name under which is said how much of a value is missing

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

func allowed(t reflect.Type, v any, hidden *int) any {
	return each(t, v,
		func(t reflect.Type, v any) any { return allowed(t, v, hidden) },
		func(t reflect.Type, m map[string]any) any { return allowedObject(t, m, hidden) })
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
