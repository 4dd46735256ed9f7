// Package eveapi translates between a controller's messages (the protobufs of
// eve-api) and what zedagent publishes of them: an EdgeDevConfig on one side,
// EdgeNodeClusterConfig, AppInstanceConfig, VolumeConfig and ConfigItemValueMap
// on the other, as far as zedkube's types carry them (docs/wire.md,
// "EdgeNodeClusterConfig", "AppInstanceConfig", "Settings").
//
// What the module's EdgeDevConfig lacks and newer controllers send is read
// beside the message, from the same JSON: see Beside.
package eveapi

import (
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/config"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/zedkube/zedkube/types"
)

// Document is what a controller sends one device.
type Document struct {
	Message *config.EdgeDevConfig
	Beside  Beside
}

// New is a document for the device of that UUID that says nothing else.
func New(device uuid.UUID) Document {
	return Document{Message: &config.EdgeDevConfig{Id: &config.UUIDandVersion{Uuid: device.String(), Version: "1"}}}
}

// put is list with m in place of the one of the same name, or at the end.
func put[M any](list []M, m M, name func(M) string) []M {
	if i := slices.IndexFunc(list, func(other M) bool { return name(other) == name(m) }); i >= 0 {
		list[i] = m
		return list
	}
	return append(list, m)
}

// Configuration is what zedagent publishes of a Document. All of it is good,
// but for Cluster, whose Valid says so.
type Configuration struct {
	Cluster types.EdgeNodeClusterConfig
	// ClusterFault is why Cluster is not valid although the document has a
	// cluster section. The topic does not carry it.
	ClusterFault   error
	Apps           []types.AppInstanceConfig
	Volumes        []types.VolumeConfig
	Settings       types.ConfigItemValueMap
	ResourceLabels map[string]string
}

// ParseJSON reads an EdgeDevConfig in protobuf JSON. Fields that neither the
// message nor Beside has are left out, and so are enum names of a newer eve-api:
// such a field has its first value.
func ParseJSON(data []byte) (Document, error) {
	message := &config.EdgeDevConfig{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, message); err != nil {
		return Document{}, fmt.Errorf("parse the EdgeDevConfig: %w", err)
	}
	beside, err := parseBeside(data, message)
	if err != nil {
		return Document{}, fmt.Errorf("parse the EdgeDevConfig: %w", err)
	}
	return Document{Message: message, Beside: beside}, nil
}

// ParseBinary reads an EdgeDevConfig as it goes over the network. Beside stays
// empty: the numbers of its fields are not known.
func ParseBinary(data []byte) (Document, error) {
	message := &config.EdgeDevConfig{}
	if err := proto.Unmarshal(data, message); err != nil {
		return Document{}, fmt.Errorf("parse the EdgeDevConfig: %w", err)
	}
	return Document{Message: message}, nil
}

// JSON is the document in protobuf JSON with what is beside, indented for
// people. The same document always gives the same bytes.
func (d Document) JSON() ([]byte, error) {
	data, err := protojson.Marshal(d.Message)
	if err != nil {
		return nil, fmt.Errorf("write the EdgeDevConfig: %w", err)
	}
	return d.Beside.addTo(data)
}

// For is what zedagent of device publishes of the document. A cluster section
// that cannot be used makes Cluster invalid, as in EVE; anything else gives an
// error and no configuration at all.
func (d Document) For(device uuid.UUID) (Configuration, error) {
	var c Configuration
	var err error
	m := d.Message
	c.Cluster, c.ClusterFault = ClusterConfig(m.GetCluster(), d.Beside, m.GetCipherContexts())
	for _, app := range m.GetApps() {
		a, err := AppConfig(app, device)
		if err != nil {
			return Configuration{}, err
		}
		if slices.ContainsFunc(c.Apps, func(b types.AppInstanceConfig) bool { return b.UUIDandVersion.UUID == a.UUIDandVersion.UUID }) {
			return Configuration{}, fmt.Errorf("read app %s: it is there twice", a.UUIDandVersion.UUID)
		}
		c.Apps = append(c.Apps, a)
	}
	for _, volume := range m.GetVolumes() {
		v, err := VolumeConfig(volume, d.Beside)
		if err != nil {
			return Configuration{}, err
		}
		if slices.ContainsFunc(c.Volumes, func(w types.VolumeConfig) bool { return w.VolumeID == v.VolumeID }) {
			return Configuration{}, fmt.Errorf("read volume %s: it is there twice", v.VolumeID)
		}
		c.Volumes = append(c.Volumes, v)
	}
	if c.Settings, err = Settings(m.GetConfigItems()); err != nil {
		return Configuration{}, err
	}
	c.ResourceLabels = d.Beside.ResourceLabels
	return c, nil
}
