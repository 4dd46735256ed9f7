package topicview

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"reflect"
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
		types.AppRepairStatus{},
		types.AssignableAdapters{},
		types.CipherBlockStatus{},
		types.CipherMetrics{},
		types.ClusterLeaveRequest{},
		types.ClusterMembers{},
		types.ClusterMembership{},
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
		types.K3sReleaseRequest{},
		types.K3sVersionStatus{},
		types.KnownNode{},
		types.KubeClusterInfo{},
		types.KubeClusterMetrics{},
		types.KubeClusterUpdateStatus{},
		types.KubeConfig{},
		types.KubeInitStatus{},
		types.KubeLeaderElectInfo{},
		types.KubeNodeConditions{},
		types.KubeNodeMetrics{},
		types.KubeReportHealth{},
		types.KubeStorageStatus{},
		types.KubeUserServices{},
		types.MetricsLook{},
		types.NodeAgentStatus{},
		types.NodeDrainJournal{},
		types.NodeDrainProgress{},
		types.NodeDrainRequest{},
		types.NodeDrainStatus{},
		types.VolumeConfig{},
		types.WatchdogBeat{},
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
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := v.(type) {
	case json.Number:
		return number(t, v)
	case []any:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			return v
		}
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = named(t.Elem(), x)
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
