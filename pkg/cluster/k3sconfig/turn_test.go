package k3sconfig

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/types"
)

const (
	before = "debug: true\n"
	after  = "debug: false\n"
)

// member tells a story of a device of a cluster whose k3s has run with a file, "" for none.
func member(t *testing.T, file string, play func(*story)) {
	tell(t, func(s *story) {
		_ = s.member.Publish(types.Global, types.ClusterMembership{State: types.MembershipMember})
		s.mount()
		s.k3s("v1.34.2+k3s1")
		_ = s.kube.Publish(types.Global, kube("v1.34.2+k3s1", false))
		s.put(s.file, file)
		s.start()
		play(s)
	})
}

func (s *story) put(path, content string) {
	s.Helper()
	if content == "" {
		return
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.Fatal(err)
	}
}

// turn is what KubeLifecycle says of the override, in names of files: "" is none.
func (s *story) turn(released, former string) {
	name := func(content string) string {
		if content == "" {
			return types.K3sNoOverride
		}
		return sumOf([]byte(content))
	}
	_ = s.lifecycle.Publish(types.Global, types.KubeLifecycle{Override: types.K3sOverrideTurn{Released: name(released), Former: name(former)}})
	s.later()
}

func (s *story) ends() {
	_ = s.lifecycle.Publish(types.Global, types.KubeLifecycle{Phase: types.LifecycleIdle})
	s.later()
}

// beside wants the former file to hold content, or "" for none, and to be for us alone.
func (s *story) beside(content string) {
	s.Helper()
	got, err := os.ReadFile(s.file + ".former")
	if string(got) != content || content == "" && !errors.Is(err, os.ErrNotExist) {
		s.Errorf("the former file holds %q (%v), want %q", got, err, content)
	}
	if info, err := os.Stat(s.file + ".former"); err == nil && info.Mode().Perm() != 0o600 {
		s.Errorf("its mode is %v", info.Mode())
	}
}

func TestTheOverrideOfAMemberIsChangedInItsTurn(t *testing.T) {
	for _, row := range []struct{ before, after string }{{before, after}, {"", after}, {before, ""}} {
		member(t, row.before, func(s *story) {
			s.say("", "", row.after)
			s.later()
			s.expect(row.before)
			if o, _ := s.override.Get(types.Global); !o.Accepted || o.Sum == o.InForce || o.InForce == "" {
				s.Errorf("before its turn: %+v", o)
			}
			s.turn("other: 1\n", row.before)
			s.expect(row.before)
			s.ends()
			s.beside("")
			s.turn(row.after, row.before)
			s.expect(row.after)
			s.beside(row.before)
			if o, _ := s.override.Get(types.Global); o.Sum != o.InForce {
				s.Errorf("in its turn: %+v", o)
			}
			s.ends()
			s.expect(row.after)
			s.beside("")
		})
	}
}

func TestTheFormerOverrideIsPutBackByWhatIsOnTheDisk(t *testing.T) {
	for _, former := range []string{before, ""} {
		member(t, former, func(s *story) {
			s.say("", "", after)
			s.turn(after, former)
			s.stop()
			_ = s.override.Unpublish(types.Global)
			_ = s.settings.Unpublish(types.Global) // zedagent is late
			s.start()
			s.expect(after)
			s.beside(former)
			s.turn(former, former)
			s.expect(former)
			s.say("", "", after)
			s.expect(former)
			s.ends()
			s.expect(former)
			s.beside("")
			s.stop()
			s.start()
			s.later()
			s.expect(former)
		})
	}
}

func TestAnAgentThatIsKilledBetweenTheTwoFilesWritesTheSecond(t *testing.T) {
	member(t, before, func(s *story) {
		s.put(s.file+".former", before)
		s.say("", "", after)
		s.stop()
		s.turn(after, before)
		s.start()
		s.later()
		s.expect(after)
		s.beside(before)
	})
}

