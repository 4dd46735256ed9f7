package types

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// NAD is the NetworkAttachmentDefinition host-<Interface> of eve-kube-app that
// hands an Ethernet port to a native container (docs/wire.md, "Network
// attachments"). One object serves all nodes that have a port of that name.
type NAD struct {
	Interface string            // Linux name
	Owners    map[string]string // by node name, the UID of the Node whose applications need it
	Unowned   bool              // who needs it cannot be read: nobody, or anyone who says so first
	Altered   bool              // it is zedkube's, but does not say what zedkube wrote
}

// ErrNotInstalled is wrapped where the API server does not know a kind: what
// brings it is not installed, or not yet.
var ErrNotInstalled = errors.New("not known to the API server")

// IsObjectName reports whether Kubernetes takes a name for that of a Node or of
// another such object.
func IsObjectName(name string) bool {
	return len(name) <= maxObjectName && objectName.MatchString(name)
}

// maxObjectName is not counted in the expression, which would make it a large one.
const maxObjectName = 253

var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

const (
	nadPrefix = "host-"
	// linkName is how long Linux lets the name of an interface be.
	linkName = 15
)

// NADName is the name of the object for a Linux interface. It is an error where
// that is no name of an interface, or none that an object can have: domainmgr
// refers to the object by exactly this name, so there is no other to choose.
func NADName(ifname string) (string, error) {
	name := nadPrefix + ifname
	switch {
	case ifname == "" || len(ifname) > linkName || ifname == "." || ifname == ".." || strings.ContainsAny(ifname, "/: \t\n\v\f\r\x00"):
		return "", fmt.Errorf("%q is not a valid name of a network interface", ifname)
	case !IsObjectName(name):
		return "", fmt.Errorf("interface %q cannot be passed through: %q is not a valid name of a Kubernetes object (lower-case letters, digits, - and . only)", ifname, name)
	}
	return name, nil
}

// NADInterface is the interface that an object of that name is for; false where
// the name is none of ours.
func NADInterface(name string) (string, bool) {
	ifname, ok := strings.CutPrefix(name, nadPrefix)
	if !ok {
		return "", false
	}
	_, err := NADName(ifname)
	return ifname, err == nil
}

// SRIOVConfig is the ConfigMap of the SR-IOV device plug-in, which all nodes of
// the cluster share (docs/wire.md, "SR-IOV").
type SRIOVConfig struct {
	Version string            // resourceVersion; "" where there is no ConfigMap
	Data    map[string]string // text by key
}

// SRIOVPlugin is a pod of the SR-IOV device plug-in.
type SRIOVPlugin struct {
	Name        string
	UID         string
	Created     time.Time // by the API server's clock
	Terminating bool
	Part        string // what zedkube has written on it of the configuration it has read; "" for nothing
}

// SRIOVNetwork is a network attachment of eve-kube-app that is served by a
// device plug-in.
type SRIOVNetwork struct {
	Name     string
	UID      string
	Version  string // resourceVersion
	Resource string // the plug-in's resource: prefix/name
}
