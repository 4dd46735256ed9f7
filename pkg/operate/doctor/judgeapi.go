package doctor

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

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// reasonOf is why a node is not ready to be joined by, as it says itself.
func reasonOf(a answered) string {
	var said struct{ Why string }
	if a.err != nil || json.Unmarshal([]byte(a.body), &said) != nil || said.Why == "" {
		return "it does not say why."
	}
	return said.Why
}

func judgeKubeconfig(k kubeconfig, live bool) Finding {
	const how = "the kube container writes it once k3s runs; is it up? /persist/kubelog/k3s-install.log"
	others := k.mode.Perm() & fs.FileMode(0o077)
	switch {
	case k.gone && !live:
		return unknown("This copy holds no kubeconfig.")
	case !live && k.server != "": // its key is hidden
		return ok("It names the server %s.", k.server)
	case k.why != "":
		return fail(how, "It cannot be used: %s.", strings.TrimSuffix(k.why, "."))
	case others != 0:
		return warn("chmod 600 "+k.path, "It holds the keys of the cluster, and others than its owner may open it: %s.", k.mode.Perm())
	case len(k.roots) == 0:
		return warn(how, "It names no authority: nothing proves that %s is the cluster.", k.server)
	}
	return ok("It names the server %s, with %s.", k.server, credentialsText(k))
}

func credentialsText(k kubeconfig) string {
	if k.client != nil {
		return "a client certificate"
	}
	return "a token"
}

func judgeAPI(f apiFacts) Finding {
	switch {
	case f.why != "":
		return unknown("It cannot be asked: %s.", strings.TrimSuffix(f.why, "."))
	case f.address == "":
		return fail("is k3s up? /persist/kubelog/k3s-install.log", "It gave no answer in time.")
	case f.err != nil:
		return fail("is k3s up? /persist/kubelog/k3s-install.log", "%s gives no answer: %v.", f.address, f.err)
	case f.status == http.StatusUnauthorized || f.status == http.StatusForbidden:
		return fail("the kubeconfig is of another cluster, or its certificate has ended; the kube container writes it anew", "%s refuses the kubeconfig's credentials with %d.", f.address, f.status)
	case f.status != http.StatusOK:
		return fail("look at the log of k3s", "%s answers with %d.", f.address, f.status)
	case f.took > time.Second:
		return warn("are disk and processors of the servers busy?", "%s answered after %s.", f.address, f.took.Round(time.Millisecond))
	}
	return ok("%s answered after %s.", f.address, f.took.Round(time.Millisecond))
}

func judgeAPIOfCopy(a overview.API) Finding {
	switch a.Answers {
	case types.ConditionTrue:
		return ok("When this copy was made it answered.")
	case types.ConditionFalse:
		return fail("is k3s up on that device?", "When this copy was made it did not answer: %s.", strings.TrimSuffix(a.Why, "."))
	}
	return unknown("This is a copy of a device, and does not tell.")
}

const (
	clientCertificate = "client"
	caCertificate     = "ca"
	serverCertificate = "server"

	// endsSoon is when an end is told, as the agent's conditions do.
	endsSoon = 14 * 24 * time.Hour
)

type certificateFacts struct {
	which string
	cert  *x509.Certificate // nil for none
	token bool              // the kubeconfig has a token instead
	why   string            // why there is none
	now   time.Time
}

func judgeCertificate(f certificateFacts) Finding {
	remedy := "k3s makes a new one at its start: restart the kube container, or reboot the device after a drain"
	if f.which == caCertificate {
		remedy = "k3s certificate rotate-ca --path=DIR, DIR with the new authorities, once, on one server; then restart the servers one after the other, then the agents"
	}
	switch {
	case f.cert == nil && f.token:
		return ok("The kubeconfig has a token instead.")
	case f.cert == nil:
		return unknown("There is none to look at: %s.", either(strings.TrimSuffix(f.why, "."), "nothing shows one"))
	}
	left := f.cert.NotAfter.Sub(f.now)
	name := fmt.Sprintf("%q", f.cert.Subject.CommonName)
	switch {
	case f.now.Before(f.cert.NotBefore):
		return fail("set the clock of this device", "%s begins in %s: the clock of this device is behind.", name, span(f.cert.NotBefore.Sub(f.now)))
	case left <= 0:
		return fail(remedy, "%s has ended %s ago, at %s.", name, span(left), f.cert.NotAfter.UTC().Format(time.RFC3339))
	case left < endsSoon:
		return warn(remedy, "%s ends in %s, at %s.", name, span(left), f.cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return ok("%s ends in %d days.", name, left/(24*time.Hour))
}

type clockFacts struct{ clocks []clock }

const (
	// apart is more than what is measured can be off, and wrong more than what a
	// lease or the proof of the status server can stand.
	apart    = 5 * time.Second
	tooApart = 30 * time.Second
)

func judgeClock(f clockFacts) Finding {
	others := slices.DeleteFunc(slices.Clone(f.clocks), func(c clock) bool { return c.here })
	if len(f.clocks) == 0 {
		return unknown("Nobody whose clock could be compared has answered.")
	}
	worst := slices.MaxFunc(f.clocks, func(a, b clock) int { return cmp.Compare(a.ahead.Abs(), b.ahead.Abs()) })
	text := fmt.Sprintf("The clock of %s is %s of this device's.", worst.of, aheadText(worst.ahead))
	const remedy = "look at the time servers of both devices"
	switch {
	case worst.ahead.Abs() > tooApart:
		return Finding{Verdict: Fail, Evidence: text, Remedy: remedy}
	case worst.ahead.Abs() > apart:
		return Finding{Verdict: Warn, Evidence: text, Remedy: remedy}
	case len(others) == 0:
		return unknown("Only the API server on this very device could be compared, which has its clock.")
	}
	return ok("%d clocks differ by at most %s.", len(others), worst.ahead.Abs())
}

func aheadText(d time.Duration) string {
	if d < 0 {
		return span(d) + " behind"
	}
	return span(d) + " ahead"
}
