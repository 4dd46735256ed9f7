package types

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// KubeMembership is how the kube container stands to its cluster.
type KubeMembership string

// The memberships of docs/wire.md, "Kube container".
const (
	KubeMembershipSingle      KubeMembership = "Single"
	KubeMembershipJoinPending KubeMembership = "JoinPending"
	KubeMembershipJoining     KubeMembership = "Joining"
	KubeMembershipMember      KubeMembership = "Member"
	KubeMembershipLeaving     KubeMembership = "Leaving"
	KubeMembershipRestoring   KubeMembership = "Restoring"
	KubeMembershipUnknown     KubeMembership = "Unknown"
)

// KubeInitStatus is kube-init's word on its own progress, under key "global".
// Kube containers without kube-init never publish it (docs/wire.md, "Kube
// container").
type KubeInitStatus struct {
	AllComponentsInitialized bool
	State                    string
	Phase                    string
	Membership               KubeMembership
	ClusterID                string // a UUID
	Role                     string // Bootstrap, Server, Worker or ""
	TransitionStep           string
	JoinWatchdogActive       bool
	LastError                string
	UpdatedAt                time.Time
}

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

func (c KubeComp) String() string { return enumName("KubeComp", kubeComps, c) }

// ParseKubeComp is the component that the inline command's word names, letter
// for letter; KubeCompUnknown for every other word.
func ParseKubeComp(word string) KubeComp { return KubeComp(max(0, slices.Index(kubeComps, word))) } //nolint:gosec // an index of a dozen

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

func (s KubeCompUpdateStatus) String() string {
	return enumName("KubeCompUpdateStatus", kubeCompUpdates, s)
}

// ParseKubeCompUpdateStatus is the state that the inline command's word names,
// letter for letter; KubeCompUpdateUnknown for every other word.
func ParseKubeCompUpdateStatus(word string) KubeCompUpdateStatus {
	return KubeCompUpdateStatus(max(0, slices.Index(kubeCompUpdates, word))) //nolint:gosec // an index of a dozen
}

// KubeClusterUpdateStatus tells zedagent how far the update of the kube
// container's components has come on a node, under key "global" of a
// persistent topic in zedagent's name (docs/wire.md, "KubeClusterUpdateStatus").
type KubeClusterUpdateStatus struct {
	CurrentNode                  string
	Component                    KubeComp
	Status                       KubeCompUpdateStatus
	DestinationKubeUpdateVersion uint32
	ErrorDescription             // its five keys stand in this object
}

// K3sVersionStatus says at which version of k3s this node is kept, under key
// "global" of a topic of zedkube's own (docs/wire.md, "K3sVersionStatus").
type K3sVersionStatus struct {
	Version string    // what KubeConfig tells the kube container; "" is the container's own
	Running string    // the own kubelet's, as it reported in this boot; "" while it has not
	OnDisk  bool      // the k3s binary on disk is of version Running
	Binary  string    // the version of the k3s binary on disk, as it says itself; "" while that is unknown
	Wanted  string    // setting k3s.version
	Held    bool      // Wanted is not passed on to the kube container
	Why     string    // why it is held, a sentence; "" where it is not
	Since   time.Time // when Wanted began to be held
}

// K3sOverrideStatus says what became of the setting k3s.config.override on this
// node, under key "global" of a topic of zedkube's own (docs/wire.md,
// "K3sOverrideStatus"). It has nothing of the setting's text, which may have secrets.
type K3sOverrideStatus struct {
	Sum      string           // SHA-256 of what the setting decodes to, or K3sNoOverride; "" where it cannot be decoded
	Accepted bool             // the override file is to be so, when it is this node's turn
	InForce  string           // SHA-256 of the override file, or K3sNoOverride, or K3sOverrideUnreadable; "" while it is not known
	Refused  K3sOverrideNotes // why it is not accepted
	Warnings K3sOverrideNotes // what is probably a mistake
	Since    time.Time        // when Sum and Refused began to be so
	CertSANs []string         `json:",omitempty"` // option tls-san, where the setting is accepted
}

// What else stands for an override file than its SHA-256.
const (
	K3sNoOverride         = "none"       // there is no file
	K3sOverrideUnreadable = "unreadable" // something is there that cannot be read
)

