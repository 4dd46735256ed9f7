package types

import "slices"

// KubeComp is a component of the kube container that gets updated. Its names
// are the words of the inline command.
type KubeComp uint8

// The components of docs/wire.md, "KubeClusterUpdateStatus".
const (
	KubeCompUnknown KubeComp = iota
	KubeCompContainerd
	KubeCompK3s
	KubeCompMultus
	KubeCompKubevirt
	KubeCompCdi
	KubeCompLonghorn
)

var kubeComps = []string{"unknown", "containerd", "k3s", "multus", "kubevirt", "cdi", "longhorn"}

// String returns the inline command's word for the component.
func (c KubeComp) String() string { return enumName("KubeComp", kubeComps, c) }

// ParseKubeComp is the component that the inline command's word names, letter
// for letter; KubeCompUnknown for every other word.
func ParseKubeComp(word string) KubeComp { return KubeComp(max(0, slices.Index(kubeComps, word))) }

// KubeCompUpdateStatus is how far the update of a component has come. Its
// names are the words of the inline command.
type KubeCompUpdateStatus uint8

// The update states of docs/wire.md, "KubeClusterUpdateStatus".
const (
	KubeCompUpdateUnknown KubeCompUpdateStatus = iota
	KubeCompUpdateDownload
	KubeCompUpdateDownloadFailed
	KubeCompUpdateInProgress
	KubeCompUpdateFailed
	KubeCompUpdateCompleted
)

var kubeCompUpdates = []string{"unknown", "download", "download_failed", "in_progress", "failed", "completed"}

// String returns the inline command's word for the state.
func (s KubeCompUpdateStatus) String() string {
	return enumName("KubeCompUpdateStatus", kubeCompUpdates, s)
}

// ParseKubeCompUpdateStatus is the state that the inline command's word names,
// letter for letter; KubeCompUpdateUnknown for every other word.
func ParseKubeCompUpdateStatus(word string) KubeCompUpdateStatus {
	return KubeCompUpdateStatus(max(0, slices.Index(kubeCompUpdates, word)))
}

// KubeClusterUpdateStatus tells zedagent how far the update of the kube
// container's components has come on a node, under key "global" of a
// persistent topic in zedagent's name (docs/wire.md, "KubeClusterUpdateStatus").
type KubeClusterUpdateStatus struct {
	CurrentNode                  string
	Component                    KubeComp
	Status                       KubeCompUpdateStatus
	DestinationKubeUpdateVersion uint32
	ErrorAndTime
}
