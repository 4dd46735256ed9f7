package listwatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

const (
	// HandOver is how long the views of a new connection may take for their
	// first lists, and any view for the list after a watch that has ended,
	// without their tables being said not to be whole: those keep their rows
	// meanwhile, and mostly nothing has changed.
	HandOver = access.AnswerWithin
	// WhyText bounds what a server says of itself in a row.
	WhyText = 300
)

var (
	errNoList = errors.New("no list has been received yet")
	errEnded  = errors.New("the watch has ended")
)

// Status says how the table of one view is, in that view's row of the table
// of types.TableStatus.
type Status struct {
	Log   logrus.FieldLogger
	Table access.Writer[types.TableStatus]
	Name  string

	mu    sync.Mutex
	over  bool              // the view has ended: another one speaks
	late  *time.Timer       // rings when a list that is due has not come; nil for none
	row   types.TableStatus // what it was found, doubts left out
	doubt string            // why a table that is kept is not right nevertheless; "" while it is
}

// begin takes over the row as another connection left it, for so long as that
// can be true, and makes it if there is none. The caller calls end in the end.
func (s *Status) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.Table.Get(s.Name)
	if s.row = row; !ok {
		s.set(types.TableStatus{Why: errNoList.Error()})
	}
	s.await(errNoList.Error())
}

// lapses notes that the table is no longer watched, why, and to be listed again:
// it stands for so long as that may take.
func (s *Status) lapses(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.await(why)
}

// await is called with mu held.
func (s *Status) await(why string) {
	s.heard()
	var late *time.Timer
	late = time.AfterFunc(HandOver, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.late == late {
			s.set(types.TableStatus{Why: why})
		}
	})
	s.late = late
}

// heard is called with mu held.
func (s *Status) heard() {
	if s.late != nil {
		s.late.Stop()
		s.late = nil
	}
}

// Complete notes that the table holds a complete list; absent: as there is no such
// kind of object.
func (s *Status) Complete(absent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard()
	s.set(types.TableStatus{Complete: true, Absent: absent})
}

// fails notes why the table cannot be kept.
func (s *Status) fails(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard()
	s.set(types.TableStatus{Why: why})
}

// Doubts notes why a table that is kept is not right, "" for that it is.
func (s *Status) Doubts(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubt = access.Cut(why, WhyText)
	s.set(s.row)
}

// set is called with mu held.
func (s *Status) set(next types.TableStatus) {
	if s.row = next; s.over {
		return
	}
	if next.Complete && s.doubt != "" {
		next = types.TableStatus{Why: s.doubt}
	}
	last, ok := s.Table.Get(s.Name)
	next.Since = last.Since
	if !ok || last.Complete != next.Complete {
		next.Since = time.Now()
	}
	if err := s.Table.Publish(s.Name, next); err != nil {
		s.Log.WithError(err).WithField("table", s.Name).Error("publish the status of a table")
	}
}

// End lets nothing be said any more, and removes the row unless another view
// goes on with the table.
func (s *Status) End(goesOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard()
	if s.over = true; goesOn {
		return
	}
	if err := s.Table.Unpublish(s.Name); err != nil {
		s.Log.WithError(err).WithField("table", s.Name).Error("withdraw the status of a table")
	}
}

// sentence says for people why a list did not come, err, which may be nil.
func sentence(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return "the list broke off"
	case errors.As(err, &status) && status.Status().Code != 0:
		return access.Cut(fmt.Sprintf("the API server answers %d: %s", status.Status().Code, status.Status().Message), WhyText)
	case errors.Is(err, context.Canceled):
		return "the API server was given up"
	}
	if inner := errors.Unwrap(err); inner != nil { // without the Reflector's words
		err = inner
	}
	return access.Cut(access.ReasonOf(err), WhyText)
}

// silent says for people that the API server is silent.
func silent(reason string) string {
	if reason == "" {
		return "the API server did not answer"
	}
	return access.Cut("the API server does not answer: "+reason, WhyText)
}
