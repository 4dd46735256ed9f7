package console

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

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

func TestAFileThatComesAndGoesBetweenTwoLooksIsAnAbsenceAnew(t *testing.T) {
	tell(t, func(n *node) {
		n.must(os.MkdirAll(filepath.Dir(n.file), 0o755))
		n.wants(first, true)
		n.runs(first, own)
		n.start()
		n.later(gap - poll/2)
		n.somebody(textOf(edgeviews)) // the kube container may have seen it
		n.somebody("")
		n.later(gap)
		n.says("")
		n.later(poll)
		n.says(textOf(own))
	})
}

func TestAProxyThatCameTooLateToBeUnwantedIsReplaced(t *testing.T) {
	tell(t, func(n *node) {
		ctx, cancel := context.WithCancel(n.Context())
		k, done := &kubeInit{node: n, slow: func() time.Duration { return 6 * time.Second }}, make(chan struct{})
		go func() { defer close(done); k.run(ctx) }()
		defer func() { cancel(); <-done }()
		n.wants(first, true)
		n.wants(second, true)
		n.runs(first, own)
		n.runs(second, seconds)
		n.start()
		n.later(4 * time.Second) // it starts the proxy of the first
		n.wants(first, false)
		n.later(6 * time.Second)
		n.says(textOf(seconds))
		if got := k.running(); got != own {
			t.Fatalf("the proxy shows %q", got.VMIName)
		}
		n.later(rewriteAfter + gap + 8*time.Second)
		n.says(textOf(seconds))
		n.because(second, "")
		if got := k.running(); got != seconds {
			t.Errorf("the proxy shows %q", got.VMIName)
		}
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
