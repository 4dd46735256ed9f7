package topcmd

import (
	"fmt"
	"time"

	"github.com/zedkube/zedkube/types"
)

// rows are all nodes that anybody has named.
func (a *nodeAsking) rows(now time.Time) (rows []topRow) {
	all := map[string]bool{}
	for _, name := range a.names {
		all[name] = true
	}
	for name := range a.words {
		all[name] = true
	}
	for name := range all {
		r := topRow{Name: name}
		var before types.NodeMetrics
		for _, w := range a.words[name] {
			if w.err != nil {
				r.Stale = w.err.Error()
			}
			if w.at.IsZero() {
				continue
			}
			m := w.metrics
			r.CPUs, r.Memories = append(r.CPUs, m.CPU), append(r.Memories, m.MemoryWorking)
			took := w.at.Sub(r.At)
			r.Received, r.Sent = perSecond(before.NetworkReceived, m.NetworkReceived, took), perSecond(before.NetworkSent, m.NetworkSent, took)
			r.At, r.Cores, r.CPU, r.Memory, r.Total = w.at, max(m.Cores, r.Cores), m.CPU, m.MemoryWorking, w.total
			if m.FS != nil {
				r.Disk, r.DiskSize = m.FS.Used, m.FS.Capacity
			}
			before = m
		}
		r.age(now, topOld)
		rows = append(rows, r)
	}
	return rows
}

// problems are the nodes that do not answer.
func (a *nodeAsking) problems(rows []topRow) (said []string) {
	if a.err != nil {
		said = append(said, "the nodes cannot be asked through the API server: "+a.err.Error())
	}
	const shown = 3
	silent := 0
	for _, r := range rows {
		if r.Stale == "" || !r.Old {
			continue
		}
		if silent++; silent <= shown {
			said = append(said, r.Name+": "+r.Stale)
		}
	}
	if silent > shown {
		said = append(said, fmt.Sprintf("%d more nodes do not answer", silent-shown))
	}
	return said
}
