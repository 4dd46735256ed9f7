package audit

import (
	"cmp"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	syncEvery  = time.Second      // what a power cut may cost while much is done
	writeAgain = 10 * time.Second // the pause between tries on a full disk, if nothing is done
)

type facts struct {
	now      time.Time
	dirty    bool        // something is written and not on the disk
	synced   time.Time   // when it last was put there
	waiting  int         // lines that could not be written
	counts   []time.Time // when each that is behind is to be written
	segments []segment   // the files, oldest first
	keep     int         // how many may stay
	err      error       // why they could not be listed

	asks   map[string]types.Operation // what the device is asked for, by ID
	asked  map[string]types.Operation // the same, at the last look
	silent map[string]bool            // by operation and requester: whose topic has not been heard of yet

	life   life
	stands map[subject]standing
}

type segment struct {
	name string
	n    int
}

type action struct {
	sync   bool
	write  bool // what waits
	counts bool // how often what is tried again and again was tried
	all    bool // also those that are not due
	remove []segment
	heard  []types.Operation          // what the device was asked for since the last look
	asked  map[string]types.Operation // what it is asked for now
	again  time.Duration
	err    error
}

// decide says what to put on the disk, what to try again, what goes, and what was
// asked for.
func decide(f facts) action {
	a := action{err: f.err, write: f.waiting > 0, heard: requestsMade(f), asked: f.asks}
	for id, o := range f.asked {
		if _, stands := f.asks[id]; !stands && f.silent[o.Op+" "+o.By] {
			a.asked[id] = o
		}
	}
	lines, again := newLines(f)
	a.heard = append(a.heard, lines...)
	if again > 0 {
		a.wait(again)
	}
	if f.dirty {
		if rest := syncEvery - f.now.Sub(f.synced); rest > 0 && rest <= syncEvery {
			a.wait(rest)
		} else {
			a.sync = true
		}
	}
	if a.write {
		a.wait(writeAgain)
	}
	for _, due := range f.counts {
		if rest := due.Sub(f.now); rest > 0 {
			a.wait(rest)
		} else {
			a.counts = true
		}
	}
	if f.err == nil && len(f.segments) > f.keep {
		oldest := slices.SortedFunc(slices.Values(f.segments), func(x, y segment) int { return cmp.Compare(x.n, y.n) })
		a.remove = oldest[:len(oldest)-f.keep]
	}
	return a
}

// wait asks to be called again within d.
func (a *action) wait(d time.Duration) {
	if a.again == 0 || d < a.again {
		a.again = d
	}
}

const (
	// within is how soon after one try the next one has to come to be counted
	// with it.
	within = 10 * time.Minute
	// countEvery and countAtMost are how often a count is written: a drain may
	// ask for the same eviction every few seconds for days.
	countEvery  = time.Minute
	countAtMost = time.Hour
)

// nextCount is when a count that is not written yet is to be: the older the
// first try, the later.
func nextCount(first, written time.Time) time.Time {
	return written.Add(min(max(countEvery, written.Sub(first)/10), countAtMost))
}