// K3sOverrideNote says something of an option.
type K3sOverrideNote struct {
	Option string // "token", "kubelet-arg: root-dir", "line 3"; "" for the whole file
	Why    string // part of a sentence
}

// K3sOverrideNotes are parts of one sentence.
type K3sOverrideNotes []K3sOverrideNote

func (list K3sOverrideNotes) String() string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strings.TrimPrefix(n.Option+": "+n.Why, ": ")
	}
	return strings.Join(texts, "; ")
}

// K3sReleaseRequest is an operator's wish that this node take the version of
// k3s that the setting asks for, under key "global" of zedkube-cli. It lasts
// until the next boot.
type K3sReleaseRequest struct {
	RequestedAt time.Time
	Version     string
	Without     []string // preconditions of KubeLifecycle that may lack
}

// K3sRetryRequest is an operator's wish that a version to which this node could not change
// no longer counts as failed, under key "global" of zedkube-cli. It counts for that failure only.
type K3sRetryRequest struct {
	RequestedAt time.Time
	Version     string    // Failed.To of KubeLifecycle
	FailedAt    time.Time // Failed.At of that
}

// K3sRollbackRequest is an operator's wish that this node return from a version of k3s, under
// key "global" of zedkube-cli. One that was there before a change began does not count for it.
type K3sRollbackRequest struct {
	RequestedAt time.Time
	RequestedBy string
	Version     string // To of KubeLifecycle
	LoseChanges bool   // what was written to the datastore since may be lost
}

// K3sVersion is a version as k3s writes it: v1.34.2+k3s1, v1.35.0-rc1+k3s1.
type K3sVersion struct {
	Major, Minor, Patch int
	Pre                 string // after a hyphen; "" for a release
	Build               string // after the plus sign, k3s1; "" where there is none
}

// ErrNoVersion is wrapped by ParseK3sVersion.
var ErrNoVersion = errors.New("it is not a version such as v1.34.2+k3s1")

var k3sVersion = regexp.MustCompile(`^v(\d{1,4})\.(\d{1,4})\.(\d{1,4})(?:-([0-9A-Za-z.]+))?(?:\+([0-9A-Za-z.]+))?$`)

// maxK3sVersion is twice what k3s has ever called a version.
const maxK3sVersion = 64

// ParseK3sVersion reads a version; what it accepts can stand in the name of a
// file and in an address, where the kube container puts it.
func ParseK3sVersion(text string) (K3sVersion, error) {
	m := k3sVersion.FindStringSubmatch(text)
	if m == nil || len(text) > maxK3sVersion {
		return K3sVersion{}, ErrNoVersion
	}
	v := K3sVersion{Pre: m[4], Build: m[5]}
	for i, part := range []*int{&v.Major, &v.Minor, &v.Patch} {
		*part, _ = strconv.Atoi(m[i+1]) // at most four digits
	}
	return v, nil
}

// compare orders versions as they were released: negative where v is older.
func (v K3sVersion) compare(w K3sVersion) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch),
		comparePre(v.Pre, w.Pre), cmp.Compare(len(v.Build), len(w.Build)), strings.Compare(v.Build, w.Build))
}

// comparePre orders what stands after the hyphen: a release is newer than each
// of its candidates.
func comparePre(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "":
		return 1
	case b == "":
		return -1
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// CheckK3sStep says why a node must not go from one version of k3s to another, nil
// where it may as far as the versions alone say.
func CheckK3sStep(from, to string) error {
	_, _, err := JudgeK3sStep(from, to)
	return err
}

// VmiDescheduleEvents says when virtual machines go back to their designated
// node.
type VmiDescheduleEvents struct {
	OnBoot bool
}

// KubeConfig tells the kube container what the settings ask of it, under key
// "global" of a persistent topic (docs/wire.md, "KubeConfig").
type KubeConfig struct {
	K3sVersion          string // "" is the kube container's own
	VmiDescheduleEvents VmiDescheduleEvents
}

// VmiVNCConfig is the file that asks the kube container for a console proxy,
// vmiVNC.run; it is no topic (docs/wire.md, "Console file").
type VmiVNCConfig struct {
	VMIName   string `json:"VMIName"`
	VNCPort   uint32 `json:"VNCPort"`
	AppUUID   string `json:"AppUUID,omitempty"`   // whose console it is
	CallerPID int    `json:"CallerPID,omitempty"` // the edgeview process that wrote the file, 0 in ours
}
