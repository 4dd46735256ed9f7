package k3sconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

const runs = "v1.34.2+k3s1"

func TestTheVersionStaysUntilAnotherOneIsReleased(t *testing.T) {
	const next = "v1.34.3+k3s1"
	seen := node{known: true, running: runs, binary: runs}
	unseen, swapped := node{known: true}, node{known: true, running: runs, binary: "v1.34.0+k3s1"}
	left := node{known: true, alone: true, binary: "v1.33.6+k3s1"}
	waits := func(released string) *types.KubeLifecycle {
		return &types.KubeLifecycle{Phase: types.LifecycleWaits, Wanted: next, Released: released, Reason: "It is not its turn."}
	}
	refuses := &types.KubeLifecycle{Phase: types.LifecycleRefused, Wanted: "v1.40.0+k3s1", Reason: "It skips minor versions."}
	for name, row := range map[string]struct {
		node      node
		published string
		setting   string
		lifecycle *types.KubeLifecycle
		want      string
		held      string // in Why; "" where nothing is held
		refused   string
	}{
		"no setting keeps what runs":                        {node: seen, lifecycle: waits(""), want: runs},
		"a setting that was removed keeps what runs":        {node: seen, published: runs, lifecycle: waits(""), want: runs},
		"the version that runs is not held":                 {node: seen, published: runs, setting: runs, want: runs},
		"another one is held":                               {node: seen, published: runs, setting: next, lifecycle: waits(""), want: runs, held: "It is not its turn."},
		"before anything is decided as well":                {node: seen, published: runs, setting: next, want: runs, held: "not decided yet"},
		"and after a decision on another one":               {node: seen, published: runs, setting: "v1.34.9+k3s1", lifecycle: waits(""), want: runs, held: "not decided yet"},
		"a released one is passed on":                       {node: seen, published: runs, setting: next, lifecycle: waits(next), want: next},
		"until it runs":                                     {node: swapped, published: next, setting: next, lifecycle: waits(next), want: next},
		"the one before is passed on where it is released":  {node: swapped, published: next, setting: next, lifecycle: waits(runs), want: runs, held: "It is not its turn."},
		"a release stands although the setting is gone":     {node: seen, published: runs, lifecycle: waits(next), want: next},
		"a refused one is held":                             {node: seen, published: runs, setting: "v1.40.0+k3s1", lifecycle: refuses, want: runs, held: "skips minor", refused: "skips minor"},
		"the name of a channel is refused":                  {node: seen, published: runs, setting: "latest", lifecycle: waits(""), want: runs, held: "it is not a version", refused: "it is not a version"},
		"a binary of another version keeps what was told":   {node: swapped, published: "v1.34.1+k3s1", lifecycle: waits(""), want: "v1.34.1+k3s1"},
		"a Node of a former boot keeps what was told":       {node: unseen, published: runs, lifecycle: waits(""), want: runs},
		"after a cluster a device keeps what it has":        {node: left, published: runs, lifecycle: waits(""), want: "v1.33.6+k3s1"},
		"unless a change is under way":                      {node: left, published: runs, lifecycle: waits(next), want: next},
		"a member in a new boot keeps what was told":        {node: node{known: true, binary: "v1.33.6+k3s1"}, published: runs, lifecycle: waits(""), want: runs},
		"what runs is told first":                           {node: seen, want: runs},
		"while a change may be under way nothing is pinned": {node: seen, published: next, want: next},
		"where nothing is known nothing is passed on":       {node: unseen, setting: next, lifecycle: waits(""), want: "", held: "It is not its turn."},
	} {
		a := decide(facts{now: now, heard: true, settings: settings(row.setting, "", ""), published: kube(row.published, false), node: row.node, lifecycle: row.lifecycle})
		if a.publish.K3sVersion != row.want || a.status.Version != row.want {
			t.Errorf("%s: %q is published, %+v told", name, a.publish.K3sVersion, *a.status)
		}
		if s := a.status; s.Held != (row.held != "") || !strings.Contains(s.Why, row.held) || s.Held && !s.Since.Equal(now) {
			t.Errorf("%s: %+v", name, *s)
		}
		if !strings.Contains(a.refused, row.refused) || (a.refused == "") != (row.refused == "") {
			t.Errorf("%s: refused: %q", name, a.refused)
		}
	}
}

func TestNothingIsSaidBeforeItIsKnownWhetherTheDeviceIsAMember(t *testing.T) {
	if a := decide(facts{now: now, heard: true, settings: settings("v1.35.0+k3s1", "boot", ""), published: kube(runs, false)}); a.publish != nil || a.status != nil {
		t.Errorf("published %+v, told %+v", a.publish, a.status)
	}
}

func TestTheTimeOfAHeldVersionIsThatOfItsBeginning(t *testing.T) {
	f := facts{now: now, heard: true, settings: settings("v1.35.0+k3s1", "", ""), node: node{known: true, running: runs, binary: runs}}
	f.status = *decide(f).status
	f.now = now.Add(time.Hour)
	if got := decide(f).status.Since; !got.Equal(now) {
		t.Errorf("it began %s", got)
	}
	f.settings = settings("v1.34.9+k3s1", "", "")
	if got := decide(f).status.Since; !got.Equal(f.now) {
		t.Errorf("another version began %s", got)
	}
}