func TestASecondOverrideKeepsTheFormerOneThatRan(t *testing.T) {
	member(t, before, func(s *story) {
		s.say("", "", after)
		s.turn(after, before)
		s.say("", "", "v: 2\n") // k3s does not come up with after
		s.turn("v: 2\n", before)
		s.expect("v: 2\n")
		s.beside(before)
		s.turn(before, before)
		s.expect(before)
	})
}

func TestNothingIsWrittenBeforeTheFormerFileIsKept(t *testing.T) {
	member(t, before, func(s *story) {
		if err := os.MkdirAll(s.file+".former/in the way", 0o700); err != nil {
			s.Fatal(err)
		}
		s.say("", "", after)
		s.turn(after, before)
		time.Sleep(time.Minute)
		s.expect(before)
		if err := os.RemoveAll(s.file + ".former"); err != nil {
			s.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.expect(after)
		s.beside(before)
	})
}

func TestNothingIsReleasedToAFileThatHasNotBeenRead(t *testing.T) {
	tell(t, func(s *story) {
		_ = s.member.Publish(types.Global, types.ClusterMembership{State: types.MembershipMember})
		_ = s.kube.Publish(types.Global, kube("v1.34.2+k3s1", false))
		s.start()
		s.say("", "", after)
		if o, _ := s.override.Get(types.Global); o.InForce != "" {
			s.Errorf("before the mount: %+v", o)
		}
		s.turn(after, before)
		s.mount()
		s.k3s("v1.34.2+k3s1")
		s.put(s.file, before)
		s.later()
		s.later()
		s.expect(after)
		s.beside(before)
	})
}

func TestWhatIsChangedWithoutATurn(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*facts)
		keeps  bool
	}{
		"a member's is not":                           {func(*facts) {}, false},
		"nor while it is not known whether it is one": {func(f *facts) { f.node = node{} }, false},
		"a device without a cluster":                  {func(f *facts) { f.node.alone = true }, true},
		"k3s has never run here":                      {func(f *facts) { f.neverRan = true }, true},
		"the file is so":                              {func(f *facts) { f.current.name = sumOf([]byte(after)) }, true},
		"another release":                             {func(f *facts) { f.lifecycle.Override.Released = sumOf([]byte("x: y\n")) }, false},
		"a release":                                   {func(f *facts) { f.lifecycle.Override.Released = sumOf([]byte(after)) }, true},
		"a release, and the file is not known":        {func(f *facts) { f.lifecycle.Override.Released, f.current = sumOf([]byte(after)), onDisk{} }, false},
	} {
		is := keptfile.Desired{Do: keptfile.Write, Content: before}
		f := facts{
			now: now, heard: true, settings: settings("", "", "ZGVidWc6IGZhbHNlCg=="), node: node{known: true}, lifecycle: &types.KubeLifecycle{},
			current: onDisk{is, nameOf(is)}, former: onDisk{keptfile.Desired{Do: keptfile.Remove}, types.K3sNoOverride},
		}
		row.change(&f)
		if a := decided(f); (a.keep != nil && a.keep.Content == after) != row.keeps {
			t.Errorf("%s: %+v", name, a.keep)
		}
	}
}

func TestAFileThatCannotBeReadIsReplacedInItsTurn(t *testing.T) {
	member(t, "", func(s *story) {
		s.stop()
		s.put(s.file, strings.Repeat("#", maxOverride+1))
		s.start()
		s.say("", "", after)
		if o, _ := s.override.Get(types.Global); o.InForce != types.K3sOverrideUnreadable {
			s.Errorf("%+v", o)
		}
		_ = s.lifecycle.Publish(types.Global, types.KubeLifecycle{Override: types.K3sOverrideTurn{Released: sumOf([]byte(after))}})
		s.later()
		s.expect(after)
	})
}

func TestK3sHasNeverRunWhereNothingSaysSo(t *testing.T) {
	tell(t, func(s *story) {
		_ = s.member.Publish(types.Global, types.ClusterMembership{State: types.MembershipMember})
		s.mount()
		s.start()
		s.say("", "", after)
		s.expect(after)
		s.put(s.disk+"/k3s.pid", "7\n")
		s.say("", "", before)
		s.later()
		s.expect(after)
	})
}
