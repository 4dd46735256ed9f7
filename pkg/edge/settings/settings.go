// Package settings says what an operator may set of KubeEdge's cloud side (docs/edge.md, "Settings"). It is pure.
package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// How a Service is reached from outside of the cluster.
const (
	NodePort     = "NodePort"
	LoadBalancer = "LoadBalancer"
)

const (
	// MaxNodes is how many edge nodes there may be at most: each has an address of a block of 254.
	MaxNodes = 250
	// MaxText bounds the settings as text, far above what all fields can take.
	MaxText = 16 << 10
	// Block is where edge nodes have their addresses: one network of 254, which is used nowhere else on a site.
	Block = "100.127.254.0/24"
)

// Ports of cloudcore's pod, as KubeEdge has them.
const (
	HubPort          = 10000
	QuicPort         = 10001
	CertificatesPort = 10002
	StreamPort       = 10003
	TunnelPort       = 10004

	// Others stand before three of them (pkg/edge/certificates, pkg/edge/stream). There cloudcore listens itself, closed to
	// all but its own pod.
	CertificatesBehind = 10012
	StreamBehind       = 10013
	TunnelBehind       = 10014

	nodePorts = 21000 // what a NodePort is above them: 31000 to 31004
)

// controllerRepository has an image of zedkube-edge for each release; what is built between two of them is tagged latest.
const controllerRepository = "docker.io/zedkube/zedkube-edge"

