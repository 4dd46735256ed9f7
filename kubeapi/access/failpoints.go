//go:build failpoints

package access

import (
	"context"
	"net/http"
	"strings"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/types"
)

// RoundTrip is the one way by which requests leave: the test build can be killed before a
// write is sent, and when it was answered and nobody here knows yet.
func (d *dialed) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	effect, writes := effectOf(req)
	if !writes {
		return d.Transport.RoundTrip(req)
	}
	ctx := req.Context()
	if types.Acting(ctx).Component == "" {
		ctx = types.ActAs(ctx, "kubeapi")
	}
	err = failpoint.As(ctx, effect, func() error {
		resp, err = d.Transport.RoundTrip(req)
		return err
	})
	return resp, err
}

// effectOf names a write: the operation on record, and the verb and resource as kubectl
// names them.
func effectOf(req *http.Request) (effect string, writes bool) {
	group, _, part := resourceOf(req.URL.Path)
	if !mayWrite(req) || len(part) == 0 || strings.HasPrefix(group, "auth") {
		return "", false
	}
	effect = verbOf(req) + " " + part[0]
	if group != "" && strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
		effect += "." + group
	}
	if len(part) > 2 {
		effect += "/" + part[2]
	}
	if op := operationIn(req.Context()); op != "" {
		effect = op + ": " + effect
	}
	return effect, true
}

func operationIn(ctx context.Context) string {
	op, _ := ctx.Value(operationKey{}).(string)
	return op
}
