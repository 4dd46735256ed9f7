package browser

import (
	"testing"
)

// TestThePageInABrowser tells stories of the page, each in tabs of its own.
func TestThePageInABrowser(t *testing.T) {
	b := openBrowser(t)
	for name, story := range map[string]func(*testing.T, *browser){
		"it looks right in any window":                     inAnyWindow,
		"it follows a drain in the files of the device":    followsADrain,
		"a redraw leaves the reader where he is":           keepsItsPlace,
		"hostile names are shown as text":                  showsNamesAsText,
		"a foreign site in the same browser reads nothing": keepsForeignSitesOut,
		"it says when it is old":                           saysWhenItIsOld,
		"it follows a log":                                 followsALog,
		"what is pressed does not move":                    staysUnderThePointer,
		"it works without a mouse":                         worksWithoutAMouse,
		"it works without eyes":                            worksWithoutEyes,
		"a command is copied where it is read":             copiesCommands,
		"what is done is planned first":                    actsAfterItsPlan,
		"a plan says what is unknown":                      actsWithoutAPlan,
		"over loopback commands are to be pasted":          pastesOverLoopback,
		"a foreign site does nothing":                      keepsForeignSitesFromActing,
		"it shows the newest of the audit first":           showsTwentyOfTheAudit,
		"it can be printed":                                prints,
		"it takes more of everything than fits":            goesOnAfterAHugeDay,
		"it forgets the plots of pods that have gone":      forgetsWhatHasGone,
		"it asks for the audit once at a time":             asksOnceAtATime,
		"it shows the whole cluster as it answers":         showsTheCluster,
		"it runs KubeEdge after its plan":                  runsKubeEdge,
		"it shows KubeEdge over loopback":                  readsKubeEdge,
		"it asks for its token over loopback":              asksForItsToken,
	} {
		t.Run(name, func(t *testing.T) { story(t, b) })
	}
}
