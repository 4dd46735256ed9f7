package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/eveapi"
	"github.com/zedkube/zedkube/types"
)

// failoverStory needs the real KubeVirt, which starts a machine again elsewhere.
const failoverStory = "failover"

// lostNode is the node that loses its power, by its number.
const lostNode = 2

func (s *stage) failover() []step {
	return []step{
		{"a virtual machine runs on the third node", s.machineRuns},
		{"that device loses its power", s.powerFails},
		{"the others prove that it is off, and the machine starts on one of them", s.machineMoves},
	}
}

// machine is the virtual machine of the story, as the controller configures it.
func (s *stage) machine() types.AppInstanceConfig {
	return types.AppInstanceConfig{
		UUIDandVersion: types.UUIDandVersion{UUID: uuid.NewSHA1(uuid.NameSpaceOID, []byte("app vm")), Version: "1"},
		DisplayName:    "vm", Activate: true,
		FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationHVM},
	}
}

func (s *stage) machineRuns(ctx context.Context) (string, error) {
	vm := s.machine()
	for _, n := range s.nodes {
		if err := n.Send(func(d *eveapi.Document) error { d.SetApp(vm, s.fleet.IDs()[lostNode]); return nil }); err != nil {
			return "", err
		}
	}
	_, err := s.cluster.CreateVM(ctx, devcluster.App{
		Name: vm.KubeName(), Domain: fmt.Sprintf("%s.1.%d", vm.UUIDandVersion.UUID, len(s.apps)+1), Node: s.nodes[lostNode].Name,
	})
	if err != nil {
		return "", err
	}
	s.apps = append(s.apps, vm)
	return s.nodes[lostNode].Name + ", ", s.until(ctx, func() string {
		if claiming := s.claims(vm); len(claiming) != 1 || claiming[0] != s.nodes[lostNode].Name {
			return fmt.Sprintf("it is claimed by %v", claiming)
		}
		return ""
	})
}

func (s *stage) powerFails(ctx context.Context) (string, error) {
	n := s.nodes[lostNode]
	n.KillProgram()
	n.PowerOff()
	s.cluster.StopKubelet(lostNode)
	end, err := s.cluster.Silence(ctx, lostNode, types.PortStatus, types.PortKubelet)
	if err != nil {
		return "", err
	}
	context.AfterFunc(s.alive, end)
	s.view.Event(n.Name, "device", "has no power")
	return n.Name + ", ", nil
}

func (s *stage) machineMoves(ctx context.Context) (string, error) {
	vm, where := s.machine(), ""
	err := s.until(ctx, func() string {
		for _, name := range s.claims(vm) {
			if name != s.nodes[lostNode].Name { // whose files say what was so before
				where = name
				return ""
			}
		}
		return "no other node claims it"
	})
	return where + ", ", err
}
