package k3supdate

import "fmt"

// Consent says to which changes of k3s an operator has to consent.
type Consent string

// The values of Consent.
const (
	ConsentNone   Consent = "none"
	ConsentCommit Consent = "commit" // to the one after which the cluster cannot return
	ConsentEach   Consent = "each"   // to the change of each node
)

// String implements pflag.Value.
func (c *Consent) String() string { return string(*c) }

// Set implements pflag.Value.
func (c *Consent) Set(text string) error {
	switch is := Consent(text); is {
	case ConsentNone, ConsentCommit, ConsentEach:
		*c = is
		return nil
	}
	return fmt.Errorf("%q is not one of none, commit, each", text)
}

// Type implements pflag.Value.
func (c *Consent) Type() string { return "none|commit|each" }
