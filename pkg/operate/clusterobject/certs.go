package clusterobject

import (
	"net/http"
	"strconv"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// CertsPath is where certificates are renewed (docs/wire.md, "Cluster API").
const CertsPath = "/api/v1alpha1/certs"

// Certs answers DELETE of CertsPath. Who may ask is the local server's to check. Every field
// is required.
type Certs struct {
	Certificates pubsub.Reader[types.K3sCertificates]
	Lifecycle    pubsub.Reader[types.KubeLifecycle]
	Version      pubsub.Reader[types.K3sVersionStatus]
	Files        func() []string // of certificates that are moved aside with force
	Requests     interface {
		Request(r *http.Request, topic string, value any) error
	}
}

// ServeHTTP implements http.Handler.
func (a *Certs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	refuse := func(code int, format string, args ...any) { answer(w, code, failure(code, format, args...)) }
	force, err := strconv.ParseBool(r.URL.Query().Get("force"))
	if err != nil && r.URL.Query().Has("force") {
		refuse(http.StatusBadRequest, "force is true or false")
		return
	}
	certs, _ := a.Certificates.Get(types.Global)
	lifecycle, _ := a.Lifecycle.Get(types.Global)
	version, _ := a.Version.Get(types.Global)
	request, err := types.AskCertsReset(certs, lifecycle, version.Version, force, time.Now())
	if err != nil {
		refuse(http.StatusConflict, "%v", err)
		return
	}
	if force {
		request.Files = a.Files()
	}
	if err := a.Requests.Request(r, "CertsResetRequest", request); err != nil {
		refuse(http.StatusInternalServerError, "%v", err)
		return
	}
	answer(w, http.StatusAccepted, request)
}
