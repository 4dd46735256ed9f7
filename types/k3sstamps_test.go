package types

import (
	"testing"
	"time"
)

func TestANodeIsSilentWhereItsStampDoesNotChange(t *testing.T) {
	start := time.Date(2026, 5, 3, 8, 0, 0, 0, time.UTC)
	at := func(second int) Node {
		return Node{Name: "n2", K3s: &K3sStamp{Renewed: start.Add(time.Duration(second) * time.Second)}}
	}
	var heard HeardK3sStamps
	for i, row := range []struct {
		node    Node
		answers bool
		now     time.Duration
		silent  bool
	}{
		{at(0), true, 60 * time.Second, false},
		{at(0), true, 99 * time.Second, false},
		{at(0), true, 100 * time.Second, true},
		{at(15), true, 101 * time.Second, false},
		{at(15), false, 142 * time.Second, false}, // nothing can be heard
		{at(15), true, 181 * time.Second, false},
		{at(15), true, 182 * time.Second, true},
		{Node{Name: "n3", K3s: at(15).K3s}, true, 183 * time.Second, false},
		{Node{Name: "n3", K3s: &K3sStamp{}}, true, 300 * time.Second, false}, // of an agent that does not renew it
		{Node{Name: "n3"}, true, 400 * time.Second, false},
	} {
		heard = heard.Hear(map[string]Node{row.node.Name: row.node}, row.answers, row.now)
		if silent := heard.Silent(row.node.Name, row.now); silent != row.silent {
			t.Errorf("row %d: %v", i, silent)
		}
	}
}

func TestNothingIsHeardWhileTheAPIServerIsSilent(t *testing.T) {
	nodes := map[string]Node{"n2": {Name: "n2", K3s: &K3sStamp{Renewed: time.Date(2026, 5, 3, 8, 0, 0, 0, time.UTC)}}}
	heard, now := HeardK3sStamps{}.Hear(nodes, true, time.Hour), 2*time.Hour
	if heard = heard.Hear(nodes, false, now); heard.Silent("n2", now) {
		t.Error("n2 is called silent")
	}
	now += K3sSilentAfter - 1
	if heard = heard.Hear(nodes, true, now); heard.Silent("n2", now) {
		t.Error("n2 is called silent as soon as the API server answers")
	}
	now++
	if heard = heard.Hear(nodes, true, now); !heard.Silent("n2", now) {
		t.Error("n2 is not called silent")
	}
}
