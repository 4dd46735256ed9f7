package nodes

import (
	"github.com/zedkube/zedkube/kubeapi/access"
)

// Client has the verbs on Nodes.
type Client struct {
	*access.Session

	Stamps Stamps // of the nodes' agents, as long as the process lives
}
