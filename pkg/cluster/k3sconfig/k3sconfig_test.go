package k3sconfig

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/types"
)

func TestSettingsReachTheKubeContainer(t *testing.T) {
	tell(t, func(s *story) {
		s.mount()
		s.start()
		if _, ok := s.kube.Get(types.Global); ok {
			s.Error("something is published before zedagent has spoken")
		}
		s.say("v1.32.1+k3s1", "boot", overrideYAML)
		s.expectKube(kube("", true))
		s.expect(overrideYAML)
		s.say("v1.32.1+k3s1", "", "other: 1\n")
		s.expectKube(kube("", false))
		s.expect("other: 1\n")
		s.say("", "", "")
		s.expectKube(kube("", false))
		s.expect("")
	})
}

func TestASettingRemovedWhileTheAgentWasDownIsUndoneButForTheVersion(t *testing.T) {
	tell(t, func(s *story) {
		s.mount()
		_ = s.kube.Publish(types.Global, kube("v1.30.0+k3s1", true))
		if err := os.WriteFile(s.file, []byte(overrideYAML), 0o600); err != nil {
			s.Fatal(err)
		}
		s.start()
		time.Sleep(10 * period)
		s.expectKube(kube("v1.30.0+k3s1", true)) // zedagent has not spoken yet
		s.expect(overrideYAML)
		s.say("", "", "")
		s.expectKube(kube("v1.30.0+k3s1", false))
		s.expect("")
	})
}

func TestTheFileWaitsForItsDirectoryAndNobodyMakesThat(t *testing.T) {
	tell(t, func(s *story) {
		s.start()
		s.say("v1.32.1+k3s1", "", overrideYAML)
		s.expectKube(kube("", false))
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
		s.expect(overrideYAML)
	})
}

func TestWhatOthersDoToTheFileIsUndone(t *testing.T) {
	tell(t, func(s *story) {
		s.mount()
		s.start()
		s.say("", "", overrideYAML)
		_ = os.Remove(s.file)
		time.Sleep(period)
		s.settle()
		s.expect(overrideYAML)
		if n := s.logged("restored"); n != 1 {
			s.Errorf("%d lines say that it was restored", n)
		}
		s.say("", "", "")
		s.expect("")
		if err := os.WriteFile(s.file, []byte("theirs"), 0o600); err != nil {
			s.Fatal(err)
		}
		time.Sleep(period)
		s.settle()
		s.expect("")
		s.say("", "", overrideYAML)
		if n := s.logged("restored"); n != 1 {
			s.Error("a new setting counts as a file that was restored")
		}
	})
}

func TestBadSettingsChangeNothingAndAreToldOnce(t *testing.T) {
	tell(t, func(s *story) {
		s.mount()
		s.start()
		s.say("v1.32.1+k3s1", "", overrideYAML)
		_ = s.settings.Publish(types.Global, settings("v1\x07", "boot", "secret!"))
		time.Sleep(10 * period)
		s.settle()
		s.expectKube(kube("", true)) // what is good takes effect
		s.expect(overrideYAML)
		if n := s.logged("invalid k3s settings"); n != 1 {
			s.Errorf("%d lines say that the settings are invalid", n)
		}
		_ = os.Remove(s.file)
		time.Sleep(period)
		s.settle()
		s.expect(overrideYAML)
		_ = s.settings.Unpublish(types.Global)
		time.Sleep(10 * period)
		s.expectKube(kube("", true))
		s.expect(overrideYAML)
		s.say("v1.33.0+k3s1", "", overrideYAML)
		s.expectKube(kube("", false))
		if s.logged("settings are valid again") != 1 || s.logged("secret") != 0 || s.logged("max-pods") != 0 {
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
		s.say("v1.32.1+k3s1", "", overrideYAML)
		s.expectKube(kube("", false))
		time.Sleep(100 * period)
		if n := s.logged("write override file of k3s"); n != 1 {
			s.Errorf("%d lines for one failure", n)
		}
		if err := os.RemoveAll(s.file); err != nil {
			s.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		s.settle()
		s.expect(overrideYAML)
	})
}

func TestADiskThatHangsHoldsUpNothingElse(t *testing.T) {
	tell(t, func(s *story) {
		s.mount()
		hung := make(chan struct{})
		s.work = func(f keptfile.File, w keptfile.Desired) (keptfile.Result, error) { <-hung; return f.Keep(w) }
		s.start()
		s.say("v1.32.1+k3s1", "", "old: 1\n")
		time.Sleep(3 * patience)
		s.say("v1.33.0+k3s1", "", overrideYAML)
		s.expectKube(kube("", false))
		if n := s.logged("the disk does not answer"); n != 1 {
			s.Errorf("%d lines say that the disk does not answer", n)
		}
		close(hung)
		s.settle()
		s.expect(overrideYAML)
	})
}

func TestTheAgentEndsThoughTheDiskHangs(t *testing.T) {
	tell(t, func(s *story) {
		hung := make(chan struct{})
		s.work = func(keptfile.File, keptfile.Desired) (keptfile.Result, error) { <-hung; return keptfile.Same, nil }
		s.start()
		s.say("", "", overrideYAML)
		s.stop()
		if s.logged("stopping without it") != 1 {
			s.Error("it does not say that it ends without the file")
		}
		close(hung)
	})
}
