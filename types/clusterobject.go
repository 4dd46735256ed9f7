package types

import "time"

// What a ClusterObject says of itself.
const (
	ClusterAPIVersion = "zedkube.github.io/v1alpha1"
	ClusterKind       = "Cluster"
)

// ClusterObject is the cluster of this node as one object in the form of Kubernetes: what
// is declared, and what has become of it, as seen from this node; under key "global" of a
// persistent topic (docs/wire.md, "ClusterObject").
type ClusterObject struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Metadata   ClusterMetadata     `json:"metadata"`
	Spec       ClusterSpec         `json:"spec"`
	Status     ClusterObjectStatus `json:"status"`
}

// ClusterMetadata names the cluster.
type ClusterMetadata struct {
	Name string `json:"name,omitempty"` // of the cluster; without one, of the node that runs Kubernetes of its own
	UID  string `json:"uid,omitempty"`  // the cluster's UUID; "" where no cluster is declared
}

// ClusterSpec is what is declared, as far as EVE declares it. All but Leave and
// DisableWorkloads is the controller's.
type ClusterSpec struct {
	Version     string            `json:"version,omitempty"` // setting k3s.version
	ClusterType string            `json:"clusterType"`       // k3s
	Role        string            `json:"role,omitempty"`    // of this node: bootstrap, server or worker
	Leave       bool              `json:"leave"`             // an operator asks that this node leave
	Disabled    bool              `json:"disableWorkloads"`  // an operator asks that no workload of the cluster run
	APIServer   ClusterAPIServer  `json:"apiServer"`
	Networking  ClusterNetworking `json:"networking"`
	Storage     string            `json:"storage,omitempty"` // ClusterType of EVE: K3sBase, ReplicatedStorage
}

// ClusterAPIServer is what is declared of the API server.
type ClusterAPIServer struct {
	CertSANs []string `json:"certSANs,omitempty"` // option tls-san of the setting k3s.config.override
}

// ClusterNetworking is what is declared of the cluster's network.
type ClusterNetworking struct {
	Interface     string           `json:"interface,omitempty"`  // logical label of the port
	Address       string           `json:"address,omitempty"`    // of this node, with the length of the network's prefix
	JoinServer    string           `json:"joinServer,omitempty"` // address of the server to join through
	LoadBalancers []ClusterLBRange `json:"loadBalancers,omitempty"`
}

// ClusterLBRange is a range of addresses for load balancers.
type ClusterLBRange struct {
	Interface string `json:"interface"` // logical label of the port
	Prefix    string `json:"prefix"`
}

// ClusterPhase is where the cluster stands, in one word.
type ClusterPhase string

// The phases.
const (
	ClusterNotInitialized ClusterPhase = "NotInitialized" // there is no Kubernetes here yet
	ClusterProvisioning   ClusterPhase = "Provisioning"   // k3s is being installed, or this node joins
	ClusterProvisioned    ClusterPhase = "Provisioned"    // all is well
	ClusterUpgrading      ClusterPhase = "Upgrading"      // k3s or a component is being updated
	ClusterDisabled       ClusterPhase = "Disabled"       // the workloads of the cluster are disabled, or are being disabled or enabled
	ClusterDegraded       ClusterPhase = "Degraded"       // it was provisioned, and not all is well
	ClusterFailed         ClusterPhase = "Failed"         // it was not provisioned, or k3s does not run, for a stated error
	ClusterLeaving        ClusterPhase = "Leaving"        // this node leaves
)

// ClusterObjectStatus is what has become of the declaration.
type ClusterObjectStatus struct {
	Phase             ClusterPhase       `json:"phase"`
	Since             time.Time          `json:"phaseTransitionTime"`         // when Phase last changed, wall clock
	Description       string             `json:"description"`                 // a sentence or two: why it is in this phase
	KubernetesVersion string             `json:"kubernetesVersion,omitempty"` // of the API server, as last seen
	Components        ClusterComponents  `json:"components"`
	Conditions        []ClusterCondition `json:"conditions"`
	AtStake           *ClusterAtStake    `json:"atStake,omitempty"` // while this node leaves, or looks whether it may without the cluster
}

