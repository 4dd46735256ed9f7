package kubeapi

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/kubeapi/listwatch"
	"github.com/zedkube/zedkube/kubeapi/storage"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestAVolumeThatContradictsItselfFromTheStartIsDoubtedAtOnceAndNoLongerThanItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newJoining(t)
		s.whole()
		list[storage.VolumePart](s, s.volumes, lhVolume("v", "attached", "n1"), lhVolume("w", "attached", "n1"))
		if len(s.doubts) != 1 || !strings.Contains(s.doubts[0], "volume w of Longhorn") {
			t.Errorf("while the table lacks a volume it is doubted %q", s.doubts)
		}
		list[storage.VolumePart](s, s.volumes, lhVolume("v", "attached", "n1"))
		time.Sleep(2 * storage.Lasting)
		if last := s.doubts[len(s.doubts)-1]; last != "" {
			t.Errorf("a volume that is gone is still doubted: %q", last)
		}
	})
}

func TestAnotherConnectionKeepsTheSumOfSnapshotsUntilTheyAreListed(t *testing.T) {
	s := newJoining(t)
	_ = s.table.Publish("v", types.Volume{Name: "v", Snapshots: 7 << 20}) // as the former one left it
	list[storage.VolumePart](s, s.volumes, lhVolume("v", "detached", ""))
	list[storage.EnginePart](s, s.engines)
	list[storage.ReplicaPart](s, s.replicas)
	if v := s.volume("v"); v.Snapshots != 7<<20 || v.State != "detached" {
		t.Errorf("before snapshots are listed it is %+v", v)
	}
	list[storage.SnapshotPart](s, s.snapshots)
	if got := s.volume("v").Snapshots; got != 0 {
		t.Errorf("without snapshots they take %d bytes", got)
	}
}

func TestADoubtIsToldInFewWords(t *testing.T) {
	var table pubsub.Table[types.TableStatus]
	s := &listwatch.Status{Log: kubetest.Quiet(), Table: &table, Name: "t"}
	s.Complete(false)
	s.Doubts(strings.Repeat("x", 1<<20))
	if row, _ := table.Get("t"); row.Complete || !row.InDoubt || len(row.Why) > listwatch.WhyText || row.Why == "" {
		t.Errorf("it says %d bytes, whole %v, in doubt %v", len(row.Why), row.Complete, row.InDoubt)
	}
	s.Doubts("")
	if row, _ := table.Get("t"); !row.Complete || row.InDoubt {
		t.Errorf("without doubt it is %+v", row)
	}
	s.End(false)
}