// release is the version of a release. The Makefile tags images by the same rule.
var release = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+(-[a-z]+\.?[0-9]+)?$`)

// Settings are those of docs/edge.md. A port of 0 is the default of the type of Service.
type Settings struct {
	Enabled            bool     `json:"enabled"`
	HA                 bool     `json:"ha"`
	ServiceType        string   `json:"serviceType"`
	AdvertiseAddress   []string `json:"advertiseAddress"`
	NodeLimit          int      `json:"nodeLimit"`
	Websocket          bool     `json:"websocket"`
	HTTPS              bool     `json:"https"`
	Quic               bool     `json:"quic"`
	CloudStream        bool     `json:"cloudStream"`
	WebsocketPort      int      `json:"websocketPort"`
	QuicPort           int      `json:"quicPort"`
	HTTPSPort          int      `json:"httpsPort"`
	CloudStreamPort    int      `json:"cloudStreamPort"`
	CloudTunnelPort    int      `json:"cloudTunnelPort"`
	ExposeCloudStream  bool     `json:"exposeCloudStream"`
	EdgeBlock          string   `json:"edgeBlock"`
	DestinationAddress string   `json:"destinationAddress"`
	DestinationPort    int      `json:"destinationPort"`
	LogPort            int      `json:"logPort"`
	MetricsPort        int      `json:"metricsPort"`
	Image              string   `json:"image"`
	ControllerImage    string   `json:"controllerImage"`
}

// Default is what is set before anybody has set anything.
func Default() Settings {
	return Settings{
		ServiceType: NodePort, AdvertiseAddress: []string{}, NodeLimit: 100, Websocket: true, HTTPS: true, CloudStream: true,
		EdgeBlock: Block, LogPort: 10350, MetricsPort: 10250,
		Image: "docker.io/kubeedge/cloudcore:v1.20.0", ControllerImage: controllerRepository + ":latest",
	}
}

// Key is one setting as people write it.
type Key struct {
	Name     string
	Restarts string // what a change of it restarts; "" for nothing
	Means    string
}

// Keys are all settings but enabled, in the order of docs/edge.md.
func Keys() []Key {
	return []Key{
		{"ha", cloudcore, "as many cloudcores as there are servers without the tie-breaker, three at most"},
		{"serviceType", "", "how edge nodes reach cloudcore: NodePort or LoadBalancer"},
		{"advertiseAddress", cloudcore, "addresses that edge nodes dial, with commas between them; none for those of all servers, or of the load balancer"},
		{"nodeLimit", cloudcore, "how many edge nodes there may be, 1 to 250"},
		{"websocket", cloudcore, "edge nodes may connect by websocket"},
		{"https", cloudcore, "edge nodes may fetch their certificate, without which none can join"},
		{"quic", cloudcore, "edge nodes may connect by QUIC"},
		{"cloudStream", cloudcore, "logs, exec and metrics of edge nodes"},
		{"websocketPort", "", "default 31000, with LoadBalancer 10000"},
		{"quicPort", "", "default 31001, with LoadBalancer 10001"},
		{"httpsPort", "", "default 31002, with LoadBalancer 10002"},
		{"cloudStreamPort", "", "default 31003, with LoadBalancer 10003; open only with exposeCloudStream"},
		{"cloudTunnelPort", "", "default 31004, with LoadBalancer 10004"},
		{"exposeCloudStream", "", "opens cloudStreamPort to the site; it asks who somebody is, as a kubelet does"},
		{"edgeBlock", cloudcore, "the network of 254 addresses that edge nodes have, for this only"},
		{"destinationAddress", "", "where requests for logs and metrics are sent; none for the cloudcore that has the tunnel"},
		{"destinationPort", "", "the port there; default 10003, with a destinationAddress 31003"},
		{"logPort", "", "port of requests for logs, of edge nodes before KubeEdge 1.12; served where a server has it free"},
		{"metricsPort", "", "port of requests for metrics, of edge nodes before KubeEdge 1.12; served where a server has it free"},
		{"image", cloudcore, "cloudcore's image, on the disk of each server"},
		{"controllerImage", "all of KubeEdge here", "the image of zedkube-edge itself; enable sets its own version, unless the image is another repository's"},
	}
}

const cloudcore = "cloudcore"

// Parse reads settings strictly: what is not there has its default, and what is not known is an error.
func Parse(text []byte) (Settings, error) {
	s := Default()
	if len(text) > MaxText {
		return s, fmt.Errorf("read settings: they have %d bytes, and may have %d", len(text), MaxText)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Default(), fmt.Errorf("read settings: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Default(), errors.New("read settings: something follows the JSON object")
	}
	if s.AdvertiseAddress == nil {
		s.AdvertiseAddress = []string{}
	}
	return s, s.Validate()
}

// Set changes one setting to what somebody has typed. The result is not validated yet: a later one may complete it.
func (s Settings) Set(name, value string) (Settings, error) {
	if !slices.ContainsFunc(Keys(), func(k Key) bool { return k.Name == name }) {
		return s, fmt.Errorf("there is no setting %q: zedkube edge set --help", name)
	}
	var typed any = value
	switch current := s.fields()[name].(type) {
	case bool:
		v, err := strconv.ParseBool(value)
		if err != nil {
			return s, fmt.Errorf("%s is %q, not true or false", name, value)
		}
		typed = v
	case float64:
		v, err := strconv.Atoi(value)
		if err != nil {
			return s, fmt.Errorf("%s is %q, not a number", name, value)
		}
		typed = v
	case []any:
		_ = current
		list := []string{}
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
		typed = list
	}
	text, err := json.Marshal(map[string]any{name: typed})
	if err != nil {
		return s, fmt.Errorf("set %s: %w", name, err)
	}
	s.AdvertiseAddress = slices.Clone(s.AdvertiseAddress)
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("set %s: %w", name, err)
	}
	return s, nil
}

// Of has the controller's image be that of a version of zedkube-edge, unless somebody has set one of another repository
// or by its digest.
func (s Settings) Of(version string) Settings {
	if !strings.HasPrefix(s.ControllerImage, controllerRepository+":") {
		return s
	}
	if !release.MatchString(version) {
		version = "latest"
	}
	s.ControllerImage = controllerRepository + ":" + version
	return s
}

// Text is how the settings are kept.
func (s Settings) Text() (string, error) {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write settings: %w", err)
	}
	return string(text) + "\n", nil
}

// fields are all settings by name, as JSON has them.
func (s Settings) fields() map[string]any {
	m := map[string]any{}
	if text, err := json.Marshal(s); err == nil {
		_ = json.Unmarshal(text, &m) // what was just written
	}
	return m
}

// Changed are the names of the settings that differ, sorted as Keys are.
func Changed(from, to Settings) (names []string) {
	a, b := from.fields(), to.fields()
	for _, k := range Keys() {
		if fmt.Sprint(a[k.Name]) != fmt.Sprint(b[k.Name]) {
			names = append(names, k.Name)
		}
	}
	return names
}

// Value is a setting as text, as Set takes it.
func (s Settings) Value(name string) string {
	switch v := s.fields()[name].(type) {
	case []any:
		return strings.Join(s.AdvertiseAddress, ",")
	default:
		return fmt.Sprint(v)
	}
}

// Row is one setting as people are shown it.
type Row struct {
	Name     string
	Value    string // as Set takes it
	Default  string // in words where it depends on the cluster
	Allowed  string // "true|false", "NodePort|LoadBalancer", "number" or "text"
	Restarts string // what a change of it restarts; "" for nothing
	Means    string
}

// Rows are all settings but enabled, in the order of docs/edge.md.
func (s Settings) Rows() (rows []Row) {
	usual := Default()
	usual.ServiceType = s.ServiceType
	ports := map[string]int{"destinationPort": StreamPort}
	for _, p := range usual.All() {
		ports[p.Setting] = p.Port
	}
	if s.DestinationAddress != "" {
		ports["destinationPort"] = StreamPort + nodePorts
	}
	words := map[string]string{
		"serviceType": NodePort, "advertiseAddress": "those of all servers", "destinationAddress": "the cloudcore that has the tunnel",
		"controllerImage": controllerRepository + " of the version that enables it",
	}
	if s.ServiceType == LoadBalancer {
		words["advertiseAddress"] = "that of the load balancer"
	}
	for _, k := range Keys() {
		r := Row{Name: k.Name, Value: s.Value(k.Name), Default: cmp.Or(words[k.Name], usual.Value(k.Name)), Allowed: "text", Restarts: k.Restarts, Means: k.Means}
		switch s.fields()[k.Name].(type) {
		case bool:
			r.Allowed = "true|false"
		case float64:
			r.Allowed = "number"
		}
		if k.Name == "serviceType" {
			r.Allowed = NodePort + "|" + LoadBalancer
		}
		if port := ports[k.Name]; port != 0 {
			r.Default = strconv.Itoa(port)
		}
		rows = append(rows, r)
	}
	return rows
}

// Validate says all that is wrong.
func (s Settings) Validate() error {
	var errs []error
	wrong := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if s.ServiceType != NodePort && s.ServiceType != LoadBalancer {
		wrong("serviceType is %q, not NodePort or LoadBalancer", s.ServiceType)
	}
	if s.NodeLimit < 1 || s.NodeLimit > MaxNodes {
		wrong("nodeLimit is %d, not 1 to %d: that many addresses are reserved for edge nodes", s.NodeLimit, MaxNodes)
	}
	if !s.Websocket && !s.Quic {
		wrong("websocket and quic are both false: no edge node could connect")
	}
	if s.ExposeCloudStream && !s.CloudStream {
		wrong("exposeCloudStream is true, and cloudStream is not")
	}
	if len(s.AdvertiseAddress) > 16 {
		wrong("advertiseAddress has %d addresses, and may have 16", len(s.AdvertiseAddress))
	}
	for i, text := range s.AdvertiseAddress {
		if a, err := netip.ParseAddr(text); err != nil || a.IsUnspecified() || a.Zone() != "" {
			wrong("advertiseAddress has %q, which is no IP address", text)
		}
		if slices.Contains(s.AdvertiseAddress[:i], text) {
			wrong("advertiseAddress has %s twice", text)
		}
	}
	if block, err := netip.ParsePrefix(s.EdgeBlock); err != nil || !block.Addr().Is4() || block.Bits() != 24 || block.Masked() != block {
		wrong("edgeBlock is %q, not an IPv4 network of 254 addresses, as %s", s.EdgeBlock, Block)
	}
	if _, err := netip.ParseAddr(s.DestinationAddress); s.DestinationAddress != "" && err != nil {
		wrong("destinationAddress is %q, which is no IP address", s.DestinationAddress)
	}
	for _, p := range []struct {
		name string
		port int
		none bool
	}{{"destinationPort", s.DestinationPort, true}, {"logPort", s.LogPort, false}, {"metricsPort", s.MetricsPort, false}} {
		if (p.port != 0 || !p.none) && (p.port < 1 || p.port > 65535) {
			wrong("%s is %d, not 1 to 65535", p.name, p.port)
		}
	}
	for name, image := range map[string]string{"image": s.Image, "controllerImage": s.ControllerImage} {
		if image == "" || len(image) > 255 || strings.ContainsAny(image, " \t\r\n\"'") {
			wrong("%s is %q, which is no image", name, image)
		}
	}
	return errors.Join(append(errs, s.ports()...)...)
}

// ports says what is wrong with the ports of the Service.
func (s Settings) ports() (errs []error) {
	low, high := 1, 65535
	if s.ServiceType == NodePort {
		low, high = 30000, 32767 // Kubernetes' own range
	}
	taken := map[int]string{}
	for _, p := range s.All() {
		if p.Port < low || p.Port > high {
			errs = append(errs, fmt.Errorf("%s is %d, not %d to %d", p.Setting, p.Port, low, high))
		}
		if other := taken[p.Port]; other != "" {
			errs = append(errs, fmt.Errorf("%s and %s are both %d", other, p.Setting, p.Port))
		}
		taken[p.Port] = p.Setting
	}
	return errs
}

// Port is one port of cloudcore.
type Port struct {
	Setting, Name, Protocol string
	Inside, Port            int  // cloudcore's own, and the one outside
	Open                    bool // the Service has it
}

// All are the five ports, also those that are not open.
func (s Settings) All() []Port {
	of := func(set, at int) int {
		switch {
		case set != 0:
			return set
		case s.ServiceType == LoadBalancer:
			return at
		}
		return at + nodePorts
	}
	return []Port{
		{"websocketPort", "cloudhub", "TCP", HubPort, of(s.WebsocketPort, HubPort), s.Websocket},
		{"quicPort", "cloudhub-quic", "UDP", QuicPort, of(s.QuicPort, QuicPort), s.Quic},
		{"httpsPort", "cloudhub-https", "TCP", CertificatesPort, of(s.HTTPSPort, CertificatesPort), s.HTTPS},
		{"cloudStreamPort", "cloudstream", "TCP", StreamPort, of(s.CloudStreamPort, StreamPort), s.CloudStream && s.ExposeCloudStream},
		{"cloudTunnelPort", "tunnelport", "TCP", TunnelPort, of(s.CloudTunnelPort, TunnelPort), s.CloudStream},
	}
}

// Open are the ports that a firewall between edge nodes and servers has to let through.
func (s Settings) Open() []Port {
	return slices.DeleteFunc(s.All(), func(p Port) bool { return !p.Open })
}

// Destination is where all requests for edge nodes are sent, as in 192.0.2.1:31003; "" for the cloudcore that has
// the tunnel.
func (s Settings) Destination() string {
	if s.DestinationAddress == "" {
		return ""
	}
	return net.JoinHostPort(s.DestinationAddress, strconv.Itoa(cmp.Or(s.DestinationPort, StreamPort+nodePorts)))
}

// Warnings are what is allowed and should be known, in sentences.
func (s Settings) Warnings() (list []string) {
	if s.HA && s.ServiceType == NodePort && len(s.AdvertiseAddress) == 1 {
		list = append(list, "ha does not cover the loss of the server with the address "+s.AdvertiseAddress[0]+
			": edge nodes dial that one alone. Use serviceType LoadBalancer, or give edge nodes several addresses")
	} else if s.HA && s.ServiceType == NodePort {
		list = append(list, "ha with NodePort covers a cloudcore that dies. When a server is lost, edge nodes that dial its address are cut off: "+
			"those are covered only by serviceType LoadBalancer, or where edge nodes are given several addresses")
	}
	if s.ExposeCloudStream {
		list = append(list, "exposeCloudStream: port "+strconv.Itoa(s.All()[3].Port)+" is open to the site. It asks for a certificate or a token of this cluster, as a kubelet does")
	}
	if !s.HTTPS {
		list = append(list, "https is false: no edge node can join")
	}
	if s.Quic {
		list = append(list, "quic is not tested with this release")
	}
	return list
}