func TestTheVersionIsToldBeforeZedagentHasSpoken(t *testing.T) {
	a := decide(facts{now: now, published: kube("", true), node: node{known: true, running: runs, binary: runs}})
	if a.publish == nil || *a.publish != kube(runs, true) {
		t.Errorf("%+v is published", a.publish)
	}
}

// k3s is the binary on disk.
func (s *story) k3s(version string) {
	path := filepath.Join(s.disk, "k3s/bin/k3s")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho k3s version "+version+"\n"), 0o755); err != nil {
		s.Fatal(err)
	}
}

func (s *story) node(version, bootID string) {
	_ = s.nodes.Publish("n1", types.Node{Name: "n1", UUID: device.String(), KubeletVersion: version, BootID: bootID})
}

var device = uuid.MustParse("c4a1d7e2-90b3-4d58-8a6e-1be0f7723c05")

func (s *story) joins() {
	_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1", DeviceID: device})
}

func TestANodeGoesToAnotherVersionWhenThatIsReleased(t *testing.T) {
	tell(t, func(s *story) {
		s.k3s(runs)
		s.node(runs, boot)
		s.joins()
		s.start()
		s.later()
		s.expectKube(kube(runs, false)) // pinned, although zedagent says nothing
		s.say("v1.35.0+k3s1", "boot", "")
		s.expectKube(kube(runs, true))
		if got, _ := s.status.Get(types.Global); !got.Held || got.Wanted != "v1.35.0+k3s1" || len(s.did) != 1 || s.did[0].Op != "hold k3s version" {
			s.Errorf("%+v is told, %+v recorded", got, s.did)
		}
		s.stop()
		s.start()
		s.later()
		s.expectKube(kube(runs, true))
		_ = s.lifecycle.Publish(types.Global, types.KubeLifecycle{Wanted: "v1.35.0+k3s1", Released: "v1.35.0+k3s1", Reason: "It is its turn."})
		s.settle()
		s.expectKube(kube("v1.35.0+k3s1", true))
		s.later() // the old one runs and is on disk: it is fetched
		s.expectKube(kube("v1.35.0+k3s1", true))
		s.k3s("v1.35.0+k3s1")
		s.later()
		s.node("v1.35.0+k3s1", boot)
		s.later()
		_ = s.lifecycle.Publish(types.Global, types.KubeLifecycle{Wanted: "v1.35.0+k3s1"})
		s.later()
		s.expectKube(kube("v1.35.0+k3s1", true))
		if got, _ := s.status.Get(types.Global); got.Held || !got.OnDisk || len(s.did) != 2 || s.did[1].Op != "release k3s version" || s.did[1].Why != "It is its turn." {
			s.Errorf("%+v is told, %+v recorded", got, s.did)
		}
		s.say("", "boot", "") // removed: no way back to the kube container's own
		s.expectKube(kube("v1.35.0+k3s1", true))
	})
}

// later lets the binary be looked at again.
func (s *story) later() {
	time.Sleep(2 * period)
	s.settle()
}

// Begin implements types.OperationLog.
func (s *story) Begin(o types.Operation) func(types.OperationOutcome, error) {
	if !strings.HasPrefix(o.Target, "file/") {
		s.did = append(s.did, o)
	} else {
		s.wrote = append(s.wrote, o)
	}
	return func(types.OperationOutcome, error) {}
}

func TestTheBinaryIsLookedIntoBeforeK3sHasStarted(t *testing.T) {
	tell(t, func(s *story) {
		s.k3s(runs)
		s.node(runs, "the boot before")
		s.joins()
		_ = s.lifecycle.Publish(types.Global, types.KubeLifecycle{From: runs, Released: "v1.34.3+k3s1"})
		s.start()
		s.say("v1.34.3+k3s1", "", "")
		s.later()
		if got, _ := s.status.Get(types.Global); got.Binary != runs || got.Running != "" || got.OnDisk {
			s.Errorf("%+v is told", got)
		}
		s.k3s("v1.34.3+k3s1")
		s.later()
		if got, _ := s.status.Get(types.Global); got.Binary != "v1.34.3+k3s1" {
			s.Errorf("%+v is told", got)
		}
	})
}

func TestADeviceThatLeftItsClusterStartsWithTheK3sThatItHadBefore(t *testing.T) {
	tell(t, func(s *story) {
		_ = s.kube.Publish(types.Global, kube("v1.35.0+k3s1", false)) // of the cluster
		_ = s.member.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeft})
		_ = s.lifecycle.Publish(types.Global, types.KubeLifecycle{})
		s.k3s(runs)
		s.start()
		s.later()
		s.expectKube(kube(runs, false))
	})
}

func TestABinaryThatDoesNotSayItsVersionChangesNothing(t *testing.T) {
	tell(t, func(s *story) {
		_ = s.kube.Publish(types.Global, kube("v1.34.1+k3s1", false))
		s.k3s("latest")
		s.node(runs, boot)
		s.joins()
		_ = s.lifecycle.Publish(types.Global, types.KubeLifecycle{})
		s.start()
		time.Sleep(10 * period)
		s.settle()
		s.expectKube(kube("v1.34.1+k3s1", false))
		if n := s.logged("the version of the k3s binary is unknown"); n != 1 {
			s.Errorf("%d lines say that it is unknown", n)
		}
		s.k3s(runs)
		time.Sleep(2 * lookFor)
		s.settle()
		s.expectKube(kube(runs, false))
	})
}
