package statusserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/base/redact"
	"github.com/zedkube/zedkube/types"
)

// report is what this node's files say of itself and of one application, in
// the form of docs/wire.md, "Status server".
type report struct {
	Hostname    string  `json:"hostname"`
	CollectTime string  `json:"collectTime"` // RFC 3339
	AppInfo     []entry `json:"appInfo"`
}

type entry struct {
	Key   string `json:"key"`
	Value item   `json:"value"`
}

type item struct {
	UUID      string
	Name      string
	Exist     bool
	Activated triState
	State     string
	Content   string
	DNidNode  triState
	Errors    string
}

// triState is EVE's boolean that may also be neither.
type triState string

const (
	none     triState = "none"
	enabled  triState = "enabled"
	disabled triState = "disabled"
)

func tri(b bool) triState {
	if b {
		return enabled
	}
	return disabled
}

const maxEach = 64 // bounds what one application refers to, volumes and networks each

// subject is what the items read so far tell the later ones.
type subject struct {
	app      string   // UUID, or the front of one
	volumes  []string // UUIDs
	contents []string // of the volumes, in their order
	networks []string
	device   types.EdgeNodeInfo
}

type collector struct {
	ctx     context.Context
	dirs    []string // Component.TopicDirs
	subject subject
	out     []entry
}

func (c *Component) collect(ctx context.Context, id string) report {
	col := &collector{ctx: ctx, dirs: c.TopicDirs, subject: subject{app: id}}
	name := "unknown"
	if col.take(nodeItem) {
		name = col.subject.device.DeviceName
		col.takeAll(clusterItems)
		col.takeLog(c.InstallLog)
		if id != "" {
			col.takeAll(appItems)
		}
	}
	status, _ := c.Status.Get(types.Global)
	out := report{Hostname: name, CollectTime: time.Now().UTC().Format(time.RFC3339), AppInfo: col.out}
	return out.redacted(status.EncryptedClusterToken)
}

// takeAll takes items until one that must be there is not.
func (col *collector) takeAll(items []source) {
	for _, s := range items {
		if !col.take(s) && s.must {
			return
		}
	}
}

// take reads the files of s and reports whether all were there.
func (col *collector) take(s source) bool {
	all := true
	for _, id := range s.ids(&col.subject) {
		v := item{UUID: id, Activated: none, DNidNode: none}
		key := s.agent + "-" + s.topic
		err := col.read(s, id, &v)
		if err != nil {
			v = item{UUID: id, Activated: none, DNidNode: none, Errors: missing(key, id, err)}
			all = false
		} else {
			v.Exist = true
			if id != types.Global {
				key += "-" + v.UUID[:min(len(v.UUID), 5)]
			}
		}
		col.out = append(col.out, entry{key, v})
		if err != nil && s.must {
			break
		}
	}
	return all
}

func (col *collector) read(s source, id string, v *item) error {
	if err := col.ctx.Err(); err != nil {
		return err
	}
	data, err := readTopic(col.dirs, s.agent, s.topic, id)
	if err != nil {
		return err
	}
	if err := s.tell(data, &col.subject, v); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

func (col *collector) takeLog(path string) {
	const key = "k3s-install.log"
	v := item{Name: key, Activated: none, DNidNode: none}
	lines, err := tail(path, logLines)
	if err != nil {
		v.Errors = missing(key, types.Global, err)
	} else {
		v.Exist, v.Content = true, strings.Join(lines, "\n")
	}
	col.out = append(col.out, entry{key, v})
}

func missing(key, id string, err error) string {
	var at *fs.PathError
	switch { // the path is not for everybody who asks
	case errors.Is(err, os.ErrNotExist):
		err = errNoFile
	case errors.As(err, &at):
		err = at.Err
	}
	return fmt.Sprintf("%s: Not found for: %s, %v", key, id, err)
}

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

const (
	maxText    = 4 << 10 // of one field of a report
	maxLogText = maxTail // of the log's end
)

// redacted is r without secrets, and then every text of it within bounds, since
// half a secret is not found; it leaves
// r as it is.
func (r report) redacted(token string) report {
	short := func(text string) string { return phrase.Cut(redact.Text(text, token), maxText) }
	out := report{Hostname: short(r.Hostname), CollectTime: short(r.CollectTime), AppInfo: make([]entry, 0, len(r.AppInfo))}
	for _, e := range r.AppInfo {
		v := e.Value
		for _, field := range []*string{&v.UUID, &v.Name, &v.State, &v.Errors, (*string)(&v.Activated), (*string)(&v.DNidNode)} {
			*field = short(*field)
		}
		v.Content = phrase.Cut(redact.Text(v.Content, token), maxLogText)
		out.AppInfo = append(out.AppInfo, entry{short(e.Key), v})
	}
	return out
}
