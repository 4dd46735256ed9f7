package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

const (
	// kubeletWithin bounds one question to a kubelet, its whole answer included:
	// a busy one of hundreds of containers takes seconds.
	kubeletWithin = 20 * time.Second
	// summarySize and cadvisorSize bound its answers: those of a node of 250 pods
	// have some 2 and 15 MB.
	summarySize  = 16 << 20
	cadvisorSize = 64 << 20
)

// KubeletStats asks a node's kubelet at the node's own address, whether the API
// server answers or not, and says nothing of that one.
func (c *Client) KubeletStats(ctx context.Context, node types.Node) (types.KubeletStats, error) {
	var stats types.KubeletStats
	err := c.kubelet(ctx, node, "/stats/summary", summarySize, func(body io.Reader) (err error) {
		stats, err = decodeSummary(body, node.Name, time.Now())
		return err
	})
	return stats, err
}

// KubeletContainers asks the same kubelet for what KubeletStats leaves out of
// containers; of a pod it has the network.
func (c *Client) KubeletContainers(ctx context.Context, node types.Node) (map[types.ContainerID]types.ContainerSample, error) {
	var samples map[types.ContainerID]types.ContainerSample
	err := c.kubelet(ctx, node, "/metrics/cadvisor", cadvisorSize, func(body io.Reader) (err error) {
		samples, err = decodeCadvisor(body, time.Now())
		return err
	})
	return samples, err
}

// NodeStats asks the kubelet of another node for CPU and memory only.
func (c *Client) NodeStats(ctx context.Context, node types.Node) (types.KubeletStats, error) {
	var stats types.KubeletStats
	err := c.another(ctx, node, "/stats/summary?only_cpu_and_memory=true", func(body io.Reader) (err error) {
		stats, err = decodeSummary(body, node.Name, time.Now())
		return err
	})
	return stats, err
}

// EdgeStats asks the kubelet of a node of KubeEdge, all that the kubelet says. It is asked as the API server asks it, at
// the address and the port of its Node, where it proves to have that address: its certificate names no node. What it
// answers is of the node of that name, or it is an error.
func (c *Client) EdgeStats(ctx context.Context, node types.Node) (types.KubeletStats, error) {
	var stats types.KubeletStats
	err := c.answer(ctx, node, "/stats/summary", openEdge, summarySize, func(body io.Reader) (err error) {
		stats, err = decodeSummary(body, node.Name, time.Now())
		return err
	})
	if err != nil {
		return stats, fmt.Errorf("query the kubelet of edge node %s: %w", node.Name, err)
	}
	return stats, nil
}

// kubelet lets take read an answer of this node's kubelet.
func (c *Client) kubelet(ctx context.Context, node types.Node, path string, size int64, take func(io.Reader) error) error {
	if err := c.answer(ctx, node, path, openOwn, size, take); err != nil {
		return fmt.Errorf("query this node's kubelet for %s: %w", path, err)
	}
	return nil
}

// another lets take read an answer of another node's kubelet. It is asked directly:
// to ask through the API server takes nodes/proxy, with which one can also execute
// commands in every pod.
func (c *Client) another(ctx context.Context, node types.Node, path string, take func(io.Reader) error) error {
	if err := c.answer(ctx, node, path, openOther, summarySize, take); err != nil {
		return fmt.Errorf("query the kubelet of node %s for %s: %w", node.Name, path, err)
	}
	return nil
}

func (c *Client) answer(ctx context.Context, node types.Node, path string, open opener, size int64, take func(io.Reader) error) error {
	conn, done, err := c.Use()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, kubeletWithin)
	defer cancel()
	body, err := open(ctx, conn.Cfg, node, path)
	if err != nil {
		return err
	}
	defer body.Close()
	return take(&capped{body, size})
}

// opener asks the kubelet of a node of one kind.
type opener func(ctx context.Context, cfg *rest.Config, node types.Node, path string) (io.ReadCloser, error)

func openOwn(ctx context.Context, cfg *rest.Config, node types.Node, path string) (io.ReadCloser, error) {
	return open(ctx, cfg, node, path, true)
}

func openOther(ctx context.Context, cfg *rest.Config, node types.Node, path string) (io.ReadCloser, error) {
	return open(ctx, cfg, node, path, false)
}

