//go:build linux

package devcluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// snapshotter copies the files of an image for each container: ours have one,
// and an overlay is not to be had everywhere.
const snapshotter = "native"

// realKubeletPort is where kubelets listen everywhere.
const realKubeletPort = 10250

// tunables are what the kubelet would otherwise set in the machine's kernel. It
// sees them set, and leaves the kernel alone.
var tunables = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// furnish writes all files of real node i. What is on its disk stays.
func (c *Cluster) furnish(i int) error {
	kubelet, err := json.MarshalIndent(c.kubeletConfig(i), "", "  ")
	if err != nil {
		return err
	}
	files := map[string]string{"kubelet.yaml": string(kubelet), "over" + bootIDFile: c.bootID(i) + "\n", "over/etc/machine-id": machineID(c.Nodes[i]) + "\n"}
	if c.virt != "" {
		// It cannot be read, and yet says that the kubelet is not new: a new one takes
		// away the devices that the node was registered with.
		files["disk/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"] = "{}"
	}
	return c.furnishHost(c.hosts[i], c.Nodes[i].IP, files)
}

// furnishHost writes what each host with a containerd has, and more files.
func (c *Cluster) furnishHost(h *host, ip string, files map[string]string) error {
	network, err := json.MarshalIndent(podNetwork(h.number), "", "  ")
	if err != nil {
		return err
	}
	if err := c.linkPlugins(h); err != nil {
		return err
	}
	files["containerd.toml"] = containerdConfig(c.fileOf(h, pluginsDir), c.fileOf(h, "cni"), ip)
	files["cni/10-bridge.conflist"] = string(network)
	for _, dir := range []string{"lib/containerd", "log", "tmp"} {
		files["disk/var/"+dir] = ""
	}
	for name, value := range tunables {
		files["over/proc/sys/"+name] = value + "\n"
	}
	for name, content := range files {
		if err := c.furnishFile(h, name, content); err != nil {
			return err
		}
	}
	if err := os.Symlink("/run", c.fileOf(h, "disk/var/run")); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// furnishFile writes a file; without content it makes a directory. What is to
// replace a file that the machine does not have is not needed.
func (c *Cluster) furnishFile(h *host, name, content string) error {
	path := c.fileOf(h, name)
	if content == "" {
		return os.MkdirAll(path, 0o755)
	}
	if replaced, ok := strings.CutPrefix(name, "over"); ok {
		if _, err := os.Stat(replaced); err != nil {
			return nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

func containerdConfig(plugins, networks, ip string) string {
	return fmt.Sprintf(`version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = %q
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  stream_server_address = %q
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = %q
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
`, containerdSocket, pauseImage, ip, snapshotter, plugins, networks)
}

// podNetwork gives pods addresses of a network of the node's own, which the other
// nodes know a way to. Nothing is translated, so it takes no iptables.
func podNetwork(number int) any {
	return map[string]any{
		"cniVersion": "0.4.0",
		"name":       "pods",
		"plugins": []any{map[string]any{
			"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false,
			"ipam": map[string]any{
				"type":    "host-local",
				"ranges":  []any{[]any{map[string]any{"subnet": podSubnet(number)}}},
				"routes":  []any{map[string]any{"dst": "0.0.0.0/0"}},
				"dataDir": "/run/cni-addresses", // those of before the boot are free again
			},
		}},
	}
}

// pluginsDir is where node i has its network plug-ins: links, unless a test put
// another program there.
const pluginsDir = "plugins"

func (c *Cluster) linkPlugins(h *host) error {
	from, err := cniPlugins()
	if err != nil {
		return err
	}
	programs, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.fileOf(h, pluginsDir), 0o755); err != nil {
		return err
	}
	for _, p := range programs {
		err := os.Symlink(filepath.Join(from, p.Name()), filepath.Join(c.fileOf(h, pluginsDir), p.Name()))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// BeforeNetwork has a shell script run on real node i before the plug-in that
// makes the interface of a pod, with the environment of that plug-in. A script that
// exits has to print the error, and the pod gets no network; else the plug-in goes on.
func (c *Cluster) BeforeNetwork(i int, script string) error {
	plugins, err := cniPlugins()
	if err != nil {
		return err
	}
	path := filepath.Join(c.hostFile(i, pluginsDir), "bridge")
	text := "#!/bin/sh\n" + script + "\nexec " + filepath.Join(plugins, "bridge") + "\n"
	if err := os.WriteFile(path+".new", []byte(text), 0o755); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// podSubnet is that of the pods on the host of that number on the wire.
func podSubnet(number int) string { return fmt.Sprintf("10.42.%d.0/24", number) }

func machineID(n Node) string { return strings.ReplaceAll(n.UUID, "-", "") }
