package statusserver

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/types"
)

func quiet() logrus.FieldLogger {
	log, _ := logtest.NewNullLogger()
	return log
}

func TestWhenAllNodesHaveProofs(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	const long = types.StampFresh
	stamped := func(more ...types.Node) map[string]types.Node {
		nodes := map[string]types.Node{"n1": {Agent: &types.AgentStamp{}}, "n2": {Agent: &types.AgentStamp{}}}
		for _, n := range more {
			nodes["more"] = n
		}
		return nodes
	}
	answers := types.APIStatus{Synced: true}
	for name, c := range map[string]struct {
		nodes   map[string]types.Node
		api     types.APIStatus
		since   time.Duration // for how long it has looked so, negative for not
		proved  string
		want    bool
		stamped bool
	}{
		"each has a fresh stamp":             {nodes: stamped(), api: answers, since: long, want: true},
		"but it was not watched long enough": {nodes: stamped(), api: answers, since: long - time.Second, stamped: true},
		"it begins to look so":               {nodes: stamped(), api: answers, since: -1, stamped: true},
		"one has none":                       {nodes: stamped(types.Node{}), api: answers, since: long},
		"one outlived its agent":             {nodes: stamped(types.Node{Agent: &types.AgentStamp{}, StampStale: true}), api: answers, since: long},
		"nothing is seen of the cluster":     {nodes: stamped(), api: types.APIStatus{SilentSince: now, Synced: true}, since: long},
		"not all is seen":                    {nodes: stamped(), since: long},
		"there is no Node":                   {api: answers, since: long},
		"it was so once":                     {nodes: stamped(types.Node{}), api: answers, since: -1, proved: clusterID, want: true},
		"in another cluster":                 {nodes: stamped(types.Node{}), api: answers, since: -1, proved: deviceID},
	} {
		f := facts{now: now, nodes: c.nodes, anyForeign: slices.ContainsFunc(slices.Collect(maps.Values(c.nodes)), types.Node.Foreign), api: c.api, heard: true, proved: c.proved}
		f.status.ClusterID.UUID = uuid.MustParse(clusterID)
		if c.since >= 0 {
			f.stamped = now.Add(-c.since)
		}
		cluster, since := proved(f)
		if (cluster == clusterID) != c.want || !c.want && cluster != "" || since.IsZero() == c.stamped {
			t.Errorf("%s: %q, since %v", name, cluster, since)
		}
	}
	if cluster, _ := proved(facts{now: now, nodes: stamped(), api: answers, stamped: now.Add(-long)}); cluster != "" {
		t.Errorf("without a cluster: %q", cluster)
	}
}

func TestThatAllNodesHaveProofsIsKeptOverARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "zedkube", "all-prove")
	component := func() *Component { return &Component{Log: quiet(), ProversFile: file} }
	c := component()
	if c.proof.read(file) != "" || !c.withoutProof() {
		t.Error("it was known before it was so")
	}
	if err := c.recordProved(""); err != nil || !c.withoutProof() {
		t.Errorf("it is not so: %v", err)
	}
	if err := c.recordProved(clusterID); err != nil || c.withoutProof() {
		t.Errorf("it is so: %v", err)
	}
	if content, err := os.ReadFile(file); string(content) != clusterID || err != nil {
		t.Errorf("%q, %v", content, err)
	}
	next := component()
	if got := next.proof.read(file); got != clusterID {
		t.Errorf("after a restart: %q", got)
	}
	for mode, want := range map[Reports]bool{ReportsAlways: true, ReportsNever: false, ReportsAuto: false, "": false} {
		c.Reports = mode
		if got := c.withoutProof(); got != want {
			t.Errorf("%q: %v", mode, got)
		}
	}
	open := component()
	for mode, want := range map[Reports]bool{ReportsAlways: true, ReportsNever: false, ReportsAuto: true} {
		open.Reports = mode
		if got := open.withoutProof(); got != want {
			t.Errorf("before, %q: %v", mode, got)
		}
	}
}

func TestReportsIsOneOfThree(t *testing.T) {
	r := ReportsAuto
	for _, text := range []string{"always", "never", "auto"} {
		if err := r.Set(text); err != nil || r.String() != text {
			t.Errorf("%s: %s, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "Auto", "yes"} {
		if err := r.Set(text); err == nil || r != ReportsAuto {
			t.Errorf("%q is taken", text)
		}
	}
}
