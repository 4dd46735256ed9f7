package types

// KubeUserService is one port of a service that users made.
type KubeUserService struct {
	Name           string
	Namespace      string
	Protocol       string
	Port           int32
	NodePort       int32
	Type           string
	LoadBalancerIP string
	ACEenabled     bool
}

// KubeUserIngress is one path of an ingress that users made.
type KubeUserIngress struct {
	Name        string
	Namespace   string
	Hostname    string
	Path        string
	PathType    string
	Protocol    string
	Service     string
	ServicePort int32
	ServiceType string
	IngressIP   []string
}

// LBPoolStatus is the pool of load-balancer addresses of this node.
type LBPoolStatus struct {
	Interface    string
	IPPrefix     string
	AllocatedIPs []string
	Error        ErrorDescription
}

// KubeUserServices tells nim which ports and addresses the users' services
// need, under key "global" on every node (docs/wire.md, "KubeUserServices").
type KubeUserServices struct {
	UserService  []KubeUserService
	UserIngress  []KubeUserIngress
	LBPoolStatus *LBPoolStatus
	ServiceError ErrorDescription
}
