package eveapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lf-edge/eve-api/go/config"
)

// Beside is what controllers send in an EdgeDevConfig and the message does not
// hold. In JSON each field has its name in camel case or as the protobuf spells
// it; one that is null is absent.
type Beside struct {
	MasterNodeUUIDs []string            // cluster.masterNodeUuids
	NativeK8S       bool                // cluster.enableNativeK8sOrchestration
	ResourceLabels  map[string]string   // cluster.resourceLabel
	ReplicaNodeIDs  map[string][]string // volumes[].replicaNodeId, by volumes[].uuid as it is spelled there
}

// The names of the fields of Beside: the first is the one that is written.
var (
	masterNames  = []string{"masterNodeUuids", "master_node_uuids"}
	nativeNames  = []string{"enableNativeK8sOrchestration", "enable_native_k8s_orchestration"}
	labelNames   = []string{"resourceLabel", "resource_label", "ResourceLabel"}
	replicaNames = []string{"replicaNodeId", "replica_node_id", "ReplicaNodeID"}
)

// object is a JSON object of which only some fields are read.
type object map[string]json.RawMessage

// read puts the field that has one of names into v, which stays as it is when
// there is none.
func (o object) read(v any, names ...string) error {
	found := ""
	for _, name := range names {
		raw, ok := o[name]
		if !ok {
			continue
		}
		if found != "" {
			return fmt.Errorf("%s and %s are the same field", found, name)
		}
		found = name
		if err := json.Unmarshal(raw, v); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// parseBeside reads data, of which the message is already known to be good.
func parseBeside(data []byte, message *config.EdgeDevConfig) (Beside, error) {
	var b Beside
	var whole, cluster object
	var volumes []object
	if err := json.Unmarshal(data, &whole); err != nil {
		return Beside{}, err
	}
	if err := whole.read(&cluster, "cluster"); err != nil {
		return Beside{}, err
	}
	if err := whole.read(&volumes, "volumes"); err != nil {
		return Beside{}, err
	}
	err := errors.Join(cluster.read(&b.MasterNodeUUIDs, masterNames...), cluster.read(&b.NativeK8S, nativeNames...),
		cluster.read(&b.ResourceLabels, labelNames...))
	if err != nil {
		return Beside{}, fmt.Errorf("cluster: %w", err)
	}
	for i, volume := range volumes {
		var nodes []string
		if err := volume.read(&nodes, replicaNames...); err != nil {
			return Beside{}, fmt.Errorf("volume %d: %w", i, err)
		}
		if len(nodes) == 0 || i >= len(message.GetVolumes()) {
			continue
		}
		if b.ReplicaNodeIDs == nil {
			b.ReplicaNodeIDs = map[string][]string{}
		}
		b.ReplicaNodeIDs[message.GetVolumes()[i].GetUuid()] = nodes
	}
	return b, nil
}

// addTo writes what is beside into the JSON of the message.
func (b Beside) addTo(data []byte) ([]byte, error) {
	var whole map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // a float64 would round
	if err := d.Decode(&whole); err != nil {
		return nil, fmt.Errorf("write the EdgeDevConfig: %w", err)
	}
	if cluster, ok := whole["cluster"].(map[string]any); ok {
		if len(b.MasterNodeUUIDs) > 0 {
			cluster[masterNames[0]] = b.MasterNodeUUIDs
		}
		if b.NativeK8S {
			cluster[nativeNames[0]] = true
		}
		if len(b.ResourceLabels) > 0 {
			cluster[labelNames[0]] = b.ResourceLabels
		}
	}
	volumes, _ := whole["volumes"].([]any)
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		id, _ := volume["uuid"].(string)
		if nodes := b.ReplicaNodeIDs[id]; len(nodes) > 0 {
			volume[replicaNames[0]] = nodes
		}
	}
	out, err := json.MarshalIndent(whole, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the EdgeDevConfig: %w", err)
	}
	return append(out, '\n'), nil
}
