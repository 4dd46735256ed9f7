//go:build linux && soak

package applogs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/rig"
)

// TestSoakApplicationsOnRealNodes is the story of TestApplicationsOnRealNodes for
// longer.
func TestSoakApplicationsOnRealNodes(t *testing.T) {
	rig.NeedsPods(t)
	s := newStage(t)
	s.applicationsRun(t)
	for range 3 {
		s.killPoints(t, 33)
		s.hostIsKilled(t)
		s.nodeIsCut(t, 90*time.Second)
	}
	s.rests(t)
	doomed := s.apps["doomed"]
	_, at := s.where(t, doomed)
	kept := filepath.Join(s.Fleet.Members[at].Root, "persist/kube-status/zedkube-applogs.jsonl")
	s.dropApp(t, doomed)
	t.Logf("where the log of an application is, is forgotten %s after its end", rig.Until(t, 12*time.Minute, func() string {
		text, err := os.ReadFile(kept)
		if err != nil || bytes.Contains(text, []byte(doomed.key())) {
			return "it is kept where its log is"
		}
		return ""
	}))
}
