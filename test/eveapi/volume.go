package eveapi

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/config"

	"github.com/zedkube/zedkube/types"
)

// VolumeConfig is what zedagent publishes of the volume m.
func VolumeConfig(m *config.Volume, beside Beside) (types.VolumeConfig, error) {
	fail := func(err error) (types.VolumeConfig, error) {
		return types.VolumeConfig{}, fmt.Errorf("read volume %q %q: %w", m.GetUuid(), m.GetDisplayName(), err)
	}
	v := types.VolumeConfig{
		DisplayName: m.GetDisplayName(), GenerationCounter: m.GetGenerationCount(),
		MaxVolSize: uint64(m.GetMaxsizebytes()), ReadOnly: m.GetReadonly(),
	}
	var err error
	if v.VolumeID, err = uuid.Parse(m.GetUuid()); err != nil {
		return fail(err)
	}
	if m.GetMaxsizebytes() < 0 {
		return fail(errors.New("its size is negative"))
	}
	if node := m.GetDesignatedNodeId(); node != "" {
		if v.DesignatedNodeID, err = uuid.Parse(node); err != nil {
			return fail(fmt.Errorf("designated node %q: %w", node, err))
		}
	}
	if v.ReplicaNodeIDs, err = uuids(beside.ReplicaNodeIDs[m.GetUuid()]); err != nil {
		return fail(fmt.Errorf("replica node: %w", err))
	}
	return v, nil
}

// SetVolume puts v into the document as a controller sends it, in place of the
// one with its UUID.
func (d *Document) SetVolume(v types.VolumeConfig) {
	m := &config.Volume{
		Uuid: v.VolumeID.String(), DisplayName: v.DisplayName, GenerationCount: v.GenerationCounter,
		Maxsizebytes: int64(v.MaxVolSize), Readonly: v.ReadOnly,
	}
	if v.DesignatedNodeID != uuid.Nil {
		m.DesignatedNodeId = v.DesignatedNodeID.String()
	}
	delete(d.Beside.ReplicaNodeIDs, m.Uuid)
	if len(v.ReplicaNodeIDs) > 0 {
		if d.Beside.ReplicaNodeIDs == nil {
			d.Beside.ReplicaNodeIDs = map[string][]string{}
		}
		d.Beside.ReplicaNodeIDs[m.Uuid] = texts(v.ReplicaNodeIDs)
	}
	d.Message.Volumes = put(d.Message.Volumes, m, (*config.Volume).GetUuid)
}
