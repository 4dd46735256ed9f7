package kubeapi

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

// vipsAnnotation is where kube-vip keeps the addresses that it gave a service.
const vipsAnnotation = "kube-vip.io/loadbalancerIPs"

// The ConfigMap of kube-vip and its keys (docs/wire.md, "Objects read").
const (
	kubeVIPNamespace = metav1.NamespaceSystem
	kubeVIPName      = "kubevip"
	kubeVIPCIDR      = "cidr-global"
	kubeVIPInterface = "interface-global"
)

// serviceOf is the row of a Service.
func serviceOf(s *corev1.Service) types.Service {
	row := types.Service{
		Namespace: s.Namespace, Name: s.Name, Type: string(s.Spec.Type),
		LoadBalancerIP: s.Spec.LoadBalancerIP, ExternalIPs: s.Spec.ExternalIPs, VIPs: s.Annotations[vipsAnnotation],
	}
	for _, p := range s.Spec.Ports {
		row.Ports = append(row.Ports, types.ServicePort{Name: p.Name, Protocol: string(p.Protocol), Port: p.Port, NodePort: p.NodePort})
	}
	return row
}

// ingressOf is the row of an Ingress. A path that leads to something else than
// a service is left out.
func ingressOf(i *networkingv1.Ingress) types.Ingress {
	row := types.Ingress{Namespace: i.Namespace, Name: i.Name}
	for _, rule := range i.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for _, p := range rule.HTTP.Paths {
			if p.Backend.Service == nil {
				continue
			}
			path := types.IngressPath{
				Host: rule.Host, Path: p.Path,
				Service: p.Backend.Service.Name, Port: p.Backend.Service.Port.Number, PortName: p.Backend.Service.Port.Name,
			}
			if p.PathType != nil {
				path.PathType = string(*p.PathType)
			}
			row.Rules = append(row.Rules, path)
		}
	}
	for _, tls := range i.Spec.TLS {
		row.TLSHosts = append(row.TLSHosts, tls.Hosts...)
		if len(tls.Hosts) == 0 {
			row.TLSHosts = append(row.TLSHosts, "")
		}
	}
	for _, at := range i.Status.LoadBalancer.Ingress {
		switch {
		case at.IP != "":
			row.Addresses = append(row.Addresses, at.IP)
		case at.Hostname != "":
			row.Addresses = append(row.Addresses, at.Hostname)
		}
	}
	return row
}

// kubeVIPOf is the row of the ConfigMap of kube-vip.
func kubeVIPOf(m *corev1.ConfigMap) types.KubeVIP {
	return types.KubeVIP{CIDR: m.Data[kubeVIPCIDR], Interface: m.Data[kubeVIPInterface]}
}
