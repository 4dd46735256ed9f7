package conditions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

// clock compares the own clock with those of others as far as they are known.
func clock(f facts) verdict {
	var off []string
	compared := 0
	if f.connected && f.credentials.ClockKnown {
		compared++
		if ahead := f.credentials.ClockAhead; types.JudgeClock(ahead) == types.SeverityBad {
			off = append(off, "the API server's clock is "+against(ahead))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.clocks)) {
		if _, there := f.nodes[name]; !there || name == f.own.Name {
			continue
		}
		compared++
		if ahead := f.clocks[name].Ahead; types.JudgeClock(ahead) == types.SeverityBad {
			off = append(off, fmt.Sprintf("the clock of %s is %s", short(name), against(ahead)))
		}
	}
	switch {
	case compared == 0:
		return unknown("NoOtherClock", "No other clock has been seen yet.")
	case len(off) == compared && compared > 1:
		return bad("OwnClockApart", "This node's clock differs from all others: "+firstOf(off)+".")
	case len(off) > 0:
		return bad("ClocksApart", "Clocks differ from this node's: "+firstOf(off)+".")
	}
	return fine("InStep", "The known clocks agree with this node's to within half a minute.")
}

// against says how a clock differs from the own one.
func against(ahead time.Duration) string {
	if ahead < 0 {
		return (-ahead).String() + " behind"
	}
	return ahead.String() + " ahead"
}

// leader judges whether someone reports for the cluster.
func leader(f facts) verdict {
	switch {
	case f.elects && f.leader.IsStatsLeader:
		return fine("ThisNode", "This node reports for the cluster.")
	case f.elects && f.leader.LeaderIdentity != "":
		return fine("OtherNode", fmt.Sprintf("Node %s reports for the cluster.", short(f.leader.LeaderIdentity)))
	case !f.seesCluster():
		return f.unseen()
	case !f.elects || !f.leader.InLeaderElection:
		return unknown("NotInElection", "This node does not take part in the election: it has not heard from its controller.")
	}
	return bad("NoLeader", "No node reports for the cluster: nobody holds the Lease eve-kube-stats-leader.")
}

// report judges what this node reports, if it does.
func report(f facts) verdict {
	if !f.reported || !f.health.Reports {
		return unknown("NotReporting", "This node does not report for the cluster.")
	}
	var stale []string
	why := ""
	for _, s := range f.health.Sections {
		if s.Absent || s.Known && s.StaleSince.IsZero() {
			continue
		}
		stale = append(stale, short(s.Name))
		if why == "" {
			why = s.Why
		}
	}
	if len(stale) == 0 {
		return fine("UpToDate", "Everything that this node reports is current.")
	}
	message := "These sections of this node's report are stale: " + firstOf(stale)
	if why != "" {
		message += ": " + short(why)
	}
	return bad("Stale", strings.TrimRight(message, ".")+".")
}

const (
	listed  = 3   // that many are named one by one
	maxText = 200 // bytes of a text from outside
)

// firstOf names the first of a list, and counts the others.
func firstOf(list []string) string { return phrase.Few(list, listed) }

// short is a text from outside that is no longer than a sentence.
func short(text string) string {
	return phrase.Cut(strings.TrimRight(strings.ToValidUTF8(text, "?"), "."), maxText)
}
