package statusserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

// source is one topic of a report: whose it is, which files of it are meant,
// and what of them is told. Only what is named here ever leaves the device.
type source struct {
	agent, topic string
	ids          func(*subject) []string
	must         bool // without it nothing follows
	tell         func(data []byte, s *subject, v *item) error
}

func global(*subject) []string     { return []string{types.Global} }
func app(s *subject) []string      { return []string{s.app} }
func volumes(s *subject) []string  { return s.volumes }
func contents(s *subject) []string { return s.contents }
func networks(s *subject) []string { return s.networks }

// telling decodes a file into a T and lets f tell of it.
func telling[T any](f func(t T, s *subject, v *item)) func([]byte, *subject, *item) error {
	return func(data []byte, s *subject, v *item) error {
		var t T
		if err := json.Unmarshal(data, &t); err != nil {
			return err
		}
		f(t, s, v)
		return nil
	}
}

// nodeItem comes first; without it nothing follows.
var nodeItem = source{"zedagent", "EdgeNodeInfo", global, true, telling(func(t types.EdgeNodeInfo, s *subject, v *item) {
	s.device = t
	v.UUID, v.Name = t.DeviceID.String(), t.DeviceName
	v.Content = fmt.Sprintf("Enterprise: %s, Project: %s", t.EnterpriseName, t.ProjectName)
})}

var clusterItems = []source{
	{"zedkube", "EdgeNodeClusterStatus", global, false, telling(func(t clusterFile, _ *subject, v *item) {
		v.Name, v.State = t.ClusterInterface, "cluster address not ready"
		if t.ClusterIPIsReady {
			v.State = "cluster address ready"
		}
		v.Content = fmt.Sprintf("cluster address: %v, join server: %v, bootstrap: %v", t.ClusterIPPrefix, t.JoinServerIP, t.BootstrapNode)
	})},
	{"zedkube", "KubeLeaderElectInfo", global, false, telling(func(t types.KubeLeaderElectInfo, _ *subject, v *item) {
		v.Name, v.Activated = t.LeaderIdentity, tri(t.InLeaderElection)
		v.State = fmt.Sprintf("leads: %v", t.IsStatsLeader)
		v.Content = "last change: " + t.LatestChange.UTC().Format(time.RFC3339)
	})},
}

// clusterFile is EdgeNodeClusterStatus without its token.
type clusterFile struct {
	ClusterInterface string
	ClusterIPPrefix  *net.IPNet
	ClusterIPIsReady bool
	JoinServerIP     net.IP
	BootstrapNode    bool
}

// appItems are reported of an application, in this order. State is EVE's number of
// a state as it stands in the file: the numbers' names differ between releases.
var appItems = []source{
	{"zedagent", "AppInstanceConfig", app, true, telling(describeConfig)},
	{"zedagent", "VolumeConfig", volumes, true, telling(func(t volumeFile, s *subject, v *item) {
		s.contents = append(s.contents, t.ContentID.String())
		v.Name = t.DisplayName
		v.Content = fmt.Sprintf("content: %s, replicated: %v", t.ContentID, t.IsReplicated)
	})},
	{"zedrouter", "NetworkInstanceStatus", networks, true, telling(func(t networkFile, _ *subject, v *item) {
		v.Name, v.Activated = t.DisplayName, tri(t.Activated)
		v.Content = "assigned: " + assigned(t.IPAssignments)
	})},
	{"zedkube", "ENClusterAppStatus", app, false, telling(func(t types.ENClusterAppStatus, _ *subject, v *item) {
		v.DNidNode = tri(t.IsDNidNode)
		v.Content = fmt.Sprintf("scheduled on this node: %v, running: %v", t.ScheduledOnThisNode, t.StatusRunning)
	})},
	{"zedmanager", "AppNetworkConfig", app, false, telling(describeAppNetwork)},
	{"zedrouter", "AppNetworkStatus", app, false, telling(func(t appNetworkStatusFile, _ *subject, v *item) {
		var ips []string
		for _, a := range t.AppNetAdapterList {
			ips = append(ips, string(a.AssignedAddresses.IPv4Addrs))
		}
		v.Name, v.Activated = t.DisplayName, tri(t.Activated)
		v.Content = fmt.Sprintf("number: %d, assigned: %s", t.AppNum, strings.Join(ips, " "))
	})},
	{"volumemgr", "VolumeStatus", volumes, false, telling(func(t volumeStatusFile, _ *subject, v *item) {
		v.Name, v.State = "reference: "+t.ReferenceName, t.State.String()
		v.Content = fmt.Sprintf("replicated: %v, bytes: %d of %d", t.IsReplicated, t.CurrentSize, t.TotalSize)
	})},
	{"volumemgr", "ContentTreeStatus", contents, false, telling(func(t contentFile, _ *subject, v *item) {
		path, _, _ := strings.Cut(t.RelativeURL, "?") // what follows may be a signature
		v.Name, v.State = t.DisplayName, t.State.String()
		v.Content = fmt.Sprintf("path: %s, bytes: %d of %d", path, t.CurrentSize, t.TotalSize)
	})},
	{"zedmanager", "AppNetworkConfig", app, false, telling(describeAppNetwork)},
	{"zedmanager", "AppInstanceStatus", app, false, telling(func(t appStatusFile, _ *subject, v *item) {
		v.Name, v.State = t.DomainName, t.State.String()
		v.Activated, v.DNidNode = tri(t.Activated), tri(t.IsDesignatedNodeID)
	})},
	{"zedmanager", "DomainConfig", app, true, telling(func(t domainFile, _ *subject, v *item) {
		v.Name, v.Activated, v.DNidNode = t.DisplayName, tri(t.Activate), tri(t.IsDNidNode)
		v.Content = fmt.Sprintf("number: %d, image: %s", t.AppNum, t.KubeImageName)
	})},
	{"domainmgr", "DomainStatus", app, false, telling(func(t domainFile, _ *subject, v *item) {
		v.Name, v.State, v.Activated, v.DNidNode = t.DisplayName, t.State.String(), tri(t.Activated), tri(t.IsDNidNode)
		v.Content = fmt.Sprintf("number: %d, node: %s", t.AppNum, t.NodeName)
	})},
	{"domainmgr", "DomainMetric", app, false, telling(func(t domainMetricFile, _ *subject, v *item) {
		v.Activated = tri(t.Activated)
		v.Content = fmt.Sprintf("memory: %d MB, used: %.1f %%, heard: %s", t.AllocatedMB, t.UsedMemoryPercent, t.LastHeard.UTC().Format(time.RFC3339))
	})},
	{"volumemgr", "AppDiskMetric", volumes, false, telling(func(t diskFile, _ *subject, v *item) {
		v.Name, v.State = "path: "+t.DiskPath, "type: "+t.DiskType
		v.Content = fmt.Sprintf("bytes: %d of %d, dirty: %v", t.UsedBytes, t.ProvisionedBytes, t.Dirty)
	})},
}

