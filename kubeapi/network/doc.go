// Package network has the verbs on network attachments (Multus) and on the SR-IOV
// device plug-in.
package network
