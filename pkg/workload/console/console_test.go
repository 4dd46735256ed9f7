package console

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestAConsoleThatWasOnBeforeTheStartIsOpened(t *testing.T) {
	tell(t, func(n *node) {
		n.wants(first, true)
		n.runs(first, own)
		n.start()
		n.because(first, opening)
		n.later(gap + soon)
		n.says(`{"VMIName":"label-printer-9f27b-4q8zt2","VNCPort":5907,"AppUUID":"` + first + `"}`)
		n.because(first, "the kube container has not opened its port")
		n.serve(own.VNCPort, true)
		n.later(poll)
		n.because(first, "")
	})
}

func TestAConsoleIsOpenedAtOnceWhereNoneWasForLong(t *testing.T) {
	tell(t, func(n *node) {
		n.must(os.MkdirAll(filepath.Dir(n.file), 0o755))
		n.wants(first, false)
		n.runs(first, own)
		n.start()
		n.later(time.Hour)
		n.says("")
		n.wants(first, true)
		n.says(textOf(own))
	})
}

// Each of these ends the console of a node, and nothing else is left of it.
func TestTheFileIsGoneAtOnceWhen(t *testing.T) {
	for name, end := range map[string]func(*node){
		"the console is switched off": func(n *node) { n.wants(first, false) },
		"the application is deleted":  func(n *node) { _ = n.configs.Unpublish(first); _ = n.apps.Unpublish(first) },
		"the machine moves away":      func(n *node) { n.leaves(first, func(s *types.ENClusterAppStatus) { s.ScheduledOnThisNode = false }) },
		"the machine stops": func(n *node) {
			n.leaves(first, func(s *types.ENClusterAppStatus) { s.AppKubeStatus = types.AppKubeNotRunning })
		},
		"the state of the cluster is unknown": func(n *node) {
			n.leaves(first, func(s *types.ENClusterAppStatus) {
				*s = types.ENClusterAppStatus{AppUUID: s.AppUUID, AppIsVMI: true, AppKubeStatus: types.AppKubeAPIUnreachable}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(n *node) {
				n.wants(first, true)
				n.runs(first, own)
				n.start()
				n.serve(own.VNCPort, true)
				n.later(time.Minute)
				n.says(textOf(own))
				end(n)
				n.later(0)
				n.says("")
				n.later(time.Minute)
				n.says("")
				if left, _ := os.ReadDir(filepath.Dir(n.file)); len(left) > 0 {
					t.Error("left behind:", left)
				}
				if row, ok := n.rows.Get(first); ok && row.Open {
					t.Error("it is said to be open")
				}
			})
		})
	}
}

func TestANewMachineIsShownAfterTwoSecondsWithoutTheFile(t *testing.T) {
	tell(t, func(n *node) {
		n.wants(first, true)
		n.runs(first, older)
		n.start()
		n.later(time.Minute)
		n.says(textOf(older))
		n.runs(first, own)
		n.says("")
		n.later(gap - time.Millisecond)
		n.says("")
		n.later(2 * soon)
		n.says(textOf(own))
	})
}

// A start of the agent is no reason to end a session, nor to keep one.
func TestAfterAStartOfTheAgent(t *testing.T) {
	for name, row := range map[string]struct {
		meanwhile func(*node)
		want      string
	}{
		"the right file was never touched": {func(*node) {}, textOf(own)},
		"the file of a console that was switched off is gone": {
			func(n *node) { n.wants(first, false) }, "",
		},
		"the file of an app that was deleted is gone": {
			func(n *node) { _ = n.configs.Unpublish(first); _ = n.apps.Unpublish(first) }, "",
		},
		"the file of a machine that went away is gone": {
			func(n *node) { n.leaves(first, func(s *types.ENClusterAppStatus) { s.ScheduledOnThisNode = false }) }, "",
		},
		"the file of a machine that was replaced is gone": {
			func(n *node) { n.runs(first, older) }, "",
		},
		"what an edgeview wrote meanwhile is its own": {
			func(n *node) { n.process(4711, edgeview); n.somebody(textOf(edgeviews)) }, textOf(edgeviews),
		},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(n *node) {
				n.wants(first, true)
				n.runs(first, own)
				n.start()
				n.serve(own.VNCPort, true)
				n.later(time.Minute)
				before, err := os.Stat(n.file)
				n.must(err)
				n.stop()
				row.meanwhile(n)
				n.start()
				n.later(0)
				n.says(row.want)
				if row.want == textOf(own) {
					n.later(time.Minute)
					after, err := os.Stat(n.file)
					n.must(err)
					if !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
						t.Error("it was written again")
					}
					n.because(first, "")
				}
			})
		})
	}
}

func TestNothingIsTakenAwayBeforeAllApplicationsAreKnown(t *testing.T) {
	tell(t, func(n *node) {
		n.somebody(textOf(own))
		n.serve(own.VNCPort, true)
		n.runs(first, own)
		n.configs.partly = true
		n.start()
		n.later(time.Minute)
		n.says(textOf(own))
		n.configs.partly = false
		n.wants(first, true)
		n.later(poll)
		n.says(textOf(own))
	})
}

func TestWhoseConsoleIsOpenKeepsIt(t *testing.T) {
	tell(t, func(n *node) {
		n.start()
		n.wants(second, true)
		n.later(time.Minute)
		n.wants(first, true)
		n.runs(first, own)
		n.serve(own.VNCPort, true)
		n.later(gap + 2*soon)
		n.runs(second, seconds)
		n.later(time.Minute)
		n.says(textOf(own)) // it was open before the other could be
		n.because(second, "the console of app 9f is open; there is one per node")
		n.stop()
		n.start()
		n.later(time.Minute)
		n.says(textOf(own))
		n.leaves(first, func(s *types.ENClusterAppStatus) { s.ScheduledOnThisNode = false })
		n.later(gap + 2*soon)
		n.says(textOf(seconds))
	})
}

func TestOfTwoThatCanBeShownAtOnceTheFirstToAskIs(t *testing.T) {
	tell(t, func(n *node) {
		n.start()
		n.wants(second, true)
		n.later(time.Minute)
		n.wants(first, true)
		n.process(4711, edgeview)
		n.somebody(textOf(edgeviews))
		n.runs(first, own)
		n.runs(second, seconds)
		n.later(poll)
		n.somebody("")
		n.later(gap + 2*poll)
		n.says(textOf(seconds))
	})
}