func openEdge(ctx context.Context, cfg *rest.Config, node types.Node, path string) (io.ReadCloser, error) {
	ip, err := netip.ParseAddr(node.InternalIP)
	if err != nil || node.KubeletPort == 0 {
		return nil, errors.New("its Node has no internal address or no port of a kubelet")
	}
	secure, err := kubeletTLS(cfg)
	if err != nil {
		return nil, err
	}
	return get(ctx, cfg, secure, "https://"+net.JoinHostPort(ip.String(), strconv.Itoa(node.KubeletPort))+path, false)
}

// open asks the kubelet of a node, which proves to be secure by the node's name, or
// by its address where the node is the own one: its Node is what this device says of
// itself. The Node of another one may name anybody's address.
func open(ctx context.Context, cfg *rest.Config, node types.Node, path string, own bool) (io.ReadCloser, error) {
	ip, err := netip.ParseAddr(node.InternalIP)
	if err != nil {
		return nil, fmt.Errorf("node %s has no internal address", node.Name)
	}
	secure, err := kubeletTLS(cfg)
	if err != nil {
		return nil, err
	}
	if node.Name == "" {
		return nil, ErrNoNode
	}
	url := "https://" + net.JoinHostPort(ip.String(), strconv.Itoa(types.PortKubelet)) + path
	if own {
		body, err := get(ctx, cfg, secure, url, true)
		var otherName x509.HostnameError
		if !errors.As(err, &otherName) {
			return body, err
		}
		// Its certificate does not name the address, which the node may have got later.
	}
	secure.ServerName = node.Name
	return get(ctx, cfg, secure, url, own)
}

// kubeletTLS trusts the authority of the kubeconfig only, and shows its certificate.
func kubeletTLS(cfg *rest.Config) (*tls.Config, error) {
	config, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("set up certificates of kubeconfig: %w", err)
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config.ServerName = ""                                    // that of the API server
	config.InsecureSkipVerify, config.NextProtos = false, nil // whatever the kubeconfig allows itself
	return config, nil
}

// get asks on a connection of its own, which costs less than to keep one for a
// question a minute. The server proves to be secure.ServerName, or the host of the URL
// where that is "". Another node's is shown no token: it could use it, unlike a
// certificate, in our place.
func get(ctx context.Context, cfg *rest.Config, secure *tls.Config, url string, own bool) (io.ReadCloser, error) {
	var rt http.RoundTripper = &http.Transport{
		DialContext: cfg.Dial, TLSClientConfig: secure.Clone(), DisableKeepAlives: true,
		DisableCompression: true, // and what comes compressed all the same is not taken
		ReadBufferSize:     32 << 10,
	}
	if own {
		var err error
		if rt, err = rest.HTTPWrappersForConfig(cfg, rt); err != nil {
			return nil, fmt.Errorf("set up credentials of kubeconfig: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "*/*") // a log is no object
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := (&http.Client{Transport: rt, CheckRedirect: stay}).Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(codeError(resp.StatusCode), resp.Body.Close())
	}
	return resp.Body, nil
}

// codeError is the code of an answer that is none.
type codeError int

func (e codeError) Error() string { return fmt.Sprintf("HTTP %d %s", int(e), http.StatusText(int(e))) }

// capped is an answer that may not have more than so many bytes.
type capped struct {
	io.Reader
	left int64
}

// ErrLongAnswer is returned for an answer of a kubelet beyond its limit.
var ErrLongAnswer = errors.New("the answer is too long")

func (c *capped) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, ErrLongAnswer
	}
	return n, err
}

// Client has the verbs that kubelets answer.
type Client struct{ *access.Session }

// ErrNoNode is returned where the name of a node is missing.
var ErrNoNode = errors.New("no node is named")

// RunningPods returns the pods that the node's container runtime runs, as its
// kubelet says, whatever the API server knows of them. It is everything or an
// error.
func (c *Client) RunningPods(ctx context.Context, node types.Node) (pods []types.PodRef, err error) {
	err = c.another(ctx, node, "/runningpods/", func(body io.Reader) error {
		pods, err = decodePods(body)
		return err
	})
	if err != nil {
		return nil, err
	}
	return pods, nil
}

func decodePods(body io.Reader) (pods []types.PodRef, err error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var list struct {
		Kind  string
		Items []struct {
			Metadata struct{ Namespace, Name, UID string }
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	if list.Kind != "PodList" {
		return nil, access.ErrOther
	}
	for _, p := range list.Items {
		if p.Metadata.Name == "" || p.Metadata.UID == "" {
			return nil, access.ErrNoName
		}
		pods = append(pods, types.PodRef(p.Metadata))
	}
	return pods, nil
}
