package types

// PodCount counts the pods of a namespace by phase.
type PodCount struct {
	Namespace string
	Pods      int // of all phases
	Running   int
	Pending   int
	Failed    int
	Succeeded int
}
