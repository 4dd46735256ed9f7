package conditions

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

func clientCertificate(f facts) verdict {
	missing := unknown("NoCertificate", "The kubeconfig has no client certificate.")
	return credential(f, f.credentials.Client, "The client certificate of the kubeconfig", missing)
}

func caCertificate(f facts) verdict {
	missing := unknown("NotProvedYet", "Which CA of the kubeconfig signed the API server's certificate is not known yet.")
	return credential(f, f.credentials.CA, "The CA of the API server", missing)
}

func serverCertificate(f facts) verdict {
	missing := unknown("NotSeenYet", "The API server has not presented a certificate yet.")
	return credential(f, f.credentials.Server, "The API server's certificate", missing)
}

// k3sCertificates judges the first to expire of those that k3s renews when it starts.
func k3sCertificates(f facts) verdict {
	switch {
	case len(f.certs.Leaves) == 0:
		return unknown("NotSeenYet", "No certificate of k3s on this node has been read yet.")
	case f.certs.ClockDoubt != "":
		return unknown("ClockDoubtful", "This node's clock may be wrong. "+f.certs.ClockDoubt)
	}
	first := f.certs.Leaves[0]
	return certificate("Certificate "+first.Name+" of k3s on this node", ofK3s(f.certs.Leaves), f.now)
}

// ofK3s is the first of a list to expire, unknown where there is none.
func ofK3s(list []types.K3sCertificate) types.Certificate {
	if len(list) == 0 {
		return types.Certificate{}
	}
	return types.Certificate{Subject: list[0].Subject, NotBefore: list[0].NotBefore, NotAfter: list[0].NotAfter}
}

// credential judges a certificate of the connection, missing where it is not known.
func credential(f facts, c types.Certificate, what string, missing verdict) verdict {
	switch {
	case !f.connected:
		return f.unseen()
	case !c.Known():
		return missing
	}
	return certificate(what, c, f.now)
}

// certificate judges c, of which what says in a sentence what it is.
func certificate(what string, c types.Certificate, now time.Time) verdict {
	left, end := c.NotAfter.Sub(now), c.NotAfter.UTC().Format(time.DateOnly)
	state := c.State(now)
	reason := string(state)
	var v verdict
	switch state {
	case types.CertificateNotBegun:
		v = unknown(reason, fmt.Sprintf("%s is not valid before %s: is this node's clock right?", what, c.NotBefore.UTC().Format(time.DateOnly)))
	case types.CertificateExpired:
		v = bad(reason, fmt.Sprintf("%s expired on %s.", what, end))
	case types.CertificateNotTrusted:
		v = bad(reason, fmt.Sprintf("%s is not trusted: %s.", what, c.Unusable))
	case types.CertificateExpiresSoon:
		v = bad(reason, fmt.Sprintf("%s expires on %s, in %s.", what, end, days(left)))
	default:
		v = fine(reason, fmt.Sprintf("%s expires on %s.", what, end))
	}
	v.ends = c.NotAfter
	return v
}

// days is d in whole days, so that the sentence changes once a day.
func days(d time.Duration) string {
	switch n := int(d / (24 * time.Hour)); n {
	case 0:
		return "less than a day"
	case 1:
		return "1 day"
	default:
		return fmt.Sprintf("%d days", n)
	}
}

// known is what else is known, besides the conditions. What cannot be seen now
// stays as it was seen last.
func known(f facts) types.KubeNodeConditions {
	k, c := f.published, f.credentials
	k.Conditions = nil
	if c.Version != "" {
		k.Kubernetes = c.Version
	}
	if !c.InstalledAt.IsZero() {
		k.InstalledAt = c.InstalledAt
	}
	seen := func(name string) bool { // those of k3s also while it is down
		return f.connected || strings.HasPrefix(name, "k3s") && len(f.certs.Leaves) > 0
	}
	k.Certificates = slices.DeleteFunc(slices.Clone(k.Certificates), func(n types.NodeCertificate) bool { return seen(n.Name) })
	for _, one := range []struct {
		name string
		types.Certificate
	}{{"client", c.Client}, {"CA", c.CA}, {"server", c.Server}, {"k3s", ofK3s(f.certs.Leaves)}, {"k3s-CA", ofK3s(f.certs.Authorities)}} {
		if one.Known() && seen(one.name) {
			k.Certificates = append(k.Certificates, types.NodeCertificate{Name: one.name, Subject: short(one.Subject), NotAfter: one.NotAfter})
		}
	}
	if f.seesCluster() && f.api.Synced && f.seen {
		k.KubeVirt, k.Longhorn, k.CNI = parts(f)
	}
	return k
}

// parts are the versions of what runs on this node.
func parts(f facts) (kubevirt, longhorn, cni string) {
	var connects []string
	if f.own.CNI != "" {
		connects = append(connects, short(f.own.CNI))
	}
	multus := ""
	for _, p := range f.pods { // of two, during an update, the newer one
		switch p.Part {
		case types.PartKubeVirt:
			kubevirt = max(kubevirt, p.Version)
		case types.PartLonghorn:
			longhorn = max(longhorn, p.Version)
		case types.PartMultus:
			multus = max(multus, strings.TrimSpace("multus "+p.Version))
		}
	}
	if multus != "" {
		connects = append(connects, multus)
	}
	return kubevirt, longhorn, strings.Join(connects, ", ")
}
