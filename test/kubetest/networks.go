package kubetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// NAD is an attachment as the cluster holds it, whoever made it.
type NAD struct {
	Ours   bool              // it carries zedkube's label
	Other  bool              // it does not say what zedkube writes
	Owners map[string]string // UIDs by node name; nil where it does not say
}

// SetNAD puts an attachment of the port there, nil removes it.
func (c *Cluster) SetNAD(ifname string, nad *NAD) {
	c.world.Lock()
	defer c.world.Unlock()
	if c.held.nads == nil {
		c.held.nads = map[string]NAD{}
	}
	delete(c.held.nads, ifname)
	if nad != nil {
		c.held.nads[ifname] = *nad
	}
}

// NAD returns the attachment of the port.
func (c *Cluster) NAD(ifname string) (NAD, bool) {
	c.world.Lock()
	defer c.world.Unlock()
	nad, ok := c.held.nads[ifname]
	nad.Owners = maps.Clone(nad.Owners)
	return nad, ok
}

// NADs lists those with zedkube's label by interface. Verb nads.
func (c *Cluster) NADs(ctx context.Context) ([]types.NAD, error) {
	if err := c.enter(ctx, "nads", ""); err != nil {
		return nil, err
	}
	c.world.Lock()
	defer c.world.Unlock()
	var out []types.NAD
	for _, ifname := range slices.Sorted(maps.Keys(c.held.nads)) {
		if nad := c.held.nads[ifname]; nad.Ours {
			out = append(out, types.NAD{Interface: ifname, Owners: maps.Clone(nad.Owners), Unowned: nad.Owners == nil, Altered: nad.Other})
		}
	}
	return out, nil
}

// EnsureNAD makes the attachment or puts it right, and adds the owner. One that
// is not zedkube's and says something else is left alone. Verb ensurenad.
func (c *Cluster) EnsureNAD(ctx context.Context, ifname string, owner types.Node) error {
	return c.write(ctx, "ensurenad", ifname, func() error {
		nad := c.held.nads[ifname]
		if !nad.Ours && nad.Other {
			return fmt.Errorf("ensure network attachment of %s: %w", ifname, errors.New("not zedkube's"))
		}
		nad = NAD{Ours: true, Owners: maps.Clone(nad.Owners)}
		if nad.Owners == nil {
			nad.Owners = map[string]string{}
		}
		nad.Owners[owner.Name] = owner.UID
		if c.held.nads == nil {
			c.held.nads = map[string]NAD{}
		}
		c.held.nads[ifname] = nad
		return nil
	})
}

// ReleaseNAD takes the owners off the attachment, and removes it when none is
// left and it is not to be kept. Verb releasenad.
func (c *Cluster) ReleaseNAD(ctx context.Context, ifname string, owners map[string]string, keep bool) error {
	return c.write(ctx, "releasenad", ifname, func() error {
		nad, ok := c.held.nads[ifname]
		if !ok || !nad.Ours || nad.Owners == nil {
			return nil
		}
		nad.Owners = maps.Clone(nad.Owners)
		maps.DeleteFunc(nad.Owners, func(node, uid string) bool {
			which, goes := owners[node]
			return goes && (which == "" || which == uid)
		})
		c.held.nads[ifname] = nad
		if len(nad.Owners) == 0 && !keep {
			delete(c.held.nads, ifname)
		}
		return nil
	})
}

// sriov is what the cluster holds for the SR-IOV device plug-in.
type sriov struct {
	config   types.SRIOVConfig
	plugins  map[string]types.SRIOVPlugin  // by node
	networks map[string]types.SRIOVNetwork // by name
	serial   int
}

// EditSRIOV has somebody else change the ConfigMap: edit gets its keys, and
// returns what it is to hold from now on, nil for no ConfigMap.
func (c *Cluster) EditSRIOV(edit func(data map[string]string) map[string]string) {
	c.world.Lock()
	defer c.world.Unlock()
	s := &c.held.sriov
	data := edit(maps.Clone(s.config.Data))
	if data == nil {
		s.config = types.SRIOVConfig{}
		return
	}
	s.write(data)
}

func (s *sriov) write(data map[string]string) {
	s.serial++
	s.config = types.SRIOVConfig{Version: strconv.Itoa(s.serial), Data: data}
}

// StartPlugin has the node's plug-in start anew, in a pod of another name.
func (c *Cluster) StartPlugin(node string) {
	c.world.Lock()
	defer c.world.Unlock()
	c.startPlugin(node)
}

func (c *Cluster) startPlugin(node string) {
	s := &c.held.sriov
	s.serial++
	pod := types.SRIOVPlugin{Name: fmt.Sprintf("sriovdp-%d", s.serial), UID: fmt.Sprintf("plugin-%d", s.serial), Created: time.Now()}
	if s.plugins == nil {
		s.plugins = map[string]types.SRIOVPlugin{}
	}
	if old, ok := s.plugins[node]; ok {
		_ = c.Pods.Unpublish("kube-system/" + old.Name)
	}
	s.plugins[node] = pod
	_ = c.Pods.Publish("kube-system/"+pod.Name, types.Pod{
		Namespace: types.NamespaceSystem, Name: pod.Name, UID: pod.UID, NodeName: node, App: "sriovdp", Created: pod.Created, Phase: types.PodRunning,
	})
}

