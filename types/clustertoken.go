package types

import "github.com/google/uuid"

// ClusterToken is what came of the encrypted parts of the cluster
// configuration, under key "global" of a table in memory: it is in no topic of
// its own, and only EdgeNodeClusterStatus carries it on (docs/wire.md, "Token
// decryption").
type ClusterToken struct {
	ClusterID uuid.UUID        // whose token it is
	Token     string           // clear text; "" while none of this cluster has ever been had
	Error     ErrorDescription // why the present block gives none; zero where Token is of the present block
}

// String hides the token: a secret must not reach a log by a verb that prints
// everything.
func (t ClusterToken) String() string {
	if t.Token == "" {
		return "no token of cluster " + t.ClusterID.String()
	}
	return "token of cluster " + t.ClusterID.String()
}

// GoString hides the token as String does.
func (t ClusterToken) GoString() string { return t.String() }
