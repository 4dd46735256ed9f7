package types

import "time"

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
