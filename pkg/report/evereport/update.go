package evereport

import (
	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/info"

	"github.com/zedkube/zedkube/types"
)

// Update is the message of an update of the kube container's components. It
// has an error only where there is one; the version that is updated to has no
// field.
func Update(u types.KubeClusterUpdateStatus, cluster uuid.UUID) *info.ZInfoKubeClusterUpdateStatus {
	return &info.ZInfoKubeClusterUpdateStatus{
		CurrentNode: text(u.CurrentNode),
		Component:   components.toEVE(u.Component),
		Status:      updates.toEVE(u.Status),
		Error:       errorInfo(u.ErrorDescription),
		ClusterId:   id(cluster),
	}
}

func errorInfo(e types.ErrorDescription) *info.ErrorInfo {
	if e.Error == "" {
		return nil
	}
	m := &info.ErrorInfo{
		Description: text(e.Error), Timestamp: stamp(e.ErrorTime), Severity: severities.toEVE(e.ErrorSeverity),
		RetryCondition: text(e.ErrorRetryCondition),
	}
	for _, entity := range e.ErrorEntities {
		if entity != nil {
			m.Entities = append(m.Entities, &info.DeviceEntity{Entity: kind(entity.EntityType), EntityId: text(entity.EntityID)})
		}
	}
	return m
}

// kind is the type of an entity, whose numbers EVE takes from eve-api.
func kind(number int32) info.Entity {
	if _, known := info.Entity_name[number]; !known {
		return info.Entity_ENTITY_UNSPECIFIED
	}
	return info.Entity(number)
}
