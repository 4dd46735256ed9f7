// Package evereport translates what zedkube publishes of the cluster into the
// messages that a controller gets of it (the protobufs info and metrics of
// eve-api).
//
// Names that are not UTF-8 are made so, since no message can hold them; a time
// that is zero, or that a message cannot hold, is absent; a value of an enum
// that the other side lacks is its unspecified one.
package evereport

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/info"
	"github.com/lf-edge/eve-api/go/metrics"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/zedkube/zedkube/types"
)

// Sender is from whom a message is, and as of when.
type Sender struct {
	Device    uuid.UUID
	ClusterID uuid.UUID // the zero UUID for none
	At        time.Time // what the message says was true then
}

// Cluster is the message of the whole cluster, which only the node that
// reports for it sends.
func (s Sender) Cluster(r types.KubeClusterInfo) *info.ZInfoMsg {
	m := s.message(info.ZInfoTypes_ZiKubeCluster)
	m.InfoContent = &info.ZInfoMsg_ClusterInfo{ClusterInfo: Cluster(r, s.ClusterID)}
	return m
}

// Update is the message of an update of the kube container's components.
func (s Sender) Update(u types.KubeClusterUpdateStatus) *info.ZInfoMsg {
	m := s.message(info.ZInfoTypes_ZiKubeClusterUpdateStatus)
	m.InfoContent = &info.ZInfoMsg_ClusterUpdateInfo{ClusterUpdateInfo: Update(u, s.ClusterID)}
	return m
}

// Node is the message of how the cluster sees the device's own node. eve-api
// has no type of message for it: it goes by its content.
func (s Sender) Node(n types.KubeNodeStatus) *info.ZInfoMsg {
	m := s.message(info.ZInfoTypes_ZiNop)
	m.InfoContent = &info.ZInfoMsg_ClusterNode{ClusterNode: Node(n)}
	return m
}

// App is the message of an application, as far as zedkube knows it.
func (s Sender) App(a types.ENClusterAppStatus, cfg types.AppInstanceConfig) *info.ZInfoMsg {
	m := s.message(info.ZInfoTypes_ZiApp)
	m.InfoContent = &info.ZInfoMsg_Ainfo{Ainfo: App(a, cfg)}
	return m
}

// Metrics is the message of what the cluster's kubelets measure.
func (s Sender) Metrics(c types.KubeClusterMetrics) *metrics.ZMetricMsg {
	return &metrics.ZMetricMsg{DevID: id(s.Device), AtTimeStamp: stamp(s.At), Cm: Metrics(c, s.ClusterID)}
}

func (s Sender) message(kind info.ZInfoTypes) *info.ZInfoMsg {
	return &info.ZInfoMsg{Ztype: kind, DevId: id(s.Device), AtTimeStamp: stamp(s.At)}
}

// JSON is the message in protobuf's JSON, indented. The same message always
// gives the same bytes; a field that is zero is left out.
func JSON(m proto.Message) ([]byte, error) {
	raw, err := protojson.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("write message %s: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil { // protojson's own blanks differ from program to program
		return nil, fmt.Errorf("write message %s: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return b.Bytes(), nil
}

// Binary is the message as it goes over the network.
func Binary(m proto.Message) ([]byte, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("write message %s: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return raw, nil
}

// Steady is what makes a message differ from the one before: not the time until which a state is
// known to be so, but that of a measurement.
func Steady(m proto.Message) []byte {
	if state, ok := m.(*info.ZInfoMsg); ok {
		state = proto.CloneOf(state)
		state.AtTimeStamp = nil
		m = state
	}
	raw, _ := Binary(m) // what cannot be written is refused where it is
	return raw
}

// text is s as a message can hold it.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// id is "" for the zero UUID, which names nothing.
func id(u uuid.UUID) string {
	if u == uuid.Nil {
		return ""
	}
	return u.String()
}

func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	if s := timestamppb.New(t); s.IsValid() {
		return s
	}
	return nil
}

// each translates a list; nil for an empty one.
func each[A, B any](list []A, one func(A) B) []B {
	var out []B
	for _, a := range list {
		out = append(out, one(a))
	}
	return out
}

const (
	milliPerCore = 1000
	nanoPerMilli = 1_000_000
	nanoPerCore  = milliPerCore * nanoPerMilli
)

// Metrics is the message of what the cluster's kubelets measure. What is not
// measured is zero there, since the message tells it from zero nowhere; and
// what does not fit into its 32 bits, as memory from 4 GiB on, is the largest
// number that does. MemoryUsage is the working set.
func Metrics(c types.KubeClusterMetrics, cluster uuid.UUID) *metrics.KubeClusterMetrics {
	return &metrics.KubeClusterMetrics{
		ClusterId: id(cluster), Nodes: each(c.Nodes, nodeMetrics),
		EvePodApps: each(c.Apps, appMetrics), EveVmiApps: each(c.VMIs, appMetrics),
	}
}

// nodeMetrics: CpuCores are those that the node has, in thousandths, and
// CpuUsage is the percentage of them that is used.
func nodeMetrics(n types.ClusterNodeMetrics) *metrics.KubeNodeMetrics {
	return &metrics.KubeNodeMetrics{
		Name: text(n.Name), CpuCores: saturate(uint64(max(n.Cores, 0)), milliPerCore),
		CpuUsage:    percent(n.CPU, uint64(max(n.Cores, 0)), nanoPerCore),
		MemoryUsage: saturate(value(n.Memory), 1), MemoryUsagePercentage: percent(n.Memory, value(n.Total), 1),
	}
}

// appMetrics: CpuCores are those that are used, in thousandths, since an
// application has no other field for it. Its name is that of the application,
// where it is known.
func appMetrics(a types.ClusterAppMetrics) *metrics.KubeAppMetrics {
	nano := value(a.CPU)
	milli := nano / nanoPerMilli
	if nano%nanoPerMilli >= nanoPerMilli/2 {
		milli++
	}
	return &metrics.KubeAppMetrics{Name: text(cmp.Or(a.App, a.Name)), CpuCores: saturate(milli, 1), MemoryUsage: saturate(value(a.Memory), 1)}
}

// value is zero for what is not measured.
func value(v *uint64) uint64 {
	if v == nil {
		return 0
	}
	return *v
}

// saturate is n times unit, or the most that a field holds.
func saturate(n, unit uint64) uint32 {
	if n > math.MaxUint32/unit {
		return math.MaxUint32
	}
	return uint32(n * unit) //nolint:gosec // the most is looked at above
}

// percent is how much of total units is used; zero where one of them is not
// known. It may be more than 100: the kubelet measures both at different times.
func percent(used *uint64, total, unit uint64) float32 {
	if used == nil || total == 0 {
		return 0
	}
	return float32(float64(*used) / (float64(total) * float64(unit)) * 100)
}
