// Package keptfile keeps a small file for another program: it is there with
// its content, or not there, whatever others do to it (docs/wire.md, "Files").
// Nobody but us can read it, its reader sees the old one or the new one, and
// the work on it holds nothing up, since a strange disk may let a call hang
// for ever.
package keptfile

import (
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// patience is how long the end of the agent waits for the disk.
const patience = 5 * time.Second

// Keeper keeps one file beside the steps of the component that holds it. Its
// zero value has not looked yet. All but Notify is for one goroutine.
type Keeper struct {
	Work func(File, Desired) (Result, error) // nil for File.Keep; tests have one that hangs

	running     *call                 // the work under way, nil for none
	resultTable pubsub.Table[Outcome] // where it leaves its outcome, and rings
	last        Outcome               // of the work that ended last
	lastAt      time.Time             // when that was
	err         error                 // why it failed, until that is forgotten
}

// call is the work under way.
type call struct {
	n     int
	began time.Time
	done  chan struct{}
}

// Outcome is what came of one look at the file. Its zero value is none.
type Outcome struct {
	Desired Desired
	Result  Result
	Err     error
	n       int // counts the looks, so that every one rings
}

// Stands reports that the file was as wished after it.
func (o Outcome) Stands(w Desired) bool { return o.Desired == w && o.Err == nil && o.Result != Awaits }

// Waits reports that the file is to be written once its directory is there.
func (o Outcome) Waits() bool { return o.Desired.Do == Write && o.Result == Awaits }

// Act is what was done to the file, or failed: "write file" or "remove file"; ""
// where there was nothing to do.
func (o Outcome) Act() string {
	switch {
	case o.Result == Removed, o.Err != nil && o.Desired.Do == Remove:
		return "remove file"
	case o.Result == Written, o.Err != nil && o.Desired.Do == Write:
		return "write file"
	}
	return ""
}

// Begin looks at the file and makes it what it should be. It returns at once.
// It is for a Keeper that is not busy.
func (k *Keeper) Begin(f File, w Desired) {
	run := k.Work
	if run == nil {
		run = File.Keep
	}
	now := &call{n: k.last.n + 1, began: time.Now(), done: make(chan struct{})}
	k.running = now
	go func() {
		defer close(now.done)
		did, err := run(f, w)
		_ = k.resultTable.Publish(types.Global, Outcome{Desired: w, Result: did, Err: err, n: now.n})
	}()
}

// Notify rings when there is something to collect.
func (k *Keeper) Notify(bell chan<- struct{}) { k.resultTable.Notify(bell) }

// Collect takes in the outcome of the work that has ended; ok is false where
// none has. was is the one before.
func (k *Keeper) Collect(now time.Time) (was, is Outcome, ok bool) {
	is, _ = k.resultTable.Get(types.Global)
	if k.running == nil || is.n != k.running.n {
		return k.last, k.last, false
	}
	was = k.last
	k.running, k.last, k.lastAt, k.err = nil, is, now, is.Err
	return was, is, true
}

// Err is why the last look failed.
func (k *Keeper) Err() error { return k.err }

// Forget forgets why the last look failed: nothing is wanted of the file any more.
func (k *Keeper) Forget() { k.err = nil }

// End waits until the work under way has ended, but not for long; it reports
// whether it has.
func (k *Keeper) End() bool {
	if k.running == nil {
		return true
	}
	select {
	case <-k.running.done:
		return true
	case <-time.After(patience):
		return false
	}
}

// State is what a decision may have to know of a Keeper.
type State struct {
	Kept  Desired   // of the last look; it leaves alone before the first
	At    time.Time // when that ended
	Busy  bool      // there is work under way
	Since time.Time // when that began
}

// State returns what is known now.
func (k *Keeper) State() State {
	s := State{Kept: k.last.Desired, At: k.lastAt}
	if k.running != nil {
		s.Busy, s.Since = true, k.running.began
	}
	return s
}

// Due is how long after now the next look should be: none for another wish
// than the last look's, else every so often, since others may touch the file.
func (s State) Due(w Desired, now time.Time, every time.Duration) time.Duration {
	if s.Kept != w {
		return 0
	}
	return max(0, s.At.Add(every).Sub(now))
}
