package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/zedkube/zedkube/types"
)

const (
	// handOver is how long the views of a new connection may take for their
	// first lists, and any view for the list after a watch that has ended,
	// without their tables being said not to be whole: those keep their rows
	// meanwhile, and mostly nothing has changed.
	handOver = answerWithin
	// whyText bounds what a server says of itself in a row.
	whyText = 300
)

var (
	errNoList = errors.New("no list has been received yet")
	errEnded  = errors.New("the watch has ended")
)

// standing says how the table of one view is, in that view's row of the table
// of types.TableStatus.
type standing struct {
	log   logrus.FieldLogger
	table Writer[types.TableStatus]
	name  string

	mu    sync.Mutex
	over  bool              // the view has ended: another one speaks
	late  *time.Timer       // rings when a list that is due has not come; nil for none
	row   types.TableStatus // what it was found, doubts left out
	doubt string            // why a table that is kept is not right nevertheless; "" while it is
}

// begin takes over the row as another connection left it, for so long as that
// can be true, and makes it if there is none. The caller calls end in the end.
func (s *standing) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.table.Get(s.name)
	if s.row = row; !ok {
		s.set(types.TableStatus{Why: errNoList.Error()})
	}
	s.await(errNoList.Error())
}

// lapses notes that the table is no more watched, why, and to be listed anew:
// it stands for so long as that may take.
func (s *standing) lapses(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.await(why)
}

// await is called with mu held.
func (s *standing) await(why string) {
	s.heard()
	var late *time.Timer
	late = time.AfterFunc(handOver, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.late == late {
			s.set(types.TableStatus{Why: why})
		}
	})
	s.late = late
}

// heard is called with mu held.
func (s *standing) heard() {
	if s.late != nil {
		s.late.Stop()
		s.late = nil
	}
}

// whole notes that the table holds a complete list; absent: as there is no such
// kind of object.
func (s *standing) whole(absent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard()
	s.set(types.TableStatus{Whole: true, Absent: absent})
}

// fails notes why the table cannot be kept.
func (s *standing) fails(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard()
	s.set(types.TableStatus{Why: why})
}

// doubts notes why a table that is kept is not right, "" for that it is.
func (s *standing) doubts(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubt = cut(why, whyText)
	s.set(s.row)
}

// set is called with mu held.
func (s *standing) set(next types.TableStatus) {
	if s.row = next; s.over {
		return
	}
	if next.Whole && s.doubt != "" {
		next = types.TableStatus{Why: s.doubt}
	}
	last, ok := s.table.Get(s.name)
	next.Since = last.Since
	if !ok || last.Whole != next.Whole {
		next.Since = time.Now()
	}
	if err := s.table.Publish(s.name, next); err != nil {
		s.log.WithError(err).WithField("table", s.name).Error("publish how a table is")
	}
}

// end lets nothing be said any more, and removes the row unless another view
// goes on with the table.
func (s *standing) end(goesOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard()
	if s.over = true; goesOn {
		return
	}
	if err := s.table.Unpublish(s.name); err != nil {
		s.log.WithError(err).WithField("table", s.name).Error("withdraw how a table is")
	}
}

// sentence says for people why a list did not come, err, which may be nil.
func sentence(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return "the list broke off"
	case errors.As(err, &status) && status.Status().Code != 0:
		return cut(fmt.Sprintf("the API server answers %d: %s", status.Status().Code, status.Status().Message), whyText)
	case errors.Is(err, context.Canceled):
		return "the API server was given up"
	}
	if inner := errors.Unwrap(err); inner != nil { // without the Reflector's words
		err = inner
	}
	return cut(reasonOf(err), whyText)
}

// silent says for people that the API server is silent.
func silent(reason string) string {
	if reason == "" {
		return "the API server did not answer"
	}
	return cut("the API server does not answer: "+reason, whyText)
}
