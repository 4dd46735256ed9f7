package audit

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// The requesters of a drain, as NodeDrainProgress names them.
const (
	byDeviceOp = "DEVICEOP"
	byUpdate   = "UPDATE"
	byOperator = "OPERATOR"
)

// asks is what the device is asked for now, by ID, and the kinds of requests whose
// topic has not been heard of yet. An ID is made of the request, so that the one
// line of a request that stands over a restart replaces the other.
func (c *Component) asks() (pending map[string]types.Operation, silent map[string]bool) {
	pending, silent = map[string]types.Operation{}, map[string]bool{}
	info, _ := c.Record.Info.Get(types.Global)
	node := "node/" + info.NodeName()
	for by, topic := range map[string]interface {
		Synced() bool
		Get(string) (types.NodeDrainRequest, bool)
	}{byDeviceOp: c.DeviceOp, byUpdate: c.Update, byOperator: c.Operator} {
		silent[requestDrain+" "+by] = !topic.Synced() // before Get, or what comes in between is taken for withdrawn
		if r, ok := topic.Get(types.Global); ok {
			stand(pending, types.Operation{At: r.RequestedAt, Component: "drain", Op: requestDrain, Target: node, By: by, Why: r.Context})
		}
	}
	silent[requestLeave+" "+byOperator] = !c.Leave.Synced()
	if r, ok := c.Leave.Get(types.Global); ok {
		stand(pending, types.Operation{At: r.RequestedAt, Component: "membership", Op: requestLeave, Target: node, By: byOperator, Why: leaveWhy(r)})
	}
	for app, r := range c.Detach.All() {
		if r.ID == uuid.Nil { // of no command of ours
			continue
		}
		why := "node " + r.Node + " is gone"
		if r.Force {
			why += ", even if its storage is not proved to be redundant"
		}
		stand(pending, types.Operation{At: r.Asked, Component: "apps", Op: requestDetach, Target: "app/" + app, By: byOperator, Why: why})
	}
	return pending, silent
}

// leaveWhy is what is asked for besides the leave itself.
func leaveWhy(r types.ClusterLeaveRequest) string {
	var why []string
	if r.Context != "" {
		why = append(why, r.Context)
	}
	if r.Undo {
		why = append(why, "a decided leave without the cluster is withdrawn")
	}
	if w := r.WithoutCluster; w != nil {
		why = append(why, "without the cluster, of which these are named as off: "+strings.Join(w.Dead, " "))
	}
	if c := r.Consent; c != nil {
		why = append(why, "data may be lost, digest "+c.Digest())
	}
	return strings.Join(why, "; ")
}

// stand adds a request to those that stand.
func stand(pending map[string]types.Operation, o types.Operation) {
	o.Outcome = types.OperationOK
	o.ID = o.Op + " " + o.By + " " + strconv.FormatInt(o.At.UnixNano(), 36)
	if o.At.IsZero() {
		o.ID = o.Op + " " + o.By
	}
	if o.Op == requestDetach {
		o.ID += " " + o.Target
	}
	pending[o.ID] = o
}

// What the device is asked for, and what takes it back.
const (
	requestDrain  = "request drain"
	requestLeave  = "request leave"
	requestDetach = "request detach"
)

// withdraws names the end of a request. That for a failover by hand is not taken
// back, it runs out.
func withdraws(o types.Operation) (op string, ok bool) {
	switch o.Op {
	case requestDrain:
		return "withdraw drain", true
	case requestLeave:
		return "withdraw leave", true
	}
	return "", false
}

// requestsMade says which requests are new and which were taken back.
func requestsMade(f facts) []types.Operation {
	var heard []types.Operation
	for id, o := range f.asks {
		if _, known := f.asked[id]; !known {
			heard = append(heard, o)
		}
	}
	for id, o := range f.asked {
		if _, stands := f.asks[id]; stands || f.silent[o.Op+" "+o.By] {
			continue
		}
		if op, ok := withdraws(o); ok {
			o.ID, o.Op, o.Why, o.At = "", op, "", time.Time{}
			heard = append(heard, o)
		}
	}
	slices.SortFunc(heard, func(a, b types.Operation) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Op, b.Op)) })
	return heard
}
