package types

// The ports that the nodes of a cluster need of each other (docs/wire.md,
// "Firewall").
const (
	PortAPI        = 6443
	PortEtcdClient = 2379
	PortEtcdPeer   = 2380
	PortKubelet    = 10250
	PortStatus     = 12346 // the status server: EVE's firewall opens this port only
)

// Namespaces of the cluster.
const (
	NamespaceApps     = "eve-kube-app" // EVE's applications and their claims
	NamespaceLonghorn = "longhorn-system"
	NamespaceKubeVirt = "kubevirt"
	NamespaceCDI      = "cdi"
	NamespaceSystem   = "kube-system"
)

// Labels by which Kubernetes and k3s name the part of a Node.
const (
	LabelControlPlane = "node-role.kubernetes.io/control-plane"
	LabelMaster       = "node-role.kubernetes.io/master"
	LabelEtcd         = "node-role.kubernetes.io/etcd"
)

// Files of EVE and of the agent (docs/wire.md, "Files").
const (
	PathHypervisor  = "/run/eve-hv-type" // one word, see HypervisorRunsKubernetes
	PathPID         = "/run/zedkube.pid"
	PathLock        = "/run/zedkube.lock"                // flock(2) of the agent that runs
	PathTouch       = "/run/zedkube.touch"               // written every ten seconds
	PathWatchdog    = "/run/watchdog/file/zedkube.touch" // there while the watchdog looks at PathTouch
	PathKubeconfig  = "/run/.kube/k3s/k3s.yaml"
	PathForceDrain  = "/tmp/force-NodeDrainStatus-global.json"
	PathForceDrain2 = "/persist/kube-status/force-NodeDrainStatus-global.json" // outlives a boot
	PathFaultMarker = "/tmp/DrainStatus_FaultInjection_Wait"                   // EVE's tests: no drain completes
	PathTopics      = "/run"
	PathKeptTopics  = "/persist/status" // of topics that outlive a boot
)

// HypervisorRunsKubernetes reports whether EVE's hypervisor type, the content of
// PathHypervisor without blanks, is the one with Kubernetes: "k", and "kubevirt"
// in older releases.
func HypervisorRunsKubernetes(kind string) bool { return kind == "k" || kind == "kubevirt" }
