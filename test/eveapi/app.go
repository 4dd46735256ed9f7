package eveapi

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/config"
	"github.com/lf-edge/eve-api/go/evecommon"

	"github.com/zedkube/zedkube/types"
)

// AppConfig is what zedagent of device publishes of the application m. A device
// is the designated node of an application that names none.
func AppConfig(m *config.AppInstanceConfig, device uuid.UUID) (types.AppInstanceConfig, error) {
	id := m.GetUuidandversion()
	fail := func(err error) (types.AppInstanceConfig, error) {
		return types.AppInstanceConfig{}, fmt.Errorf("read app %q %q: %w", id.GetUuid(), m.GetDisplayname(), err)
	}
	vm := m.GetFixedresources()
	a := types.AppInstanceConfig{
		UUIDandVersion: types.UUIDandVersion{Version: id.GetVersion()},
		DisplayName:    m.GetDisplayname(),
		FixedResources: types.VMConfig{EnableVnc: vm.GetEnableVnc(), VncDisplay: vm.GetVncDisplay()},
		Activate:       m.GetActivate(), DisableLogs: vm.GetDisableLogs(), RemoteConsole: m.GetRemoteConsole(),
		PurgeCmd:           types.AppInstanceOpsCmd{Counter: m.GetPurge().GetCounter(), ApplyTime: m.GetPurge().GetOpsTime()},
		IsDesignatedNodeID: true,
	}
	var err error
	if a.UUIDandVersion.UUID, err = uuid.Parse(id.GetUuid()); err != nil {
		return fail(err)
	}
	if a.FixedResources.VirtualizationMode, err = narrow[types.VirtualizationMode](vm.GetVirtualizationMode()); err != nil {
		return fail(fmt.Errorf("virtualization mode: %w", err))
	}
	if a.AffinityType, err = narrow[types.AffinityType](m.GetAffinity()); err != nil {
		return fail(fmt.Errorf("affinity: %w", err))
	}
	if node := m.GetDesignatedNodeId(); node != "" {
		designated, err := uuid.Parse(node)
		if err != nil {
			return fail(fmt.Errorf("designated node %q: %w", node, err))
		}
		a.IsDesignatedNodeID = designated == device
	}
	for _, adapter := range m.GetAdapters() {
		kind, err := narrow[types.IoType](adapter.GetType())
		if err != nil {
			return fail(fmt.Errorf("type of adapter %q: %w", adapter.GetName(), err))
		}
		a.IoAdapterList = append(a.IoAdapterList, types.IoAdapter{Type: kind, Name: adapter.GetName()})
	}
	return a, nil
}

// SetApp puts a into the document as a controller sends it, in place of the one
// with its UUID. Designated is its designated node, whatever a says.
// LocalPurgeCmd is not the controller's and is left out.
func (d *Document) SetApp(a types.AppInstanceConfig, designated uuid.UUID) {
	m := &config.AppInstanceConfig{
		Uuidandversion: &config.UUIDandVersion{Uuid: a.UUIDandVersion.UUID.String(), Version: a.UUIDandVersion.Version},
		Displayname:    a.DisplayName,
		Fixedresources: &config.VmConfig{
			VirtualizationMode: config.VmMode(a.FixedResources.VirtualizationMode),
			EnableVnc:          a.FixedResources.EnableVnc, VncDisplay: a.FixedResources.VncDisplay, DisableLogs: a.DisableLogs,
		},
		Activate: a.Activate, RemoteConsole: a.RemoteConsole,
		DesignatedNodeId: designated.String(), Affinity: config.AffinityType(a.AffinityType),
	}
	if a.PurgeCmd != (types.AppInstanceOpsCmd{}) {
		m.Purge = &config.InstanceOpsCmd{Counter: a.PurgeCmd.Counter, OpsTime: a.PurgeCmd.ApplyTime}
	}
	for _, adapter := range a.IoAdapterList {
		m.Adapters = append(m.Adapters, &config.Adapter{Type: evecommon.PhyIoType(adapter.Type), Name: adapter.Name})
	}
	d.Message.Apps = put(d.Message.Apps, m, func(m *config.AppInstanceConfig) string { return m.GetUuidandversion().GetUuid() })
}
