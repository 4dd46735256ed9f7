package k3sconfig

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestSettingsReachTheKubeContainer(t *testing.T) {
	tell(t, func(s *story) {
		s.mount()
		s.start()
		if _, ok := s.kube.Get(types.Global); ok {
			s.Error("something is published before zedagent has spoken")
		}
		s.say("v1.32.1+k3s1", "boot", yaml)
		s.expectKube(kube("v1.32.1+k3s1", true))
		s.expect(yaml)
		s.say("v1.32.1+k3s1", "", "other: 1\n")
		s.expectKube(kube("v1.32.1+k3s1", false))
		s.expect("other: 1\n")
		s.say("", "", "")
		s.expectKube(kube("", false))
		s.expect("")
	})
}

func TestASettingRemovedWhileTheAgentWasDownIsUndone(t *testing.T) {
	tell(t, func(s *story) {
		s.mount()
		_ = s.kube.Publish(types.Global, kube("v1.30.0+k3s1", true))
		if err := os.WriteFile(s.file, []byte(yaml), 0o600); err != nil {
			s.Fatal(err)
		}
		s.start()
		time.Sleep(10 * period)
		s.expectKube(kube("v1.30.0+k3s1", true)) // zedagent has not spoken yet
		s.expect(yaml)
		s.say("", "", "")
		s.expectKube(kube("", false))
		s.expect("")
	})
}

func TestTheFileWaitsForItsDirectoryAndNobodyMakesThat(t *testing.T) {
	tell(t, func(s *story) {
		s.start()
		s.say("v1.32.1+k3s1", "", yaml)
		s.expectKube(kube("v1.32.1+k3s1", false))
		time.Sleep(100 * period)
		if _, err := os.Stat(s.vault); !errors.Is(err, os.ErrNotExist) {
			s.Fatal("the directory was made")
		}
		if n := s.logged("waits for its directory"); n != 1 {
			s.Errorf("%d lines say that it waits", n)
		}
		s.mount()
		time.Sleep(period)
		s.settle()
		s.expect(yaml)
	})
}

func TestWhatOthersDoToTheFileIsUndone(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	tell(t, func(s *story) {
		s.mount()
		s.start()
		s.say("", "", yaml)
		for name, do := range map[string]func() error{
			"removed":                func() error { return os.Remove(s.file) },
			"changed":                func() error { return os.WriteFile(s.file, []byte(strings.ToUpper(yaml)), 0o600) },
			"appended to":            func() error { return os.WriteFile(s.file, []byte(yaml+"a: 1\n"), 0o600) },
			"cut short":              func() error { return os.Truncate(s.file, 3) },
			"opened to everybody":    func() error { return os.Chmod(s.file, 0o644) },
			"replaced by a link":     func() error { return link(outside, s.file) },
			"replaced by a fifo":     func() error { return fifo(s.file) },
			"made anew by the mount": func() error { return errors.Join(os.RemoveAll(s.vault), os.Mkdir(s.vault, 0o700)) },
			"half written by a run that was killed": func() error {
				return os.WriteFile(filepath.Join(s.vault, ".k3s-user-override.yaml.part"), []byte("half"), 0o600)
			},
		} {
			if err := do(); err != nil {
				s.Fatalf("%s: %v", name, err)
			}
			time.Sleep(period)
			s.settle()
			if s.expect(yaml); s.Failed() {
				s.Fatalf("after it was %s", name)
			}
		}
		if got, err := os.ReadFile(outside); err != nil || string(got) != "theirs" {
			s.Errorf("what a link points to became %q, %v", got, err)
		}
		s.say("", "", "")
		s.expect("")
		if err := os.WriteFile(s.file, []byte("theirs"), 0o600); err != nil {
			s.Fatal(err)
		}
		time.Sleep(period)
		s.settle()
		s.expect("")
	})
}

func TestBadSettingsChangeNothingAndAreToldOnce(t *testing.T) {
	tell(t, func(s *story) {
		s.mount()
		s.start()
		s.say("v1.32.1+k3s1", "", yaml)
		_ = s.settings.Publish(types.Global, settings("v1\x07", "boot", "secret!"))
		time.Sleep(10 * period)
		s.settle()
		s.expectKube(kube("v1.32.1+k3s1", true)) // what is good is obeyed
		s.expect(yaml)
		if n := s.logged("make no sense"); n != 1 {
			s.Errorf("%d lines say that the settings make no sense", n)
		}
		_ = os.Remove(s.file)
		time.Sleep(period)
		s.settle()
		s.expect(yaml)
		_ = s.settings.Unpublish(types.Global)
		time.Sleep(10 * period)
		s.expectKube(kube("v1.32.1+k3s1", true))
		s.expect(yaml)
		s.say("v1.33.0+k3s1", "", yaml)
		s.expectKube(kube("v1.33.0+k3s1", false))
		if s.logged("make sense again") != 1 || s.logged("secret") != 0 || s.logged("max-pods") != 0 {
			s.Error("want one line that all is good again, and no content")
		}
	})
}

func TestAFailureIsTriedAgainAndSaidOnce(t *testing.T) {
	tell(t, func(s *story) {
		s.mount()
		if err := os.MkdirAll(filepath.Join(s.file, "in the way"), 0o700); err != nil {
			s.Fatal(err)
		}
		s.start()
		s.say("v1.32.1+k3s1", "", yaml)
		s.expectKube(kube("v1.32.1+k3s1", false))
		time.Sleep(100 * period)
		if n := s.logged("write override file of k3s"); n != 1 {
			s.Errorf("%d lines for one failure", n)
		}
		if err := os.RemoveAll(s.file); err != nil {
			s.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		s.settle()
		s.expect(yaml)
	})
}

func TestADiskThatHangsHoldsUpNothingElse(t *testing.T) {
	tell(t, func(s *story) {
		s.mount()
		hung := make(chan struct{})
		s.keep = func(path string, w wish) (result, error) { <-hung; return keepFile(path, w) }
		s.start()
		s.say("v1.32.1+k3s1", "", "old: 1\n")
		time.Sleep(3 * patience)
		s.say("v1.33.0+k3s1", "", yaml)
		s.expectKube(kube("v1.33.0+k3s1", false))
		if n := s.logged("the disk does not answer"); n != 1 {
			s.Errorf("%d lines say that the disk does not answer", n)
		}
		close(hung)
		s.settle()
		s.expect(yaml)
	})
}

func TestTheAgentEndsThoughTheDiskHangs(t *testing.T) {
	tell(t, func(s *story) {
		hung := make(chan struct{})
		s.keep = func(string, wish) (result, error) { <-hung; return same, nil }
		s.start()
		s.say("", "", yaml)
		began := time.Now()
		s.stop()
		if took := time.Since(began); took != stopPatience {
			s.Errorf("it took %s", took)
		}
		close(hung)
	})
}
