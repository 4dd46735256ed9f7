package console

import (
	"os"
	"path/filepath"
	"syscall"
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
		"the cluster is out of view": func(n *node) {
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

func TestEdgeviewsSessionIsLeftAloneToItsEnd(t *testing.T) {
	tell(t, func(n *node) {
		n.process(4711, edgeview)
		n.somebody(textOf(edgeviews))
		n.wants(first, true)
		n.runs(first, own)
		n.start()
		n.later(starting - time.Second) // its proxy takes long
		n.serve(edgeviews.VNCPort, true)
		n.later(time.Hour)
		n.says(textOf(edgeviews))
		n.because(first, edge)
		n.serve(edgeviews.VNCPort, false) // its client goes and comes again
		n.later(starting - time.Second)
		n.serve(edgeviews.VNCPort, true)
		n.later(time.Hour)
		n.says(textOf(edgeviews))

		n.serve(edgeviews.VNCPort, false)
		n.somebody("") // it ends
		n.later(gap - poll)
		n.says("") // or the kube container would miss it
		n.later(2 * poll)
		n.says(textOf(own))
	})
}

func TestWhatADeadEdgeviewLeftIsReplaced(t *testing.T) {
	for name, comm := range map[string]string{"it is gone": "", "its number is another's": "sshd"} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(n *node) {
				n.process(4711, comm)
				n.somebody(textOf(edgeviews))
				n.serve(edgeviews.VNCPort, true) // the kube container still serves it
				n.start()
				n.later(time.Hour)
				n.says(textOf(edgeviews)) // in nobody's way
				n.wants(first, true)
				n.runs(first, own)
				n.says("")
				n.later(gap + soon)
				n.says(textOf(own))
			})
		})
	}
}

func TestAFileThatSomebodyRemovesComesBack(t *testing.T) {
	tell(t, func(n *node) {
		n.wants(first, true)
		n.runs(first, own)
		n.start()
		n.later(time.Minute)
		n.somebody("")
		n.later(poll)
		n.says("")
		n.later(gap)
		n.says(textOf(own))
	})
}

func TestAPortThatNobodyOpensIsAskedForAgainEverMoreSeldom(t *testing.T) {
	tell(t, func(n *node) {
		n.wants(first, true)
		n.runs(first, own)
		n.start()
		absences, was := 0, true
		for range 3600 {
			n.later(time.Second)
			_, err := os.Stat(n.file)
			if err != nil && was {
				absences++
			}
			was = err == nil
		}
		if absences < 8 || absences > 14 {
			t.Errorf("the file went %d times in an hour", absences)
		}
		if lines := n.logged("console"); lines > 5 {
			t.Errorf("%d lines were logged", lines)
		}
	})
}

func TestTheFileIsForAllToReadWhateverTheUmask(t *testing.T) {
	umask := syscall.Umask(0o077)
	defer syscall.Umask(umask)
	tell(t, func(n *node) {
		n.wants(first, true)
		n.runs(first, own)
		n.start()
		n.later(gap)
		for path, want := range map[string]os.FileMode{n.file: 0o644, filepath.Dir(n.file): 0o755 | os.ModeDir} {
			if info, err := os.Stat(path); err != nil || info.Mode() != want {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	})
}

func TestADirectoryThatCannotBeMadeIsToldOnce(t *testing.T) {
	tell(t, func(n *node) {
		n.must(os.MkdirAll(filepath.Join(n.root, "run"), 0o755))
		n.must(os.WriteFile(filepath.Join(n.root, "run/edgeview"), nil, 0o644))
		n.wants(first, true)
		n.runs(first, own)
		n.start()
		n.later(time.Minute)
		if row, _ := n.rows.Get(first); row.Open || row.Why == "" || row.Why == opening {
			t.Errorf("the row says %q", row.Why)
		}
		n.must(os.Remove(filepath.Join(n.root, "run/edgeview")))
		n.later(time.Minute)
		n.says(textOf(own))
	})
}

func TestAFurtherPlaceIsServedWhereItsDirectoryIs(t *testing.T) {
	tell(t, func(n *node) {
		there, missing := filepath.Join(n.root, "run/zedkube/vmiVNC.run"), filepath.Join(n.root, "run/none/vmiVNC.run")
		n.also = []string{there, missing}
		n.must(os.MkdirAll(filepath.Dir(there), 0o755))
		n.wants(first, true)
		n.runs(first, own)
		n.start()
		n.serve(own.VNCPort, true)
		n.later(otherGap + soon)
		if raw, err := os.ReadFile(there); string(raw) != "VMINAME:label-printer-9f27b-4q8zt2\nVNCPORT:5907\n" {
			t.Errorf("it says %q, %v", raw, err)
		}
		if _, err := os.Stat(filepath.Dir(missing)); !os.IsNotExist(err) {
			t.Error("the directory was made")
		}
		if n.logged("step failed") > 0 {
			t.Error("that was called an error")
		}
		n.wants(first, false)
		n.later(0)
		if left, _ := os.ReadDir(filepath.Dir(there)); len(left) > 0 {
			t.Error("left behind:", left)
		}
	})
}
