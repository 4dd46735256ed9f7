package kubeapi

import (
	"context"
	"fmt"
	"sync"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/types"
)

// Session carries verbs to the API server, on one connection at a time. It is
// ready at once: while there is no connection, verbs return an error that wraps
// types.ErrNoAPI.
type Session struct {
	Logger     logrus.FieldLogger
	path       string             // of the kubeconfig
	operations types.OperationLog // hears of everything that is written

	mu   sync.Mutex
	conn *connection // nil for none
}

// NewSession is a session without a connection yet. The kubeconfig is only named
// in errors; operations hears of everything that verbs write.
func NewSession(log logrus.FieldLogger, kubeconfig string, operations types.OperationLog) *Session {
	return &Session{Logger: log, path: kubeconfig, operations: operations}
}

// use hands out the present connection to a verb, which calls done when it
// returns.
func (s *Session) use() (conn *connection, done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil, nil, fmt.Errorf("%w: no usable kubeconfig %s", types.ErrNoAPI, s.path)
	}
	s.conn.users.Add(1)
	return s.conn, s.conn.users.Done, nil
}

// present is the present connection, nil for none.
func (s *Session) present() *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn
}

// swap makes next, nil for none, the present connection, and returns the former
// one, on which verbs may still be under way.
func (s *Session) swap(next *connection) (former *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	former, s.conn = s.conn, next
	return former
}

// verb runs do on the present connection, for no longer than verbWithin.
func (s *Session) verb(ctx context.Context, do func(context.Context, *connection) error) error {
	conn, done, err := s.use()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, verbWithin)
	defer cancel()
	return do(ctx, conn)
}

// write runs a verb that writes, and puts it on record. Its error begins with act
// and wraps the class it belongs to, if any: types.ErrRefused, ErrConflict, or
// ErrNoAnswer, after which the write may have been made or may yet be. So it may
// after a caller has cancelled it, who has not waited for an answer.
func (s *Session) write(ctx context.Context, d deed, act string, do func(context.Context, *connection) error) error {
	return s.record(ctx, d, func(ctx context.Context) error { return classed(ctx, act, s.verb(ctx, do)) })
}
