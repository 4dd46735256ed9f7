package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// appNames are the applications of the story. The controller designates the
// nodes for them in turn.
var appNames = []string{"cam", "plc", "hmi", "log", "mqtt", "ai"}

// budgeted is how many pods of the drained node stand under a
// PodDisruptionBudget that at first allows no eviction.
const budgeted = 1

// blockedApp is the application with the budget: the first one of the drained
// node, which is the second of the three.
const blockedApp = 1

// makeApps writes the applications as the controller configures them.
func makeApps() []types.AppInstanceConfig {
	apps := make([]types.AppInstanceConfig, len(appNames))
	for i, name := range appNames {
		apps[i] = types.AppInstanceConfig{
			UUIDandVersion: types.UUIDandVersion{UUID: uuid.NewSHA1(uuid.NameSpaceOID, []byte("app "+name)), Version: "1"},
			DisplayName:    name,
			FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationNoHyper},
			Activate:       true,
		}
	}
	return apps
}

// appsFor is what the controller tells device i of the applications: every
// device of the cluster knows them all.
func (s *stage) appsFor(i int) []types.AppInstanceConfig {
	apps := makeApps()
	for j := range apps {
		apps[j].IsDesignatedNodeID = j%len(s.cluster.Nodes) == i
	}
	return apps
}

// startApps does domainmgr's part: each application becomes a replica set that
// prefers its designated node.
func (s *stage) startApps(ctx context.Context) error {
	for i, app := range s.apps {
		err := s.cluster.CreateApp(ctx, devcluster.App{
			Name:   app.KubeName(),
			Domain: fmt.Sprintf("%s.%s.%d", app.UUIDandVersion.UUID, app.UUIDandVersion.Version, i+1),
			Node:   s.cluster.Nodes[i%len(s.cluster.Nodes)].Name,
		})
		if err != nil {
			return err
		}
	}
	return s.cluster.SetBudget(ctx, s.apps[blockedApp].KubeName(), 1)
}

// openBudget allows the eviction of the application with the budget.
func (s *stage) openBudget(ctx context.Context) error {
	s.view.Event("", "operator", "opens the PodDisruptionBudget of "+s.apps[blockedApp].DisplayName)
	return s.cluster.SetBudget(ctx, s.apps[blockedApp].KubeName(), 0)
}
