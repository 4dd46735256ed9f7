package podnetworks

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// selection is an entry of the annotation k8s.v1.cni.cncf.io/networks.
type selection struct {
	Name         string   `json:"name"`
	Namespace    string   `json:"namespace"`
	MAC          string   `json:"mac"`
	IPs          []string `json:"ips"`
	DefaultRoute []net.IP `json:"default-route"`
	PortMappings []struct {
		HostPort      int    `json:"hostPort"`
		ContainerPort int    `json:"containerPort"`
		Protocol      string `json:"protocol"`
	} `json:"portMappings"`
}

// configOf is the configuration for the workload of a pod, and its attachments to
// network instances; without one it is the identity alone.
func configOf(p types.Pod, nads map[string]uuid.UUID) (config types.AppNetworkConfig, list []selection, err error) {
	owner := cmp.Or(p.Owner.Name, p.Name)
	seed := uuid.NewSHA1(uuid.NameSpaceOID, []byte("eve-kube-app-network-id"))
	config = types.AppNetworkConfig{
		UUIDandVersion: types.UUIDandVersion{UUID: uuid.NewSHA1(seed, []byte(p.Namespace+"/"+owner)), Version: "1"},
		DisplayName:    cmp.Or(p.Deployment, owner), Activate: true,
		KubeApp: &types.KubeAppInfo{Namespace: p.Namespace, OwnerName: owner},
	}
	if list, err = parse(strings.TrimSpace(p.Networks)); err != nil {
		return config, nil, fmt.Errorf("the annotation is not valid: %w", err)
	}
	list = slices.DeleteFunc(list, func(s selection) bool {
		return !strings.HasPrefix(s.Name, types.NetworkNADPrefix) || cmp.Or(s.Namespace, p.Namespace) != types.NamespaceApps
	})
	taken := map[uuid.UUID]bool{}
	for i, s := range list {
		id, known := nads[s.Name]
		a := types.AppNetAdapterConfig{Name: "net" + strconv.Itoa(i), IntfOrder: uint32(i), Network: id, ACLs: rules(s)}
		switch err := s.fill(&a); {
		case err != nil:
			return config, list, fmt.Errorf("%s: %w", s.Name, err)
		case !known:
			return config, list, fmt.Errorf("no network instance has the name %s", s.Name)
		case id == uuid.Nil:
			return config, list, fmt.Errorf("several network instances have the name %s", s.Name)
		case taken[id]:
			return config, list, fmt.Errorf("%s is named twice", s.Name)
		}
		taken[id] = true
		config.AppNetAdapterList = append(config.AppNetAdapterList, a)
	}
	return config, list, nil
}

// parse reads both grammars of the annotation: a list in JSON, and names with commas
// between them, which can say nothing else.
func parse(text string) (list []selection, err error) {
	if strings.HasPrefix(text, "[") {
		return list, json.Unmarshal([]byte(text), &list)
	}
	for entry := range strings.SplitSeq(text, ",") {
		entry, _, _ = strings.Cut(strings.TrimSpace(entry), "@")
		slash := strings.Index(entry, "/")
		list = append(list, selection{Namespace: entry[:max(slash, 0)], Name: entry[slash+1:]})
	}
	return list, nil
}

// fill takes over the addresses that a pod asks for.
func (s selection) fill(a *types.AppNetAdapterConfig) (err error) {
	if s.MAC != "" {
		if a.AppMacAddr, err = net.ParseMAC(s.MAC); err != nil {
			return err
		}
	}
	if len(s.IPs) > 0 {
		address, _, _ := strings.Cut(s.IPs[0], "/")
		if a.AppIPAddr = net.ParseIP(address); a.AppIPAddr == nil {
			return fmt.Errorf("%q is not an IP address", s.IPs[0])
		}
	}
	if len(s.DefaultRoute) > 0 {
		if a.DefaultRouteVia = s.DefaultRoute[0]; a.DefaultRouteVia == nil || a.DefaultRouteVia.IsUnspecified() {
			return errors.New("the gateway of the default route is not an address")
		}
	}
	return nil
}

// rules allow everything, as zedrouter drops what no rule allows, and map ports. A
// mapping that is not valid is left out, as by EVE's own zedkube.
func rules(s selection) []types.ACE {
	list := []types.ACE{
		{Name: "allow-ipv4", RuleID: 1, Matches: []types.ACEMatch{{Type: "ip", Value: "0.0.0.0/0"}}},
		{Name: "allow-ipv6", RuleID: 2, Matches: []types.ACEMatch{{Type: "ip", Value: "::/0"}}},
	}
	isPort := func(n int) bool { return 0 < n && n < 1<<16 }
	for _, m := range s.PortMappings {
		protocol, port := strings.ToLower(strings.TrimSpace(m.Protocol)), strconv.Itoa(m.HostPort)
		if protocol != "tcp" && protocol != "udp" || !isPort(m.HostPort) || !isPort(m.ContainerPort) {
			continue
		}
		list = append(list, types.ACE{
			Name: "map-" + protocol + "-" + port, RuleID: int32(98 + len(list)), Dir: types.ACEIngress, //nolint:gosec // 100 for the first
			Matches: []types.ACEMatch{{Type: "protocol", Value: protocol}, {Type: "lport", Value: port}},
			Actions: []types.ACEAction{{PortMap: true, TargetPort: m.ContainerPort}},
		})
	}
	return list
}
