package eveapi

import (
	"fmt"
	"net"

	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/config"
	"github.com/lf-edge/eve-api/go/evecommon"

	"github.com/zedkube/zedkube/types"
)

// ClusterConfig is what zedagent publishes of the cluster section m, which is
// nil where the controller sends none (docs/wire.md, "EdgeNodeClusterConfig").
// Where the section cannot be used the value is the same as for none,
// initialized and not valid, and the error says what was wrong.
func ClusterConfig(m *config.EdgeNodeCluster, beside Beside, contexts []*evecommon.CipherContext) (types.EdgeNodeClusterConfig, error) {
	if m == nil {
		return types.EdgeNodeClusterConfig{Initialized: true}, nil
	}
	c, err := clusterConfig(m, beside, contexts)
	if err != nil {
		return types.EdgeNodeClusterConfig{Initialized: true}, fmt.Errorf("read the cluster section: %w", err)
	}
	return c, nil
}

func clusterConfig(m *config.EdgeNodeCluster, beside Beside, contexts []*evecommon.CipherContext) (types.EdgeNodeClusterConfig, error) {
	c := types.EdgeNodeClusterConfig{
		Initialized: true, Valid: true,
		ClusterName: m.GetClusterName(), ClusterInterface: m.GetClusterInterface(), IsWorkerNode: m.GetIsWorkerNode(),
		EnableNativeK8SOrchestration: beside.NativeK8S, MasterNodeIDs: masters(beside.MasterNodeUUIDs),
	}
	ip, prefix, err := net.ParseCIDR(m.GetClusterIpPrefix())
	if err != nil {
		return c, fmt.Errorf("cluster address: %w", err)
	}
	c.ClusterIPPrefix = &net.IPNet{IP: ip, Mask: prefix.Mask}
	if c.JoinServerIP = net.ParseIP(m.GetJoinServerIp()); c.JoinServerIP == nil {
		return c, fmt.Errorf("join server: %q is no IP address", m.GetJoinServerIp())
	}
	c.BootstrapNode = c.JoinServerIP.Equal(ip)
	if c.ClusterID.UUID, err = uuid.Parse(m.GetClusterId()); err != nil {
		return c, fmt.Errorf("cluster UUID %q: %w", m.GetClusterId(), err)
	}
	if id := m.GetTieBreakerNodeId(); id != "" {
		if c.TieBreakerNodeID.UUID, err = uuid.Parse(id); err != nil {
			return c, fmt.Errorf("tie-breaker UUID %q: %w", id, err)
		}
	}
	if c.ClusterType, err = narrow[types.ClusterType](m.GetClusterType()); err != nil {
		return c, fmt.Errorf("cluster type: %w", err)
	}
	if c.CipherToken, err = CipherBlock(c.ClusterID.UUID.String(), m.GetEncryptedClusterToken(), contexts); err != nil {
		return c, fmt.Errorf("cluster token: %w", err)
	}
	c.CipherGzipRegistrationManifestYaml = c.CipherToken // one block holds both
	if c.NativeOrchestration() {                         // only then are there load-balancer interfaces
		c.LBInterfaces = lbInterfaces(m.GetLoadBalancerService())
	}
	return c, nil
}

// lbInterfaces takes the first prefix of each interface, unparsed as zedagent
// leaves it.
func lbInterfaces(service *config.LoadBalancerService) []types.LBInterface {
	var lbs []types.LBInterface
	for _, i := range service.GetInterfaces() {
		if cidrs := i.GetAddressCidrs(); len(cidrs) > 0 {
			lbs = append(lbs, types.LBInterface{Interface: i.GetInterfaceName(), IPPrefix: cidrs[0]})
		}
	}
	return lbs
}

// masters is nil, "not given", when one of ids is no UUID: half a list would
// look like masters that were taken out.
func masters(ids []string) []uuid.UUID {
	parsed, err := uuids(ids)
	if err != nil {
		return nil
	}
	return parsed
}

// uuids parses ids; nil for none.
func uuids(ids []string) ([]uuid.UUID, error) {
	var parsed []uuid.UUID
	for _, id := range ids {
		u, err := uuid.Parse(id)
		if err != nil {
			return nil, fmt.Errorf("UUID %q: %w", id, err)
		}
		parsed = append(parsed, u)
	}
	return parsed, nil
}

// texts is what uuids has parsed.
func texts(ids []uuid.UUID) []string {
	var out []string
	for _, id := range ids {
		out = append(out, id.String())
	}
	return out
}

// narrow is an enum's value in the smaller type that EVE keeps it in.
func narrow[T ~uint8, E ~int32](v E) (T, error) {
	if v < 0 || v > 255 {
		return 0, fmt.Errorf("there is no value %d", v)
	}
	return T(v), nil
}

// SetCluster puts c into the document as a controller sends it, in place of the
// cluster section and the cipher context of the same name; one that is not valid
// is no section. Resource labels stay.
func (d *Document) SetCluster(c types.EdgeNodeClusterConfig) {
	d.Beside.MasterNodeUUIDs, d.Beside.NativeK8S = nil, false
	d.Message.Cluster = nil
	if !c.Valid {
		return
	}
	d.Beside.MasterNodeUUIDs, d.Beside.NativeK8S = texts(c.MasterNodeIDs), c.EnableNativeK8SOrchestration
	m := &config.EdgeNodeCluster{
		ClusterName: c.ClusterName, ClusterId: c.ClusterID.UUID.String(), ClusterInterface: c.ClusterInterface,
		IsWorkerNode: c.IsWorkerNode, ClusterType: config.ClusterType(c.ClusterType),
		EncryptedClusterToken: cipherMessage(c.CipherToken),
	}
	if c.ClusterIPPrefix != nil {
		m.ClusterIpPrefix = c.ClusterIPPrefix.String()
	}
	if c.JoinServerIP != nil {
		m.JoinServerIp = c.JoinServerIP.String()
	}
	if c.TieBreakerNodeID.UUID != uuid.Nil {
		m.TieBreakerNodeId = c.TieBreakerNodeID.UUID.String()
	}
	for _, lb := range c.LBInterfaces {
		if m.LoadBalancerService == nil {
			m.LoadBalancerService = &config.LoadBalancerService{}
		}
		m.LoadBalancerService.Interfaces = append(m.LoadBalancerService.Interfaces,
			&config.LoadBalancerInterface{InterfaceName: lb.Interface, AddressCidrs: []string{lb.IPPrefix}})
	}
	d.Message.Cluster = m
	d.setContext(c.CipherToken.CipherContext)
}
