package types

import "time"

// Bounds of the kubeconfigs that are issued (docs/wire.md, "Issued kubeconfigs").
const (
	KubeconfigAtLeast = 10 * time.Minute // the API server issues no token for less
	KubeconfigAtMost  = 24 * time.Hour
	MaxKubeconfigs    = 16 // in the cluster
)

// IssuedKubeconfig is all that is kept of a kubeconfig that was issued to a person:
// everything but its token.
type IssuedKubeconfig struct {
	Name    string // of its ServiceAccount in eve-kube-app, and of its ClusterRoleBinding
	UID     string // of the ClusterRoleBinding
	Role    string // the ClusterRole
	Node    string // whose agent issued it
	From    string // which user asked, as the kernel tells
	Reason  string
	Created time.Time // by the API server's clock
	Expires time.Time
}
