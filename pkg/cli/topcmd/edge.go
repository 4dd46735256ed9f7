package topcmd

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/report/edgemetrics"
	"github.com/zedkube/zedkube/types"
)

// edgeEvery is how often the agent is asked what it knows of edge nodes: as often as a screen is drawn.
const edgeEvery = time.Second

// edgeAsking is what the agent knows of the nodes of KubeEdge. It alone asks them, however many look.
type edgeAsking struct {
	known []types.KubeNodeMetrics
	err   error
	next  time.Time
}

func (e *edgeAsking) look(ctx context.Context, client *http.Client, now time.Time) {
	if now.Before(e.next) {
		return
	}
	e.next = now.Add(edgeEvery)
	known, err := device.EdgeMeasured(ctx, client)
	if e.err = err; err == nil {
		e.known = known
	}
}

// rows are those of a table, and what is wrong with edge nodes.
func (e *edgeAsking) rows(o topOptions, now time.Time) (rows []topRow, hidden int, problems []string) {
	if e.err != nil && (o.edge || len(e.known) > 0) { // without edge nodes nobody cares
		problems = append(problems, e.err.Error())
	}
	const shown = 3
	silent := 0
	for _, m := range e.known {
		if silent < shown && m.Stale != "" {
			problems = append(problems, "edge node "+m.Node+": "+m.Stale)
		}
		if m.Stale != "" {
			silent++
		}
		if o.of == topNodes {
			r := nodeRow(m.Node, samplesOf(m), now)
			r.Edge, r.Stale = true, m.Stale
			rows = append(rows, r)
			continue
		}
		more, without := podRows(m, o, now)
		for i := range more {
			more[i].Edge, more[i].Stale = true, m.Stale
		}
		rows, hidden = append(rows, more...), hidden+without
	}
	if silent > shown {
		problems = append(problems, fmt.Sprintf("%d more edge nodes have nothing newer", silent-shown))
	}
	return rows, hidden, problems
}

// settled reports that waiting brings no younger sample of an edge node.
func (e *edgeAsking) settled(now time.Time) bool {
	for _, m := range e.known {
		if m.Stale == edgemetrics.Pending || m.Stale == "" && now.Sub(m.At).Abs() > topOld {
			return false
		}
	}
	return true
}
