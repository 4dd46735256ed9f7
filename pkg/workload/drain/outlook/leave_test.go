package outlook

import (
	"strings"
	"testing"

	"github.com/zedkube/zedkube/types"
)

func TestALeaveNamesTheConsentAsTheLastRemedy(t *testing.T) {
	single := attachedTo("b", replica("own", "RW"))
	single.Wanted = 1
	for name, row := range map[string]struct {
		volume types.Volume
		policy string
		ready  map[string]bool
		given  bool // the consent is named
	}{
		"where nothing is being rebuilt":      {single, "", storageNodes, true},
		"where Longhorn is to move it":        {single, "block-for-eviction-if-contains-last-replica", storageNodes, true},
		"where the other node is not Ready":   {attachedTo("b", replica("own", "RW"), replica("off", "RW")), "", storageNodes, true},
		"where no other node is left":         {single, "", map[string]bool{"own": true}, true},
		"not while it is rebuilt elsewhere":   {attachedTo("b", replica("own", "RW"), replica("c", "WO")), "", storageNodes, false},
		"not where only the engine is to end": {attachedTo("own", replica("own", "RW"), replica("c", "RW")), "", storageNodes, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := types.Storage{Longhorn: true, Policy: row.policy, Volumes: []types.Volume{row.volume}}
			got := BlockingVolumesOfLeave(s, "own", row.ready, nil)
			if len(got) != 1 || strings.Count(got[0].Remedy, RemedyGiveUpData) != map[bool]int{true: 1}[row.given] || strings.Contains(got[0].Remedy, allow) {
				t.Errorf("consent named: want %v: %+v", row.given, got)
			}
		})
	}
}