func describeConfig(t appConfigFile, s *subject, v *item) {
	if id := t.UUIDandVersion.UUID; id != uuid.Nil && strings.HasPrefix(id.String(), s.app) {
		s.app = id.String() // from here on it is this one, not another with the same front
	}
	for _, r := range t.VolumeRefConfigList[:min(len(t.VolumeRefConfigList), maxEach)] {
		s.volumes = append(s.volumes, r.VolumeID.String())
	}
	for _, a := range t.AppNetAdapterList[:min(len(t.AppNetAdapterList), maxEach)] {
		s.networks = append(s.networks, a.Network.String())
	}
	v.UUID, v.Name = s.app, t.DisplayName
	v.Activated, v.DNidNode = tri(t.Activate), tri(t.IsDesignatedNodeID)
	v.Content = fmt.Sprintf("volumes: %d, networks: %d", len(t.VolumeRefConfigList), len(t.AppNetAdapterList))
}

func describeAppNetwork(t appNetworkFile, _ *subject, v *item) {
	var all []string
	for _, a := range t.AppNetAdapterList {
		all = append(all, fmt.Sprintf("%s %v %v", a.Name, a.AppMacAddr, a.AppIPAddr))
	}
	v.Name, v.Activated = t.DisplayName, tri(t.Activate)
	v.Content = "adapters: " + strings.Join(all, ", ")
}

const (
	maxTopicFile = 1 << 20 // the longest file of a topic that is read
	maxDirNames  = 10000   // the most files of a topic that are looked at
	logLines     = 10
	maxTail      = 16 << 10 // where ten lines are longer, their end counts
)

var errNoFile = errors.New("no file")

// readTopic reads the first file of a topic, by name, that begins with id, from
// the first directory that has one.
func readTopic(dirs []string, agent, topic, id string) ([]byte, error) {
	for _, dir := range dirs {
		dir = filepath.Join(dir, agent, topic)
		name, err := firstName(dir, id)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return safefile.Read(filepath.Join(dir, name), maxTopicFile)
	}
	return nil, errNoFile
}

// firstName is the first file in dir of those that begin with id: the rest may
// be a generation or a number.
func firstName(dir, id string) (string, error) {
	names, err := safefile.Names(dir, maxDirNames)
	if err != nil {
		return "", err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, id) || !strings.HasSuffix(name, ".json")
	})
	if len(names) == 0 {
		return "", os.ErrNotExist
	}
	return slices.Min(names), nil
}

// tail is the last lines of the file at path, of at most maxTail bytes, however
// long the file is.
func tail(path string, lines int) ([]string, error) {
	f, fi, err := safefile.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	from := max(0, fi.Size()-maxTail)
	data, err := io.ReadAll(io.NewSectionReader(f, from, maxTail))
	if err != nil {
		return nil, err
	}
	text := strings.TrimSuffix(strings.ToValidUTF8(string(data), "?"), "\n")
	if from > 0 { // the first word has lost its beginning, by which a secret is known
		i := strings.IndexAny(text, " \t\n")
		text = text[i+1:]
		if i < 0 {
			text = ""
		}
	}
	all := strings.Split(text, "\n")
	return all[max(0, len(all)-lines):], nil
}
