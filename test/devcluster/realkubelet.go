//go:build linux

package devcluster

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
)

// bootIDFile is where the kubelet reads its node's boot id, as it starts.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// kubeletConfig is a KubeletConfiguration: as k3s has it, but with the times of
// a cluster that is in a hurry.
func (c *Cluster) kubeletConfig(i int) map[string]any {
	gates := map[string]any{"KubeletCrashLoopBackOffMax": true}
	if c.virt != "" {
		gates[plainConditions] = false
	}
	config := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"address":    c.Nodes[i].IP,
		"port":       realKubeletPort,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": c.pki("ca.crt")},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"tlsCertFile":              c.pki(servesAs(c.hosts[i].seat) + ".crt"),
		"tlsPrivateKeyFile":        c.pki(servesAs(c.hosts[i].seat) + ".key"),
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               "/" + c.cgroups.name + "/" + c.Nodes[i].Name,
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"makeIPTablesUtilChains":   false,
		"resolvConf":               "",
		"clusterDomain":            "cluster.local",
		"clusterDNS":               []string{"10.43.0.10"}, // nobody is there; without it every pod is warned
		// Its own default is a directory of the machine's.
		"volumePluginDir": "/var/lib/kubelet/volumeplugins",
		"maxPods":         250,
		// All nodes have the one disk, and whatever fills it is not a pod's affair.
		"evictionHard":                map[string]any{"memory.available": "50Mi"},
		"imageGCHighThresholdPercent": 100,
		"nodeStatusUpdateFrequency":   "4s",
		"nodeLeaseDurationSeconds":    leaseSeconds,
		"containerLogMonitorInterval": "3s",
		// A container in a restart loop is back after ten seconds, not after minutes.
		"featureGates":     gates,
		"crashLoopBackOff": map[string]any{"maxContainerRestartPeriod": "2s"},
	}
	if c.logMaxSize != "" {
		config["containerLogMaxSize"] = c.logMaxSize
	}
	return config
}

func (c *Cluster) realKubeletArgs(i int) []string {
	n := c.Nodes[i]
	return []string{
		"kubelet",
		"--config=" + c.hostFile(i, "kubelet.yaml"),
		"--kubeconfig=" + c.kubeconfigPath("kubelet"+c.hosts[i].seat.suffix),
		"--hostname-override=" + n.Name,
		"--node-ip=" + n.IP,
	}
}

// handlerArgs are for a kwok that plays the custom resources of a node, and has
// no stage for its pods and no lease.
func (c *Cluster) handlerArgs(i int) []string {
	return []string{
		"--kubeconfig=" + c.kubeconfigPath("admin"+c.hosts[i].seat.suffix),
		"--manage-all-nodes=false",
		"--manage-single-node=" + c.Nodes[i].Name,
		"--node-lease-duration-seconds=0",
		"--server-address=127.0.0.1:0",
		"--config=" + c.stagesPath(i),
	}
}

// servesAs names the files of what a real kubelet proves itself with.
func servesAs(at seat) string { return "kubelet-serving" + at.suffix }

// writeKubeletCredentials makes the kubelet of a real node somebody, as client
// and as server.
func (c *Cluster) writeKubeletCredentials(at seat) error {
	served, err := c.ca.issue(kubeletTemplate(at.name, at.ip))
	if err != nil {
		return err
	}
	if err := served.write(c.Dir, servesAs(at)); err != nil {
		return err
	}
	user := "kubelet" + at.suffix
	made, err := c.ca.issue(clientTemplate("system:node:"+at.name, "system:nodes"))
	if err != nil {
		return err
	}
	if err := made.write(c.Dir, user); err != nil {
		return err
	}
	return writePEM(c.kubeconfigPath(user), c.userKubeconfig(user, at.server()))
}

// KubeletCertificate is for somebody who plays the kubelet of node i.
func (c *Cluster) KubeletCertificate(i int) (tls.Certificate, error) {
	made, err := c.ca.issue(kubeletTemplate(c.Nodes[i].Name, c.Nodes[i].IP))
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(made.cert, made.key)
}

// kubeletTemplate names what k3s has it name, and no other node.
func kubeletTemplate(node, ip string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: node},
		DNSNames:    []string{node, "localhost"},
		IPAddresses: []net.IP{net.ParseIP("127.0.0.1"), net.ParseIP(ip)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}
