package joiner

import "time"

// Explanation is what a node says of itself in JSON: docs/wire.md, "Status for
// people".
type Explanation struct {
	State   string    `json:"state"` // ready, waiting
	Since   time.Time `json:"since"`
	Reason  string    `json:"reason"`
	Why     string    `json:"why"`
	Cluster string    `json:"cluster"` // "" while the plain answer names none
	Node    string    `json:"node"`    // "" while not known
	Status  Status    `json:"status"`
}

// Status is what is known of the node.
type Status struct {
	Phase             string      `json:"phase"`             // Provisioned, Provisioning, Unknown
	KubernetesVersion string      `json:"kubernetesVersion"` // "" while not known
	Conditions        []Condition `json:"conditions"`
}

// Condition is one of ClusterReady, NodeReady and ControlPlaneReady.
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"` // True, False, Unknown
	LastTransitionTime time.Time `json:"lastTransitionTime"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
}

// Condition gives the condition of a type, a zero one where it is missing.
func (e Explanation) Condition(kind string) Condition {
	for _, c := range e.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return Condition{}
}
