package statusserver

import (
	"bytes"
	"encoding/json"
	"net"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// What the report takes of the files of other agents. The names of fields are
// EVE's.

type appConfigFile struct {
	UUIDandVersion      types.UUIDandVersion
	DisplayName         string
	Activate            bool
	IsDesignatedNodeID  bool
	VolumeRefConfigList []struct{ VolumeID uuid.UUID }
	AppNetAdapterList   []struct{ Network uuid.UUID }
}

type volumeFile struct {
	ContentID    uuid.UUID
	DisplayName  string
	IsReplicated bool
}

type networkFile struct {
	DisplayName   string
	Activated     bool
	IPAssignments json.RawMessage // by MAC address; differs between releases
}

// assigned is any JSON value on one line.
func assigned(value json.RawMessage) string {
	var line bytes.Buffer
	if len(value) == 0 || json.Compact(&line, value) != nil {
		return "none"
	}
	return line.String()
}

type appNetworkFile struct {
	DisplayName       string
	Activate          bool
	AppNetAdapterList []struct {
		Name       string
		AppMacAddr net.HardwareAddr
		AppIPAddr  net.IP
	}
}

type appNetworkStatusFile struct {
	DisplayName       string
	Activated         bool
	AppNum            int
	AppNetAdapterList []struct {
		AssignedAddresses struct{ IPv4Addrs json.RawMessage }
	}
}

type volumeStatusFile struct {
	ReferenceName          string
	State                  json.Number
	IsReplicated           bool
	TotalSize, CurrentSize int64
}

type contentFile struct {
	DisplayName            string
	State                  json.Number
	RelativeURL            string
	TotalSize, CurrentSize int64
}

type appStatusFile struct {
	DomainName         string
	Activated          bool
	State              json.Number
	IsDesignatedNodeID bool
}

// domainFile is of DomainConfig, which has Activate, and of DomainStatus.
type domainFile struct {
	DisplayName         string
	Activate, Activated bool
	State               json.Number
	IsDNidNode          bool
	AppNum              int
	KubeImageName       string
	NodeName            string
}

type domainMetricFile struct {
	Activated         bool
	AllocatedMB       uint32
	UsedMemoryPercent float64
	LastHeard         time.Time
}

type diskFile struct {
	DiskPath, DiskType          string
	ProvisionedBytes, UsedBytes uint64
	Dirty                       bool
}
