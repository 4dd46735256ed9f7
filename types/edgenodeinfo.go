package types

import (
	"strings"

	"github.com/google/uuid"
)

// EdgeNodeInfo is zedagent's word on who this device is, under key "global".
type EdgeNodeInfo struct {
	DeviceName     string
	DeviceID       uuid.UUID
	ProjectName    string
	ProjectID      uuid.UUID
	EnterpriseName string
	EnterpriseID   string
}

// NodeName is the Kubernetes name that the kube container gives this device:
// lower case, "_" turned into "-" (docs/wire.md, "EdgeNodeInfo").
func (i EdgeNodeInfo) NodeName() string {
	return strings.ReplaceAll(strings.ToLower(i.DeviceName), "_", "-")
}