// Plugin is the plug-in of the node.
func (c *Cluster) Plugin(node string) (types.SRIOVPlugin, bool) {
	c.world.Lock()
	defer c.world.Unlock()
	pod, ok := c.held.sriov.plugins[node]
	return pod, ok
}

// SetNetwork puts an attachment there that asks for the resource.
func (c *Cluster) SetNetwork(name, resource string) {
	c.world.Lock()
	defer c.world.Unlock()
	s := &c.held.sriov
	s.serial++
	if s.networks == nil {
		s.networks = map[string]types.SRIOVNetwork{}
	}
	s.networks[name] = types.SRIOVNetwork{Name: name, UID: fmt.Sprintf("network-%d", s.serial), Version: strconv.Itoa(s.serial), Resource: resource}
}

// Networks are the attachments by name.
func (c *Cluster) Networks() map[string]types.SRIOVNetwork {
	c.world.Lock()
	defer c.world.Unlock()
	return maps.Clone(c.held.sriov.networks)
}

// SRIOVConfig returns the ConfigMap. Verb sriovconfig.
func (c *Cluster) SRIOVConfig(ctx context.Context) (types.SRIOVConfig, error) {
	if err := c.enter(ctx, "sriovconfig", ""); err != nil {
		return types.SRIOVConfig{}, err
	}
	return c.SRIOV(), nil
}

// SRIOV is the ConfigMap as it is, whatever fails.
func (c *Cluster) SRIOV() types.SRIOVConfig {
	c.world.Lock()
	defer c.world.Unlock()
	config := c.held.sriov.config
	config.Data = maps.Clone(config.Data)
	return config
}

// SetSRIOVConfig changes the keys that are named, unless somebody changed the
// ConfigMap since that version. Verb setsriovconfig.
func (c *Cluster) SetSRIOVConfig(ctx context.Context, change types.SRIOVConfig) error {
	return c.write(ctx, "setsriovconfig", "", func() error {
		s := &c.held.sriov
		if change.Version != s.config.Version {
			return fmt.Errorf("set the ConfigMap: %w", types.ErrConflict)
		}
		data := maps.Clone(s.config.Data)
		if data == nil {
			data = map[string]string{}
		}
		for key, text := range change.Data {
			delete(data, key)
			if text != "" {
				data[key] = text
			}
		}
		if !maps.Equal(data, s.config.Data) {
			s.write(data)
		}
		return nil
	})
}

// SRIOVPlugins returns the plug-in's pod on the node. Verb sriovplugins.
func (c *Cluster) SRIOVPlugins(ctx context.Context, node string) ([]types.SRIOVPlugin, error) {
	if err := c.enter(ctx, "sriovplugins", node); err != nil {
		return nil, err
	}
	pod, ok := c.Plugin(node)
	if !ok {
		return nil, nil
	}
	return []types.SRIOVPlugin{pod}, nil
}

// pluginOn is the node of that very pod.
func (s *sriov) pluginOn(pod types.SRIOVPlugin) (string, bool) {
	for node, p := range s.plugins {
		if p.UID == pod.UID {
			return node, true
		}
	}
	return "", false
}

// MarkSRIOVPlugin writes Part on the pod. Verb markplugin.
func (c *Cluster) MarkSRIOVPlugin(ctx context.Context, pod types.SRIOVPlugin) error {
	return c.write(ctx, "markplugin", pod.UID, func() error {
		s := &c.held.sriov
		node, ok := s.pluginOn(pod)
		if !ok {
			return fmt.Errorf("mark pod %s: not found", pod.Name)
		}
		now := s.plugins[node]
		now.Part = pod.Part
		s.plugins[node] = now
		return nil
	})
}

// RestartSRIOVPlugin has another pod take this one's place. Verb restartplugin.
func (c *Cluster) RestartSRIOVPlugin(ctx context.Context, pod types.SRIOVPlugin) error {
	return c.write(ctx, "restartplugin", pod.UID, func() error {
		if node, ok := c.held.sriov.pluginOn(pod); ok {
			c.startPlugin(node)
		}
		return nil
	})
}

// SRIOVNetworks lists the attachments by name. Verb networks.
func (c *Cluster) SRIOVNetworks(ctx context.Context) ([]types.SRIOVNetwork, error) {
	if err := c.enter(ctx, "networks", ""); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(c.Networks()), func(a, b types.SRIOVNetwork) int { return strings.Compare(a.Name, b.Name) }), nil
}

// DeleteSRIOVNetwork removes the attachment of that version. Verb deletenetwork.
func (c *Cluster) DeleteSRIOVNetwork(ctx context.Context, network types.SRIOVNetwork) error {
	return c.write(ctx, "deletenetwork", network.Name, func() error {
		s := &c.held.sriov
		now, ok := s.networks[network.Name]
		if ok && now != network {
			return fmt.Errorf("delete network attachment %s: %w", network.Name, types.ErrConflict)
		}
		delete(s.networks, network.Name)
		return nil
	})
}
