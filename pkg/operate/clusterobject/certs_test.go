package clusterobject

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestCertificatesAreRenewedOnRequest(t *testing.T) {
	for name, row := range map[string]struct {
		days  time.Duration
		query string
		err   error
		code  int
		says  string
	}{
		"one expires soon":        {100, "", nil, http.StatusAccepted, `"Force":false`},
		"none expires soon":       {200, "", nil, http.StatusConflict, "nothing was changed"},
		"and it is forced":        {200, "?force=true", nil, http.StatusAccepted, `"Files":["server/tls/a.crt"]`},
		"another word":            {100, "?force=maybe", nil, http.StatusBadRequest, "true or false"},
		"no word":                 {100, "?force", nil, http.StatusBadRequest, "true or false"},
		"it cannot be written":    {100, "", errors.New("disk full"), http.StatusInternalServerError, "disk full"},
		"it is explicitly normal": {200, "?force=false", nil, http.StatusConflict, "nothing was changed"},
	} {
		certs := &pubsub.Table[types.K3sCertificates]{}
		_ = certs.Publish(types.Global, types.K3sCertificates{Leaves: []types.K3sCertificate{{NotAfter: time.Now().Add(row.days * 24 * time.Hour)}}})
		version := &pubsub.Table[types.K3sVersionStatus]{}
		_ = version.Publish(types.Global, types.K3sVersionStatus{Version: "v1.34.2+k3s1"})
		q := &requests{err: row.err}
		w := httptest.NewRecorder()
		a := &Certs{Certificates: certs, Lifecycle: &pubsub.Table[types.KubeLifecycle]{}, Version: version, Requests: q, Files: func() []string { return []string{"server/tls/a.crt"} }}
		a.ServeHTTP(w, httptest.NewRequest(http.MethodDelete, CertsPath+row.query, http.NoBody))
		if w.Code != row.code || !strings.Contains(w.Body.String(), row.says) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if forced := row.query == "?force=true"; strings.Contains(w.Body.String(), "a.crt") != forced {
			t.Errorf("%s: files in %s", name, w.Body)
		}
		if made := strings.Join(q.made, " "); (made == "make CertsResetRequest") != (row.code == http.StatusAccepted || row.err != nil) {
			t.Errorf("%s: made %q", name, made)
		}
	}
}
