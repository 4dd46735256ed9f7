package health

import (
	"cmp"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// reasonOf is why a node is not ready to be joined by, as it says itself.
func reasonOf(a answered) string {
	var said struct{ Why string }
	if a.err != nil || json.Unmarshal([]byte(a.body), &said) != nil || said.Why == "" {
		return "it does not give a reason."
	}
	return said.Why
}

func findNoKubeconfig(o seen, tell func(types.Finding)) {
	if o.clustered() && !o.Copied && o.API.Kubeconfig.At.IsZero() {
		tell(bad("Look at the kube container and at /persist/kubelog/k3s-install.log.",
			"There is no kubeconfig, %s: Kubernetes has not started on this device.", o.API.Kubeconfig.File))
	}
}

// apiSilent is silence of an API server that could be asked.
func (o seen) apiSilent() bool {
	return o.clustered() && o.API.Answers == types.ConditionFalse && !(o.API.Kubeconfig.At.IsZero() && !o.Copied)
}

func findAPISilent(o seen, tell func(types.Finding)) {
	if o.apiSilent() {
		tell(bad("Is k3s running on this device, and do the other servers answer? Until the API server answers, the agent decides nothing about the cluster.",
			"The API server does not answer%s", because(o.API.Why)).Of("", o.API.Since))
	}
}

func judgeKubeconfig(k kubeconfig, live bool) types.Finding {
	const how = "the kube container writes it once k3s runs; is the container running? /persist/kubelog/k3s-install.log"
	others := k.mode.Perm() & fs.FileMode(0o077)
	switch {
	case k.gone && !live:
		return unknown("This copy holds no kubeconfig.")
	case !live && k.Server != "": // its key is hidden
		return ok("It names the server %s.", k.Server)
	case k.why != "":
		return bad(how, "It cannot be used: %s.", strings.TrimSuffix(k.why, "."))
	case others != 0:
		return warn("chmod 600 "+k.path, "It holds the keys of the cluster, and users other than its owner can read it: %s.", k.mode.Perm())
	case len(k.Authorities) == 0:
		return warn(how, "It has no CA: the identity of %s cannot be verified.", k.Server)
	}
	return ok("It names the server %s, with %s.", k.Server, credentialsText(k))
}

func credentialsText(k kubeconfig) string {
	switch {
	case k.Client != nil:
		return "a client certificate"
	case k.Token != "":
		return "a token"
	}
	return "a user name"
}

func judgeAPI(f apiFacts) types.Finding {
	switch {
	case f.why != "":
		return unknown("It cannot be queried: %s.", strings.TrimSuffix(f.why, "."))
	case f.address == "":
		return bad("is k3s up? /persist/kubelog/k3s-install.log", "It did not answer in time.")
	case f.err != nil:
		return bad("is k3s up? /persist/kubelog/k3s-install.log", "%s does not answer: %v.", f.address, f.err)
	case f.status == http.StatusUnauthorized || f.status == http.StatusForbidden:
		return bad("the kubeconfig belongs to another cluster, or its certificate has expired; the kube container rewrites it", "%s refuses the kubeconfig's credentials with %d.", f.address, f.status)
	case f.status != http.StatusOK:
		return bad("check the k3s log", "%s answers with %d.", f.address, f.status)
	case f.took > time.Second:
		return warn("are the disks or CPUs of the servers overloaded?", "%s answered after %s.", f.address, f.took.Round(time.Millisecond))
	}
	return ok("%s answered after %s.", f.address, f.took.Round(time.Millisecond))
}

func judgeAPIOfCopy(a overview.API) types.Finding {
	switch a.Answers {
	case types.ConditionTrue:
		return ok("When this copy was made it answered.")
	case types.ConditionFalse:
		return bad("is k3s up on that device?", "When this copy was made it did not answer: %s.", strings.TrimSuffix(a.Why, "."))
	}
	return unknown("This is a copy of a device, which does not show this.")
}

const (
	clientCertificate = "client"
	caCertificate     = "ca"
	serverCertificate = "server"
)

// How certificates are renewed. k3s renews no authority.
const (
	renewCertificate = "k3s renews its certificates when it starts: restart the kube container, or reboot the device after a drain."
	renewCA          = "k3s certificate rotate-ca --path=DIR, where DIR contains the new CAs, once, on one server; then restart the servers one after the other, then the agents."
)

type certificateFacts struct {
	which string
	cert  *x509.Certificate // nil for none
	token bool              // the kubeconfig has a token instead
	why   string            // why there is none
	now   time.Time
}

func judgeCertificate(f certificateFacts) types.Finding {
	remedy := renewCertificate
	if f.which == caCertificate {
		remedy = renewCA
	}
	switch {
	case f.cert == nil && f.token:
		return ok("The kubeconfig has a token instead.")
	case f.cert == nil:
		return unknown("There is no certificate to check: %s.", cmp.Or(strings.TrimSuffix(f.why, "."), "nothing shows one"))
	}
	name, left := fmt.Sprintf("%q", f.cert.Subject.CommonName), f.cert.NotAfter.Sub(f.now)
	switch (types.Certificate{NotBefore: f.cert.NotBefore, NotAfter: f.cert.NotAfter}).State(f.now) {
	case types.CertificateNotBegun:
		return bad("set the clock of this device", "%s is not valid for another %s: the clock of this device is behind.", name, span(f.cert.NotBefore.Sub(f.now)))
	case types.CertificateExpired:
		return bad(remedy, "%s expired %s ago, at %s.", name, span(left), f.cert.NotAfter.UTC().Format(time.RFC3339))
	case types.CertificateExpiresSoon:
		return warn(remedy, "%s expires in %s, at %s.", name, span(left), f.cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return ok("%s expires in %d days.", name, left/(24*time.Hour))
}

func judgeClock(clocks []clock, now time.Time) types.Finding {
	others := slices.DeleteFunc(slices.Clone(clocks), func(c clock) bool { return c.here })
	if begins := clusterauth.ValidFrom(); now.Before(begins) {
		return bad("set the clock: is NTP configured, and does it answer?", "The clock of this device shows %s, and the certificate of the status servers is valid from %s: EVE's cluster-status-probe rejects it, and this device cannot join.", now.UTC().Format(time.DateOnly), begins.Format(time.DateOnly))
	}
	if len(clocks) == 0 {
		return unknown("No host whose clock could be compared has answered.")
	}
	worst := slices.MaxFunc(clocks, func(a, b clock) int { return cmp.Compare(a.ahead.Abs(), b.ahead.Abs()) })
	switch severity := types.JudgeClock(worst.ahead); {
	case severity != types.SeverityOK:
		f := warn("check the NTP servers of both devices", "The clock of %s is %s of this device's.", worst.of, aheadText(worst.ahead))
		f.Severity = severity
		return f
	case len(others) == 0:
		return unknown("Only the API server on this device answered, which uses the same clock.")
	}
	return ok("%d clocks differ by at most %s.", len(others), worst.ahead.Abs())
}

func aheadText(d time.Duration) string {
	if d < 0 {
		return span(d) + " behind"
	}
	return span(d) + " ahead"
}
