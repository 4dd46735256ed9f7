package join

import (
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zedkube/zedkube/pkg/edge/settings"
)

// Version is the release of KubeEdge.
const Version = "v1.20.0"

// EdgeRole is the label, and the taint, of edge nodes.
const EdgeRole = "node-role.kubernetes.io/edge"

// MemberRoles are the labels of which each makes a Node a member of the cluster, whatever else it has.
func MemberRoles() []string {
	return []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/etcd", "node-uuid"}
}

// MemberLabels are those that no edge node may have: what makes a member, and what a member is told by.
func MemberLabels() []string { return append(MemberRoles(), "tie-breaker-node") }

var (
	labelForm   = regexp.MustCompile(`^([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?=([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$`)
	runtimeForm = regexp.MustCompile(`^unix:///[A-Za-z0-9_./-]+$`)
)

// Device is what a device has to know to become an edge node.
type Device struct {
	Name, Address string
	Arch          string
	Runtime       string // of containers: unix:///...
	CgroupDriver  string
	Labels        []string // KEY=VALUE
	NoTaint       bool
	Token         string
	Servers       []string // addresses of cloudcore; the first one that answers is taken
	Settings      settings.Settings
}

// Validate says what is wrong with what somebody has typed.
func (d Device) Validate() error {
	if !slices.Contains([]string{"amd64", "arm64"}, d.Arch) {
		return fmt.Errorf("arch is %q, not amd64 or arm64", d.Arch)
	}
	if !runtimeForm.MatchString(d.Runtime) {
		return fmt.Errorf("runtime is %q, not a socket as unix:///run/containerd/containerd.sock", d.Runtime)
	}
	if !slices.Contains([]string{"cgroupfs", "systemd"}, d.CgroupDriver) {
		return fmt.Errorf("cgroup-driver is %q, not cgroupfs or systemd", d.CgroupDriver)
	}
	for _, label := range d.Labels {
		key, _, _ := strings.Cut(label, "=")
		if !labelForm.MatchString(label) {
			return fmt.Errorf("%q is no label: KEY=VALUE", label)
		}
		if slices.Contains(MemberLabels(), key) {
			return fmt.Errorf("label %s is that of a member of the cluster", key)
		}
	}
	return nil
}

// Port is the one at which a device reaches a port of cloudcore; 0 where it is closed.
func (d Device) Port(name string) int {
	for _, p := range d.Settings.Open() {
		if p.Name == name {
			return p.Port
		}
	}
	return 0
}

func at(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// Config is edgecore.yaml, which is JSON as well. What is not in it has KubeEdge's default. The token is not in it.
func (d Device) Config() (string, error) {
	type m = map[string]any
	server := d.Servers[0]
	labels := map[string]string{}
	for _, label := range d.Labels {
		key, value, _ := strings.Cut(label, "=")
		labels[key] = value
	}
	kubelet := m{"cgroupDriver": d.CgroupDriver, "containerRuntimeEndpoint": d.Runtime, "imageServiceEndpoint": d.Runtime}
	if !d.NoTaint {
		kubelet["registerWithTaints"] = []m{{"key": EdgeRole, "effect": "NoSchedule"}}
	}
	link := func(port int) m {
		return m{"enable": port != 0, "handshakeTimeout": 10, "readDeadline": 15, "writeDeadline": 15, "server": at(server, port)}
	}
	websocket, quic := link(d.Port("cloudhub")), m{"enable": false} // one of both
	if websocket["enable"] == false {
		websocket, quic = quic, link(d.Port("cloudhub-quic"))
	}
	text, err := json.MarshalIndent(m{
		"apiVersion": "edgecore.config.kubeedge.io/v1alpha2", "kind": "EdgeCore",
		"database": m{"dataSource": "/var/lib/kubeedge/edgecore.db"},
		"modules": m{
			"edgeHub": m{
				"enable": true, "heartbeat": 10, "httpServer": "https://" + at(server, d.Port("cloudhub-https")), "token": "",
				"websocket": websocket, "quic": quic,
			},
			"edgeStream": link(d.Port("tunnelport")),
			"eventBus":   m{"enable": false},
			"edged": m{
				// cloudcore refuses events of edge nodes.
				"enable": true, "hostnameOverride": d.Name, "nodeIP": d.Address, "reportEvent": false,
				"registerNodeNamespace": "default", "nodeLabels": labels, "tailoredKubeletConfig": kubelet,
			},
		},
	}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write edgecore.yaml: %w", err)
	}
	return string(text) + "\n", nil
}

// Keadm is the line that does most of it with KubeEdge's own tool; Lacks says what it does not do.
func (d Device) Keadm() string {
	words := []string{
		"keadm join", "--cloudcore-ipport=" + at(d.Servers[0], d.Port("cloudhub")), "--certport=" + strconv.Itoa(d.Port("cloudhub-https")),
		"--edgenode-name=" + d.Name, "--token=" + d.Token, "--kubeedge-version=" + Version, "--remote-runtime-endpoint=" + d.Runtime,
		"--cgroupdriver=" + d.CgroupDriver, "--set modules.edged.nodeIP=" + d.Address,
	}
	if port := d.Port("tunnelport"); port != 0 {
		words = append(words, "--set modules.edgeStream.enable=true,modules.edgeStream.server="+at(d.Servers[0], port))
	}
	if len(d.Labels) > 0 {
		words = append(words, "--labels="+strings.Join(d.Labels, ","))
	}
	return strings.Join(words, " ")
}

// Lacks are what keadm does not do, in sentences.
func (d Device) Lacks() []string {
	list := []string{
		"keadm downloads its image from the internet, needs systemd, and does not add the address: ip addr add " + d.Address + "/32 dev lo",
		"keadm does not end a connection on which nobody answers: when the server of its cloudcore is lost the device is cut off for a quarter of an hour",
		"keadm does not write " + d.Name + " to /etc/hosts: without DNS the device is Ready 30 s later",
	}
	if !d.NoTaint {
		list = append(list, "keadm sets no taint: kubectl taint node "+d.Name+" "+EdgeRole+":NoSchedule")
	}
	return list
}
