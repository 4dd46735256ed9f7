package kubeapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// deletions are the verbs that delete one object of an application, each with
// its path, for an object of that UID.
func deletions(c *Client, uid string) map[string]func(context.Context) error {
	vmi := types.VMI{Name: "web4q8zt", UID: uid}
	return map[string]func(context.Context) error{
		pathPod: func(ctx context.Context) error {
			return c.ForceDeletePod(ctx, types.Pod{Namespace: access.Namespace, Name: "web-1", UID: uid})
		},
		pathVMI:             func(ctx context.Context) error { return c.DeleteVMI(ctx, vmi) },
		pathVMI + " forget": func(ctx context.Context) error { return c.ForgetVMI(ctx, vmi) },
		pathAttachment: func(ctx context.Context) error {
			return c.DeleteAttachment(ctx, types.Attachment{Name: "a1", UID: uid})
		},
	}
}

func objectAt(name, uid string, more jsonObject) *objectsAPI {
	p, _, _ := strings.Cut(name, " ")
	return objectsOf(map[string]jsonObject{p: named(p, uid, more)})
}

func TestADeletionIsOfOneVeryObject(t *testing.T) {
	for name := range deletions(nil, "") {
		s := objectAt(name, "u1", nil)
		if err := deletions(s.client(t), "u1")[name](t.Context()); err != nil || len(s.objects) != 0 {
			t.Errorf("%s: %v, left %v", name, err, s.objects)
		}
		if uid := s.asked[0].body["preconditions"].(jsonObject)["uid"]; uid != "u1" {
			t.Errorf("%s asked %v", name, s.asked)
		}
		grace, given := s.asked[0].body["gracePeriodSeconds"]
		if now := name == pathPod || strings.HasSuffix(name, "forget"); given != now || now && grace != 0.0 {
			t.Errorf("%s has grace %v", name, grace)
		}
		if err := deletions(s.client(t), "u1")[name](t.Context()); err != nil {
			t.Errorf("%s when it is gone: %v", name, err)
		}
		s = objectAt(name, "namesake", jsonObject{"finalizers": []any{"x"}})
		if err := deletions(s.client(t), "u1")[name](t.Context()); err != nil || len(s.objects) != 1 || len(s.asked) != 1 {
			t.Errorf("%s with a namesake: %v, asked %v", name, err, s.asked)
		}
		s = objectAt(name, "u1", nil)
		if err := deletions(s.client(t), "")[name](t.Context()); !errors.Is(err, access.ErrNoUID) || len(s.asked) != 0 {
			t.Errorf("%s of unknown identity: %v, asked %v", name, err, s.asked)
		}
	}
}

func TestADeletionSaysWhatKindOfNoItGot(t *testing.T) {
	classes := []error{types.ErrNoAnswer, types.ErrRefused, types.ErrConflict}
	for what, row := range map[string]struct {
		lie  http.HandlerFunc
		want error
	}{
		"403": {func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 403, failure(403, metav1.StatusReasonForbidden))
		}, types.ErrRefused},
		"500":  {status500, types.ErrNoAnswer},
		"hang": {hang, types.ErrNoAnswer},
		"conflict of this very one": {func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				reply(w, 200, named(r.URL.Path, "u1", nil))
				return
			}
			reply(w, 409, failure(409, metav1.StatusReasonConflict))
		}, types.ErrConflict},
		"a page that is not there": {notFound, nil},
	} {
		for name := range deletions(nil, "") {
			synctest.Test(t, func(t *testing.T) {
				s := objectAt(name, "u1", nil)
				s.lie = row.lie
				err := deletions(s.client(t), "u1")[name](t.Context())
				for _, class := range classes {
					if err == nil || errors.Is(err, class) != errors.Is(row.want, class) {
						t.Errorf("%s of %s is %v", what, name, err)
					}
				}
			})
		}
	}
}

func TestDeletingAnInstanceOrAnAttachmentLeavesItsFinalizers(t *testing.T) {
	for _, name := range []string{pathVMI, pathAttachment} {
		s := objectAt(name, "u1", jsonObject{"finalizers": []any{"x"}})
		if err := deletions(s.client(t), "u1")[name](t.Context()); err != nil || len(s.asked) != 1 {
			t.Errorf("%s: %v, asked %v", name, err, s.asked)
		}
		if meta := s.objects[name]["metadata"].(jsonObject); meta["finalizers"] == nil || meta["deletionTimestamp"] == nil {
			t.Errorf("%s became %v", name, meta)
		}
	}
}

func TestAnInstanceIsForgottenInSpiteOfItsFinalizers(t *testing.T) {
	forget := pathVMI + " forget"
	s := objectAt(forget, "u1", jsonObject{"finalizers": []any{"a", "b"}})
	busy := 3
	s.before = func(r *http.Request, o jsonObject) { // somebody else writes it between our look and our patch
		if r.Method == http.MethodPatch && busy > 0 {
			busy--
			o["metadata"].(jsonObject)["resourceVersion"] = "9" + string(rune('0'+busy))
		}
	}
	if err := deletions(s.client(t), "u1")[forget](t.Context()); err != nil || len(s.objects) != 0 {
		t.Errorf("%v, left %v", err, s.objects)
	}
	if s.asked[0].method != http.MethodDelete {
		t.Errorf("before it was deleted, %v", s.asked[0])
	}
	for _, a := range s.asked[1:] {
		if v := a.body["metadata"].(jsonObject)["resourceVersion"]; v == nil || a.method != http.MethodPatch {
			t.Errorf("asked %v", a)
		}
	}
}

func TestAnInstanceThatIsMadeAnewMeanwhileKeepsItsFinalizers(t *testing.T) {
	forget := pathVMI + " forget"
	s := objectAt(forget, "u1", jsonObject{"finalizers": []any{"a"}})
	s.before = func(r *http.Request, o jsonObject) {
		if r.Method == http.MethodGet {
			o["metadata"].(jsonObject)["uid"] = "namesake"
		}
	}
	if err := deletions(s.client(t), "u1")[forget](t.Context()); err != nil || len(s.asked) != 1 {
		t.Errorf("%v, asked %v", err, s.asked)
	}
}
