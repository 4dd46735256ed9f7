package keptfile

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disk answers when it is told to.
type disk chan answer

type answer struct {
	did Result
	err error
}

func (d disk) run(File, Desired) (Result, error) {
	is := <-d
	return is.did, is.err
}

func TestADiskThatHangsHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, bell := make(disk), make(chan struct{}, 1)
		k := &Keeper{Work: d.run}
		k.Notify(bell)
		began := time.Now()
		k.Begin(t.Context(), File{}, there)
		time.Sleep(time.Hour)
		if _, _, ok := k.Collect(time.Now()); ok {
			t.Error("something came of it")
		}
		if diff := cmp.Diff(State{Busy: true, Since: began}, k.State()); diff != "" {
			t.Error("want -, got +\n" + diff)
		}
		if waits := time.Now(); k.End() || time.Since(waits) != patience {
			t.Errorf("its end took %s", time.Since(waits))
		}
		close(d) // it answers
		<-bell
		if _, is, ok := k.Collect(time.Now()); !ok || !is.Stands(there) {
			t.Errorf("%+v came of it, %v", is, ok)
		}
		if diff := cmp.Diff(State{Kept: there, Stands: true, At: time.Now()}, k.State()); diff != "" {
			t.Error("want -, got +\n" + diff)
		}
	})
}

func TestTheEndWaitsForADiskThatAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := make(disk)
		k := &Keeper{Work: d.run}
		if !k.End() {
			t.Error("there is nothing to wait for")
		}
		k.Begin(t.Context(), File{}, there)
		time.AfterFunc(patience/2, func() { close(d) })
		if began := time.Now(); !k.End() || time.Since(began) != patience/2 {
			t.Errorf("it took %s", time.Since(began))
		}
	})
}

func TestAKeeperKeepsTheFile(t *testing.T) {
	p, bell := newPlace(t, true), make(chan struct{}, 1)
	k := &Keeper{}
	k.Notify(bell)
	for _, row := range []struct {
		wish Desired
		want Result
	}{{there, Written}, {there, Same}, {gone, Removed}} {
		k.Begin(t.Context(), p.File, row.wish)
		<-bell
		if _, is, ok := k.Collect(time.Now()); !ok || is.Result != row.want || is.Err != nil {
			t.Errorf("%+v came of it, %v", is, ok)
		}
		p.is(row.wish)
	}
}

func TestEveryLookHasOneOutcomeBesideTheOneBefore(t *testing.T) {
	d, bell, bad := make(disk, 1), make(chan struct{}, 1), errors.New("bad")
	k := &Keeper{Work: d.run}
	k.Notify(bell)
	var last Outcome
	for _, now := range []Outcome{
		{there, Awaits, nil},
		{there, Awaits, nil},
		{there, Written, nil},
		{there, Same, bad},
		{there, Same, bad},
		{gone, Awaits, nil},
		{gone, Same, nil},
	} {
		d <- answer{now.Result, now.Err}
		k.Begin(t.Context(), File{}, now.Desired)
		<-bell // rings though the outcome may be the same
		was, is, ok := k.Collect(time.Now())
		if diff := cmp.Diff([]Outcome{last, now}, []Outcome{was, is}, cmpopts.EquateErrors()); diff != "" || !ok {
			t.Error("want -, got +\n" + diff)
		}
		if _, _, again := k.Collect(time.Now()); again {
			t.Error("it is there twice")
		}
		if !errors.Is(k.Err(), now.Err) {
			t.Errorf("the error is %v", k.Err())
		}
		last = now
	}
}

func TestAFailureForgottenIsStillNoSuccess(t *testing.T) {
	d, bell := make(disk, 1), make(chan struct{}, 1)
	k := &Keeper{Work: d.run}
	k.Notify(bell)
	d <- answer{Same, errors.New("bad")}
	k.Begin(t.Context(), File{}, there)
	<-bell
	k.Collect(time.Now())
	k.Forget()
	if was, _, _ := k.Collect(time.Now()); k.Err() != nil || was.Stands(there) {
		t.Errorf("%v, %+v", k.Err(), was)
	}
}

func TestWhatAnOutcomeSays(t *testing.T) {
	for name, row := range map[string]struct {
		is            Outcome
		stands, waits bool
	}{
		"none":                               {Outcome{}, false, false},
		"it was written":                     {Outcome{Desired: there, Result: Written}, true, false},
		"it was there":                       {Outcome{Desired: there}, true, false},
		"it could not be written":            {Outcome{Desired: there, Err: errors.New("bad")}, false, false},
		"it waits for its directory":         {Outcome{Desired: there, Result: Awaits}, false, true},
		"no file waits for no directory":     {Outcome{Desired: gone, Result: Awaits}, false, false},
		"it has the content of another wish": {Outcome{Desired: Desired{Write, "else"}, Result: Written}, false, false},
		"it is removed, as by another wish":  {Outcome{Desired: gone, Result: Removed}, false, false},
	} {
		if s, w := row.is.Stands(there), row.is.Waits(); s != row.stands || w != row.waits {
			t.Errorf("%s: stands %v, waits %v", name, s, w)
		}
	}
}

func TestWhenTheNextLookIsDue(t *testing.T) {
	now, every := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC), 10*time.Second
	for name, row := range map[string]struct {
		s    State
		want time.Duration
	}{
		"at once after the start":       {State{}, 0},
		"at once for another wish":      {State{Kept: gone, At: now}, 0},
		"again for the same":            {State{Kept: there, At: now}, every},
		"which is a while from the end": {State{Kept: there, At: now.Add(-every + time.Second)}, time.Second},
		"and then at once":              {State{Kept: there, At: now.Add(-every)}, 0},
		"however late":                  {State{Kept: there, At: now.Add(-time.Hour)}, 0},
	} {
		if got := row.s.Due(there, now, every); got != row.want {
			t.Errorf("%s: in %s, want %s", name, got, row.want)
		}
	}
}
