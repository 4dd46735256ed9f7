package edgecmd

import (
	"context"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/pkg/edge/cloud"
	"github.com/zedkube/zedkube/pkg/edge/join"
	"github.com/zedkube/zedkube/pkg/edge/object"
)

// auditNodes is what the audit trail says that join and leave change.
const auditNodes = "configmap/" + cloud.Where + "/" + cloud.Nodes

// recordOf is the record of who was asked to join, and its object; nil for none, where it has the edge nodes that there
// are.
func recordOf(seen map[object.Ref]object.Object, now time.Time) (join.Record, object.Object, error) {
	at := seen[cloud.RefNodes]
	record, err := cloud.RecordOf(seen, now)
	if err != nil {
		return record, at, fmt.Errorf("the record cannot be used, see kubectl -n %s edit configmap %s: %w", cloud.Where, cloud.RefNodes.Name, err)
	}
	return record, at, nil
}

// writeRecord writes the record, if it is still the one that was read.
func writeRecord(ctx context.Context, kube Cluster, at object.Object, record join.Record) error {
	data, err := record.Data()
	if err != nil {
		return err
	}
	if at == nil {
		err = kube.Create(ctx, cloud.RefNodes, cloud.RecordObject(data))
	} else {
		err = kube.Update(ctx, cloud.RefNodes, at.With(object.Map{"data": data}))
	}
	if err != nil {
		return fmt.Errorf("%w; if somebody else has just changed the record, try again", err)
	}
	return nil
}
