package kubeapi

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestAVolumeThatContradictsItselfFromTheStartIsDoubtedAtOnceAndNoLongerThanItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newJoining(t)
		s.whole()
		list[volumePart](s, s.volumes, lhVolume("v", "attached", "n1"), lhVolume("w", "attached", "n1"))
		if len(s.doubts) != 1 || !strings.Contains(s.doubts[0], "volume w of Longhorn") {
			t.Errorf("while the table lacks a volume it is doubted %q", s.doubts)
		}
		list[volumePart](s, s.volumes, lhVolume("v", "attached", "n1"))
		time.Sleep(2 * lasting)
		if last := s.doubts[len(s.doubts)-1]; last != "" {
			t.Errorf("a volume that is gone is still doubted: %q", last)
		}
	})
}

func TestAnotherConnectionKeepsTheSumOfSnapshotsUntilTheyAreListed(t *testing.T) {
	s := newJoining(t)
	_ = s.table.Publish("v", types.Volume{Name: "v", Snapshots: 7 << 20}) // as the former one left it
	list[volumePart](s, s.volumes, lhVolume("v", "detached", ""))
	list[enginePart](s, s.engines)
	list[replicaPart](s, s.replicas)
	if v := s.volume("v"); v.Snapshots != 7<<20 || v.State != "detached" {
		t.Errorf("before snapshots are listed it is %+v", v)
	}
	list[snapshotPart](s, s.snapshots)
	if got := s.volume("v").Snapshots; got != 0 {
		t.Errorf("without snapshots they take %d bytes", got)
	}
}

func TestADoubtIsToldInFewWords(t *testing.T) {
	var table pubsub.Table[types.TableStatus]
	s := &standing{log: quiet(), table: &table, name: "t"}
	s.whole(false)
	s.doubts(strings.Repeat("x", 1<<20))
	if row, _ := table.Get("t"); row.Whole || len(row.Why) > whyText || row.Why == "" {
		t.Errorf("it says %d bytes, whole %v", len(row.Why), row.Whole)
	}
	s.end(false)
}
