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

// Service is the part of a Kubernetes Service that components reason about.
type Service struct {
	Namespace      string
	Name           string
	Type           string // ClusterIP, NodePort, LoadBalancer, ExternalName
	Ports          []ServicePort
	LoadBalancerIP string   // spec.loadBalancerIP
	ExternalIPs    []string // spec.externalIPs
	VIPs           string   // annotation kube-vip.io/loadbalancerIPs: addresses, separated by commas
}

// Key is the service's key in a table: namespace/name.
func (s Service) Key() string { return s.Namespace + "/" + s.Name }

// ServicePort is a port of a Service.
type ServicePort struct {
	Name     string // "" for none
	Protocol string // TCP, UDP, SCTP
	Port     int32
	NodePort int32 // 0 for none
}

// Ingress is the part of a Kubernetes Ingress that components reason about.
type Ingress struct {
	Namespace string
	Name      string
	Rules     []IngressPath
	TLSHosts  []string // of all tls sections; "" for one that names none and so stands for any host
	Addresses []string // status.loadBalancer.ingress: addresses and host names
}

// Key is the ingress's key in a table: namespace/name.
func (i Ingress) Key() string { return i.Namespace + "/" + i.Name }

// IngressPath is one path of a rule that leads to a service.
type IngressPath struct {
	Host     string
	Path     string
	PathType string // Exact, Prefix, ImplementationSpecific
	Service  string
	Port     int32  // 0 where it is named
	PortName string // "" where it is a number
}

// KubeVIP is the ConfigMap of kube-vip.
type KubeVIP struct {
	CIDR      string // key cidr-global: prefixes, separated by commas
	Interface string // key interface-global
}