// ClusterComponents are versions, as last seen; "" for unknown.
type ClusterComponents struct {
	Kubelet  string `json:"kubelet,omitempty"` // of this node
	KubeVirt string `json:"kubevirt,omitempty"`
	CDI      string `json:"cdi,omitempty"`
	Longhorn string `json:"longhorn,omitempty"`
	CNI      string `json:"cni,omitempty"`
	Zedkube  string `json:"zedkube,omitempty"`
}

// ClusterConditionType names a condition of a ClusterObject. Each is True while all is well.
type ClusterConditionType string

// The conditions. One that does not apply to this node is not listed.
const (
	ClusterReady          ClusterConditionType = "ClusterReady"
	ControlPlaneReady     ClusterConditionType = "ControlPlaneReady"
	NodeReady             ClusterConditionType = "NodeReady"
	KubeContainerReady    ClusterConditionType = "KubeContainerReady"
	ComponentsUpdated     ClusterConditionType = "ComponentsUpdated"
	ClusterVersion        ClusterConditionType = "VersionAsExpected"
	ClusterDeclared       ClusterConditionType = "Declared"
	ClusterAddressReady   ClusterConditionType = "AddressReady"
	ClusterPeersReachable ClusterConditionType = "PeersReachable"
	ClusterJoined         ClusterConditionType = "Joined"
	ClusterVoter          ClusterConditionType = "Voter"
	ClusterLabelled       ClusterConditionType = "Labelled"
	ClusterSettled        ClusterConditionType = "Settled"
)

// Reasons of conditions that others look for.
const (
	ComponentUpdateFailed = "UpdateFailed" // of ComponentsUpdated
	KubeContainerError    = "Error"        // of KubeContainerReady
)

// ClusterCondition is one condition.
type ClusterCondition struct {
	Type               ClusterConditionType `json:"type"`
	Status             ConditionStatus      `json:"status"`
	LastTransitionTime time.Time            `json:"lastTransitionTime"` // when Status last changed, wall clock
	Reason             string               `json:"reason"`             // CamelCase
	Message            string               `json:"message"`            // a sentence for people
}

// Of returns the condition of that type, the zero value where it is not listed.
func (s ClusterObjectStatus) Of(t ClusterConditionType) ClusterCondition {
	for _, c := range s.Conditions {
		if c.Type == t {
			return c
		}
	}
	return ClusterCondition{}
}

// ClusterAtStake is what a leave under way may take along.
type ClusterAtStake struct {
	ByOperator     bool            `json:"byOperator,omitempty"`     // the leave was asked for at the device
	Drain          string          `json:"drain,omitempty"`          // phase of the drain for it, and why it is in that
	EndsCluster    bool            `json:"endsCluster,omitempty"`    // this is the last node that can run anything, or the last that votes
	Applications   int             `json:"applications"`             // that run on this node, as last seen
	Volumes        []ClusterVolume `json:"volumes"`                  // whose data would be lost, bounded
	OmittedVolumes int             `json:"omittedVolumes,omitempty"` // how many more there are
	VolumesAsOf    time.Time       `json:"volumesAsOf,omitzero"`     // when they were looked at; zero: it is not known which there are
	ConsentGiven   time.Time       `json:"consentGiven,omitzero"`    // to their loss; zero for none
	WithoutCluster string          `json:"withoutCluster,omitempty"` // how far the evidence for a leave without the cluster is
}

// ClusterVolume is a LeaveVolume.
type ClusterVolume struct {
	UID   string `json:"uid"`
	Name  string `json:"name"`
	Claim string `json:"claim"` // namespace/name of its claim, "" for none
}
