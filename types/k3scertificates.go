package types

import (
	"errors"
	"fmt"
	"time"
)

// K3sCertificates are the certificates of k3s on this node, under key "global" of a
// persistent topic (docs/wire.md, "K3sCertificates").
type K3sCertificates struct {
	Leaves      []K3sCertificate // those that k3s renews when it starts; the first to expire first
	Authorities []K3sCertificate // those that k3s never renews; likewise
	Unread      []string         // what could not be read, and why
	ClockDoubt  string           // why this node's clock is not believed, a sentence; "" where it is
	SeenAt      time.Time        // the newest time that was believed, at most an hour old
}

// K3sCertificate is one of them.
type K3sCertificate struct {
	Name      string // of its file without .crt, or of what presents it
	Where     string // the file, or host:port
	Subject   string // common name
	NotBefore time.Time
	NotAfter  time.Time
	State     K3sCertificateState
}

// K3sCertificateState says what is to be done about a certificate.
type K3sCertificateState string

// The states.
const (
	CertFine      K3sCertificateState = "Fine"
	CertRenewable K3sCertificateState = "Renewable" // k3s renews it when it starts
	CertDue       K3sCertificateState = "Due"       // k3s should be restarted
	CertUrgent    K3sCertificateState = "Urgent"    // it expires within two weeks, or has expired; of an authority, within half a year
)

const certDay = 24 * time.Hour

// The times to their expiry at which these states begin. Of k3s before 1.31 the first is 90
// days. The rotation of an authority takes planning.
const (
	CertRenewableWithin   = 120 * certDay
	CertDueWithin         = 60 * certDay
	CertUrgentWithin      = 14 * certDay
	AuthorityDueWithin    = 730 * certDay
	AuthorityUrgentWithin = 180 * certDay
)

// LeafState is the state of a certificate that k3s renews, which expires in left.
func LeafState(left time.Duration) K3sCertificateState {
	switch {
	case left <= CertUrgentWithin:
		return CertUrgent
	case left <= CertDueWithin:
		return CertDue
	case left <= CertRenewableWithin:
		return CertRenewable
	}
	return CertFine
}

// AuthorityState is that of an authority.
func AuthorityState(left time.Duration) K3sCertificateState {
	switch {
	case left <= AuthorityUrgentWithin:
		return CertUrgent
	case left <= AuthorityDueWithin:
		return CertDue
	}
	return CertFine
}

// RenewalWindow is how long before its expiry k3s of a version renews a certificate when it
// starts: since April 2025 in all its releases 120 days, before that 90 (k3s-io/k3s#12171).
func RenewalWindow(version string) time.Duration {
	v, err := ParseK3sVersion(version)
	first := map[int]int{30: 13, 31: 9, 32: 5, 33: 1} // patch, by minor version
	if patch, listed := first[v.Minor]; err != nil || v.Minor < 30 || listed && v.Patch < patch {
		return 90 * certDay
	}
	return CertRenewableWithin
}

// CertsResetRequest is an operator's wish that k3s on this node renew its certificates now,
// under key "global" of zedkube-cli (docs/wire.md, "CertsResetRequest").
type CertsResetRequest struct {
	RequestedAt time.Time
	Force       bool     // also those that do not expire soon: their files are moved aside
	Without     []string // preconditions of KubeLifecycle.Restart that may lack
	Files       []string `json:",omitempty"` // with Force: those that were to be moved aside when it was made
}

// AskCertsReset is the request to renew certificates of k3s of that version now, with the
// preconditions that lack and may. It fails where there is nothing to renew.
func AskCertsReset(certs K3sCertificates, l KubeLifecycle, version string, force bool, now time.Time) (CertsResetRequest, error) {
	window, soon := RenewalWindow(version), 0
	for _, c := range certs.Leaves {
		if c.NotAfter.Sub(now) <= window {
			soon++
		}
	}
	r := CertsResetRequest{RequestedAt: now.UTC(), Force: force}
	switch {
	case len(certs.Leaves) == 0:
		return r, errors.New("the agent has not read any certificate of k3s yet")
	case certs.ClockDoubt != "":
		return r, errors.New("this node's clock may be wrong: " + certs.ClockDoubt)
	case l.Kind == K3sRestart && l.Restart.Wish != "":
		return r, errors.New("k3s is being restarted for its certificates")
	case soon == 0 && !force:
		return r, fmt.Errorf("none of %d certificates expires within %d days, and k3s would renew none: nothing was changed", len(certs.Leaves), window/certDay)
	}
	for _, p := range l.Restart.Preconditions {
		if p.Release {
			r.Without = append(r.Without, p.Name)
		}
	}
	return r, nil
}
