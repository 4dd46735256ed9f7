package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

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
	conn *Connection // nil for none
}

// NewSession is a session without a connection yet. The kubeconfig is only named
// in errors; operations hears of everything that verbs write.
func NewSession(log logrus.FieldLogger, kubeconfig string, operations types.OperationLog) *Session {
	return &Session{Logger: log, path: kubeconfig, operations: operations}
}

// Use hands out the present connection to a verb, which calls done when it
// returns.
func (s *Session) Use() (conn *Connection, done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil, nil, fmt.Errorf("%w: no usable kubeconfig %s", types.ErrNoAPI, s.path)
	}
	s.conn.Users.Add(1)
	return s.conn, s.conn.Users.Done, nil
}

// Present is the present connection, nil for none.
func (s *Session) Present() *Connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn
}

// Swap makes next, nil for none, the present connection, and returns the former
// one, on which verbs may still be under way.
func (s *Session) Swap(next *Connection) (former *Connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	former, s.conn = s.conn, next
	return former
}

// Verb runs do on the present connection, for no longer than VerbWithin.
func (s *Session) Verb(ctx context.Context, do func(context.Context, *Connection) error) error {
	conn, done, err := s.Use()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, VerbWithin)
	defer cancel()
	return do(ctx, conn)
}

// Read is what do finds on the present connection, within VerbWithin. Its error
// begins with act; then nothing is returned of what was found.
func Read[T any](ctx context.Context, s *Session, act string, do func(context.Context, *Connection) (T, error)) (T, error) {
	var found, none T
	err := s.Verb(ctx, func(ctx context.Context, conn *Connection) (err error) {
		found, err = do(ctx, conn)
		return err
	})
	if err != nil {
		return none, fmt.Errorf("%s: %w", act, err)
	}
	return found, nil
}

// Write runs a verb that writes, and puts it on record. Its error begins with act
// and wraps the class it belongs to, if any: types.ErrRefused, ErrConflict, or
// ErrNoAnswer, after which the write may have been made or may yet be. So it may
// after a caller has cancelled it, who has not waited for an answer.
func (s *Session) Write(ctx context.Context, d Operation, act string, do func(context.Context, *Connection) error) error {
	return s.Record(ctx, d, func(ctx context.Context) error { return classed(ctx, act, s.Verb(ctx, do)) })
}

// ErrNoUID is returned for the deletion of an object that was not looked at.
var ErrNoUID = errors.New("its UID is not known")

// Objects is a client for the objects of one kind, as far as a deletion needs it.
type Objects[T metav1.Object] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// DeleteExactly deletes the object of that UID, with a grace period in seconds if
// it is not nil. It returns nil when the object is gone, be it that it has a
// namesake by now, or goes as soon as its finalizers and its grace allow.
func DeleteExactly[T metav1.Object](
	ctx context.Context, s *Session, d Operation, act, name, uid string, grace *int64, of func(*Connection) Objects[T],
) error {
	if uid == "" {
		return fmt.Errorf("%s: %w", act, ErrNoUID)
	}
	return s.Write(ctx, d, act, func(ctx context.Context, conn *Connection) error {
		return DeleteObject(ctx, of(conn), name, uid, grace)
	})
}

// DeleteObject deletes the object that has this UID, and succeeds if it no longer exists.
// It returns an error that wraps types.ErrConflict when another one has its name.
func DeleteObject[T metav1.Object](ctx context.Context, api Objects[T], name, uid string, grace *int64) error {
	o := Exactly(uid)
	o.GracePeriodSeconds = grace
	err := UnlessGone(api.Delete(ctx, name, o))
	if apierrors.IsConflict(err) {
		now, getErr := api.Get(ctx, name, metav1.GetOptions{})
		if NotFound(getErr) || getErr == nil && now.GetName() != "" && now.GetUID() != ktypes.UID(uid) {
			return nil
		}
	}
	return err
}

// Exactly restricts a deletion to the object of that UID, and of that version if one
// is given.
func Exactly(uid string, version ...string) metav1.DeleteOptions {
	id := ktypes.UID(uid)
	only := &metav1.Preconditions{UID: &id}
	if len(version) > 0 {
		only.ResourceVersion = &version[0]
	}
	return metav1.DeleteOptions{Preconditions: only}
}

// ErrOther is an answer that is not about what was asked: an answer of another
// kind is decoded to an empty object.
var ErrOther = errors.New("the answer is about something else")

// classed is the error of a write with its class.
func classed(ctx context.Context, act string, err error) error {
	var class error
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		class = types.ErrConflict
	case saysNo(err):
		class = types.ErrRefused
	case !errors.Is(ctx.Err(), context.Canceled) && unanswered(err):
		class = types.ErrNoAnswer
	}
	if class == nil || errors.Is(err, class) {
		return fmt.Errorf("%s: %w", act, err)
	}
	return fmt.Errorf("%s: %w: %w", act, class, err)
}

// saysNo tells a server that understood and refused from one that asks for
// patience or does not know us, and from an object that is not there.
func saysNo(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}

// NotFound tells an object that is not there from a page that is not there: while
// Kubernetes is not up, something else may answer in its place.
func NotFound(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// UnlessGone is err, but nil where the object is not there.
func UnlessGone(err error) error {
	if NotFound(err) {
		return nil
	}
	return err
}

// unanswered reports that there was no whole answer below 500, or a 401: as
// much as the silence counts for none. What cannot be told counts as an answer,
// because without one a device may go down in the end.
func unanswered(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code >= 500 || code == http.StatusUnauthorized
	}
	var sent *url.Error // by http.Client, around all that befalls a request
	var network net.Error
	var half torn
	return errors.As(err, &sent) || errors.As(err, &network) || errors.As(err, &half) ||
		errors.Is(err, types.ErrNoAPI) || errors.Is(err, context.DeadlineExceeded)
}
