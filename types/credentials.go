package types

import "time"

// Credentials is what the present connection to the API server rests on, and
// what the server tells of itself, under key "global". Without a value there has
// been no usable kubeconfig.
type Credentials struct {
	Client Certificate // of the kubeconfig; zero where it has none
	CA     Certificate // of those in the kubeconfig, the one that proves the server; zero where it has none
	Server Certificate // as the server showed it last; zero before the first handshake

	Version     string        // of the API server; "" for not known yet
	InstalledAt time.Time     // when Namespace was made, zero for not known yet
	ClockAhead  time.Duration // the API server's clock against ours, to some seconds
	ClockKnown  bool          // ClockAhead is known
}

// Certificate is the part of a certificate that is reasoned about.
type Certificate struct {
	Subject   string // common name
	NotBefore time.Time
	NotAfter  time.Time
	Unusable  string // why it cannot be used, a sentence; "" for no such reason
}

// Known reports whether there is such a certificate.
func (c Certificate) Known() bool { return !c.NotAfter.IsZero() || c.Unusable != "" }

// NodeClock is how far another node's clock is from ours, under the node's name.
type NodeClock struct {
	Node  string
	Ahead time.Duration // to some seconds; negative where it is behind
}
