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

// lookFor looks once for what there is of a name: what is in sight, and the record of who was asked to join with its
// object; nil for none, where the record has the edge nodes that there are.
func lookFor(ctx context.Context, kube Cluster, name string) (seen map[object.Ref]object.Object, record join.Record, at object.Object, err error) {
	if err = join.Name(name); err != nil {
		return nil, record, nil, err
	}
	if seen, err = look(ctx, kube); err != nil {
		return nil, record, nil, err
	}
	if record, err = cloud.RecordOf(seen, time.Now()); err != nil {
		err = fmt.Errorf("the record cannot be used, see kubectl -n %s edit configmap %s: %w", cloud.Where, cloud.RefNodes.Name, err)
	}
	return seen, record, seen[cloud.RefNodes], err
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
