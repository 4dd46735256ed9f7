package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

// errOther is an answer that is not about what was asked: an answer of another
// kind is decoded to an empty object.
var errOther = errors.New("the answer is about something else")

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

// absent tells an object that is not there from a page that is not there: while
// Kubernetes is not up, something else may answer in its place.
func absent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
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
