package localserver

import "github.com/zedkube/zedkube/types"

type place string

const (
	onSocket   place = "socket"
	onLoopback place = "loopback"
	onCluster  place = "cluster"
)

type facts struct {
	socket, loopback string
	pageToo          bool
	clusterPort      int
	status           types.EdgeNodeClusterStatus
}

type action struct {
	listen map[place]string // the address of each place where we listen
	token  bool             // there is to be a reading token
}

func decide(f facts) action {
	a := action{listen: map[place]string{onSocket: f.socket}, token: f.loopback != "" && f.pageToo}
	if f.loopback != "" {
		a.listen[onLoopback] = f.loopback
	}
	if address := f.status.ListenAddress(f.clusterPort); f.clusterPort != 0 && address != "" {
		a.listen[onCluster] = address
	}
	return a
}
