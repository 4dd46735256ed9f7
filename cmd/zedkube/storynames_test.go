package main

import (
	"fmt"
	"net"
	"strings"

	"github.com/google/uuid"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/types"
)

// workload NODE NAME ADDRESS|gone: the node's zedrouter has given a pod of namespace shop that
// address on network floor, or has no such pod any more.
func workload(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	id := uuid.NewSHA1(uuid.NameSpaceURL, []byte(args[1])).String()
	if args[2] == "gone" {
		return m.SetAppNetwork(id, nil)
	}
	if err := network(s, nil, []string{args[0], "floor"}); err != nil {
		return err
	}
	adapter := types.AppNetAdapterStatus{Network: networkID("floor")}
	adapter.AssignedAddresses.IPv4Addrs = []types.AssignedAddr{{Address: net.ParseIP(args[2])}}
	return m.SetAppNetwork(id, &types.AppNetworkStatus{
		DisplayName: args[1], Activated: true, ConfigInSync: true, KubeApp: &types.KubeAppInfo{Namespace: "shop", OwnerName: args[1]},
		AppNetAdapterList: []types.AppNetAdapterStatus{adapter},
	})
}

func networkID(name string) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)) }

// network NODE NAME [gone]: the node's zedrouter has a network instance of the cluster, or no
// longer.
func network(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	status := &types.NetworkInstanceStatus{DisplayName: args[1], Type: types.NetworkInstanceLocal, ClusterWide: true}
	if len(args) > 2 {
		status = nil
	}
	return m.SetNetwork(networkID(args[1]).String(), status)
}

// functions NODE LABEL=ADDRESS...: the node's domainmgr has these functions of SR-IOV.
func functions(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	adapters := types.AssignableAdapters{Initialized: true}
	for _, arg := range args[1:] {
		label, address, _ := strings.Cut(arg, "=")
		adapters.IoBundleList = append(adapters.IoBundleList, types.IoBundle{Type: types.IoNetEthVF, Phylabel: label, PciLong: address})
	}
	return m.SetAdapters(adapters)
}

// names TEXT...: CoreDNS is configured with each of these.
func namesAre(s *story, _ *testscript.TestScript, args []string) error {
	return within(2*patience, func() string { // CoreDNS restarts a minute after the last time at the soonest
		out, err := s.fleet.Cluster.Kubectl(s.ctx, "-n", "kube-system", "get", "configmap/coredns-custom", "-o", "jsonpath={.data}")
		if err != nil {
			return err.Error()
		}
		for _, text := range args {
			if !strings.Contains(string(out), text) {
				return fmt.Sprintf("%q is not in %s", text, out)
			}
		}
		return ""
	})
}
