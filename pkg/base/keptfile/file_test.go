package keptfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatOthersDoToTheFileIsUndone(t *testing.T) {
	eachRule(t, func(t *testing.T, p *place) {
		p.keeps(there, Written)
		for name, harm := range harms {
			p.must(harm(p))
			if p.keeps(there, Written); t.Failed() {
				t.Fatalf("after it was %s", name)
			}
		}
	})
}

func TestAFileThatIsNotToBeThereIsRemovedWhoeverMadeIt(t *testing.T) {
	eachRule(t, func(t *testing.T, p *place) {
		p.keeps(gone, Same)
		for name, harm := range harms {
			p.keeps(there, Written)
			p.must(harm(p))
			want := Removed
			if _, err := os.Lstat(p.Path); err != nil {
				want = Same
			}
			if p.keeps(gone, want); t.Failed() {
				t.Fatalf("after it was %s", name)
			}
		}
	})
}

func TestWhatALinkPointsToIsLeftAlone(t *testing.T) {
	eachRule(t, func(t *testing.T, p *place) {
		theirs := filepath.Join(t.TempDir(), "theirs")
		p.must(os.WriteFile(theirs, []byte("theirs"), 0o644))
		for _, w := range []Desired{there, gone} {
			p.must(os.MkdirAll(p.dir, 0o700))
			_ = os.Remove(p.Path)
			p.must(errors.Join(os.Symlink(theirs, p.Path), os.Symlink(theirs, p.part)))
			if _, err := p.Keep(w); err != nil {
				t.Error(err)
			}
			p.is(w)
			if got, err := os.ReadFile(theirs); string(got) != "theirs" {
				t.Errorf("it became %q, %v", got, err)
			}
		}
	})
}

func TestTheMountIsAwaitedAndNeverMade(t *testing.T) {
	eachRule(t, func(t *testing.T, p *place) {
		p.must(os.Remove(p.mount))
		for _, w := range []Desired{there, gone} {
			if did, err := p.Keep(w); did != Awaits || err != nil {
				t.Errorf("it did %d (%v)", did, err)
			}
			if _, err := os.Stat(p.mount); !errors.Is(err, fs.ErrNotExist) {
				t.Fatal("the mount was made")
			}
		}
		p.must(os.Mkdir(p.mount, 0o755))
		p.keeps(there, Written)
	})
}

func TestOurDirectoryIsForUsAloneAndTheMountStaysAsItIs(t *testing.T) {
	p := newPlace(t, true)
	modes := func() {
		t.Helper()
		for path, want := range map[string]fs.FileMode{p.dir: 0o700, p.mount: 0o755} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", path, info, err)
			}
		}
	}
	p.keeps(gone, Same)
	if _, err := os.Stat(p.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it is made for no file")
	}
	p.keeps(there, Written)
	modes()
	p.must(os.Chmod(p.dir, 0o755))
	p.keeps(there, Same)
	modes()
	p = newPlace(t, false)
	p.keeps(there, Written)
	if info, err := os.Stat(p.mount); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the mount: %v, %v", info, err)
	}
}

func TestAnEqualFileIsNotWrittenAgain(t *testing.T) {
	eachRule(t, func(t *testing.T, p *place) {
		p.keeps(there, Written)
		before, err := os.Stat(p.Path)
		p.must(err)
		p.must(os.WriteFile(p.part, []byte("half"), 0o600))
		p.keeps(there, Same)
		after, err := os.Stat(p.Path)
		p.must(err)
		if !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
			t.Error("it was")
		}
	})
}

func TestAWishToLeaveItAloneTouchesNothing(t *testing.T) {
	p := newPlace(t, false)
	p.must(os.WriteFile(p.Path, []byte("theirs"), 0o644))
	if did, err := p.Keep(Desired{}); did != Same || err != nil {
		t.Error(did, err)
	}
	if got, err := os.ReadFile(p.Path); string(got) != "theirs" {
		t.Errorf("it became %q, %v", got, err)
	}
}

func TestAFailureNamesTheFileAndLeavesNothingHalf(t *testing.T) {
	eachRule(t, func(t *testing.T, p *place) {
		p.must(os.MkdirAll(filepath.Join(p.Path, "in the way"), 0o700))
		for w, begin := range map[Desired]string{there: "write the file: ", gone: "remove the file: "} {
			did, err := p.Keep(w)
			if did != Same || err == nil || !strings.HasPrefix(err.Error(), begin) {
				t.Errorf("it did %d, %v", did, err)
			}
			if _, err := os.Lstat(p.part); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("half a file: %v", err)
			}
		}
	})
	eachRule(t, func(t *testing.T, p *place) {
		p.must(errors.Join(os.RemoveAll(p.dir), os.WriteFile(p.dir, nil, 0o600))) // in the directory's place
		for _, w := range []Desired{there, gone} {
			if did, err := p.Keep(w); did != Same || err == nil || !strings.Contains(err.Error(), "the file: ") {
				t.Errorf("it did %d, %v", did, err)
			}
		}
	})
}

// Its reader may look at any moment.
func TestAFileIsNeverMissingOrHalf(t *testing.T) {
	p := newPlace(t, true)
	texts := []string{strings.Repeat("a", 100000), strings.Repeat("b", 100001)}
	p.keeps(Desired{Write, texts[0]}, Written)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			if did, err := p.Keep(Desired{Write, texts[(i+1)%2]}); err != nil || did != Written {
				t.Error(did, err)
			}
		}
	}()
	for {
		if got, err := os.ReadFile(p.Path); err != nil || string(got) != texts[0] && string(got) != texts[1] {
			<-done
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
