package k3sconfig

// The reasons that more than one row has.
const (
	joins      = "EVE itself configures how the node joins its cluster"
	addresses  = "the controller configures the cluster's interface and address"
	networks   = "the networks of a cluster cannot change once k3s has run, and EVE routes 10.43.0.0/16"
	containers = "containers run in EVE's containerd"
	byName     = "EVE and zedkube find the Node by it"
	paths      = "EVE and zedkube find the files of k3s at fixed paths"
)

// denied lists what the override must not have (docs/wire.md, "Override of k3s").
// The first row that matches counts; one without a reason is an exception of those below it.
var denied = []listed{
	{"server s token t token-file agent-token agent-token-file cluster-init", "", joins},
	{"cluster-reset*", "", "etcd would go on with this node alone, without the others"},
	{"datastore-*", "", "the data of the cluster is in the etcd of k3s"},
	{"node-name with-node-id", "", byName},
	{"node-label", "node-uuid tie-breaker-node kubernetes.io/hostname", byName},
	{"node-ip advertise-address bind-address flannel-iface", "", addresses},
	{"https-listen-port advertise-port apiserver-port supervisor-port", "", "EVE and the other nodes expect the API server on port 6443"},
	{"cluster-cidr service-cidr cluster-dns cluster-domain multi-cluster-cidr", "", networks},
	{"flannel-* egress-selector-mode", "", "nodes with different values do not reach each other's pods, and the other nodes have EVE's"},
	{"disable-default-registry-endpoint", "", ""},
	{"disable-*", "", "EVE decides which parts of k3s a node runs"},
	{"disable", "coredns", "applications, KubeVirt and Longhorn need the DNS of the cluster"},
	{"container-runtime-endpoint image-service-endpoint docker rootless", "", containers},
	{"embedded-registry", "", "k3s does not start with it, since " + containers},
	{"data-dir d write-kubeconfig o etcd-snapshot-dir config c", "", paths},
	{"vpn-auth*", "", addresses},
	{"protect-kernel-defaults", "", "k3s does not start with it where the kernel has EVE's settings"},

	{"kubelet-arg", "hostname-override register-node node-labels", byName},
	{"kubelet-arg", "node-ip", addresses},
	{"kubelet-arg", "root-dir cert-dir kubeconfig bootstrap-kubeconfig config client-ca-file", paths},
	{"kubelet-arg", "cluster-dns cluster-domain pod-cidr", networks},
	{"kubelet-arg", "container-runtime-endpoint image-service-endpoint", containers},
	{"kube-apiserver-arg", "etcd-servers etcd-prefix", "the data of the cluster is in the etcd of k3s"},
	{"kube-apiserver-arg", "advertise-address bind-address", addresses},
	{"kube-apiserver-arg", "secure-port", "EVE and the other nodes expect the API server on port 6443"},
	{"kube-apiserver-arg", "service-cluster-ip-range", networks},
	{"kube-apiserver-arg", "watch-cache", "EVE switches it off in clusters, because services that are created in a failover would be lost"},
	{"kube-controller-manager-arg kube-cloud-controller-manager-arg", "cluster-cidr service-cluster-ip-range allocate-node-cidrs node-cidr-mask-size node-cidr-mask-size-ipv4 node-cidr-mask-size-ipv6", networks},
	{"kube-proxy-arg", "cluster-cidr", networks},
	{"kube-proxy-arg", "hostname-override", byName},
	{"etcd-arg", "listen-metrics-urls", "zedkube asks etcd there whether it is healthy"},
	{"etcd-arg", "data-dir wal-dir name initial-cluster initial-cluster-state initial-cluster-token initial-advertise-peer-urls listen-client-urls listen-peer-urls advertise-client-urls force-new-cluster", "k3s configures the members of etcd"},
}

// doubtful lists what is accepted and probably a mistake.
var doubtful = []listed{
	{"tls-san disable *-arg", "", "it replaces what EVE has in this list; with + after its name it adds to that"},
	{"private-registry", "", "it has no effect, since " + containers + ", not in that of k3s"},
}
