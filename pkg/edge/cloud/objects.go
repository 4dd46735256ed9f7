package cloud

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/zedkube/zedkube/pkg/edge/join"
	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/pkg/edge/settings"
)

// KubeEdge's own files, unchanged; crds/README.md says where they are from.
//
//go:embed crds/*.yaml
var crdFiles embed.FS

// Definitions are KubeEdge's CustomResourceDefinitions.
func Definitions() ([]object.Object, error) {
	names, err := fs.Glob(crdFiles, "crds/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("read CRDs: %w", err)
	}
	var list []object.Object
	for _, name := range names {
		text, err := fs.ReadFile(crdFiles, name)
		if err != nil {
			return nil, fmt.Errorf("read CRD: %w", err)
		}
		var o object.Object
		if err := yaml.Unmarshal(text, &o); err != nil {
			return nil, fmt.Errorf("read CRD %s: %w", name, err)
		}
		meta, is := o["metadata"].(m)
		if !is || o["kind"] != object.CRD.Name {
			return nil, fmt.Errorf("read CRD %s: %w", name, errors.New("it is none"))
		}
		delete(o, "status")
		delete(meta, "creationTimestamp")
		meta["labels"] = m{managedLabel: Controller}
		list = append(list, o)
	}
	return list, nil
}

// wish is an object that shall be, as it shall be.
type wish struct {
	ref  object.Ref
	is   object.Object
	seen string // the version that there is; "" for none
}

// wishes are all objects but the stream's Secret and the Deployment, in the order in which they are made.
func wishes(s settings.Settings, replicas int, config string, crds []object.Object, names []string) []wish {
	list := []wish{{ref: refNamespace, is: labelled(refNamespace)}}
	for _, o := range crds {
		list = append(list, wish{ref: o.Ref(object.CRD), is: o})
	}
	subject := m{"kind": "ServiceAccount", "name": Name, "namespace": Where}
	list = append(list,
		wish{ref: refAccount, is: labelled(refAccount)},
		wish{ref: refPolicy, is: policy()},
		wish{ref: refPolicyBinding, is: policyBinding()},
		wish{ref: RefRole, is: labelled(RefRole).With(m{"rules": append(cloudcoreRules(), impersonation(names)...)})},
		wish{ref: refBinding, is: labelled(refBinding).With(m{"roleRef": roleRef(object.ClusterRole, Name), "subjects": l{subject}})},
		wish{ref: refConfig, is: labelled(refConfig).With(m{"data": m{"cloudcore.yaml": config}})},
		wish{ref: refService, is: service(s)},
	)
	if s.CloudStream {
		list = append(list, wish{ref: refStream, is: streamService()}, wish{ref: refPath, is: path(s)})
	}
	if replicas > 1 {
		list = append(list, wish{ref: refBudget, is: budget()})
	}
	return list
}

func roleRef(k object.Kind, name string) m {
	return m{"apiGroup": k.Group, "kind": k.Name, "name": name}
}

// servers are the cluster addresses of the servers, sorted, with that of the tie-breaker or without.
func servers(seen map[object.Ref]object.Object, withTieBreaker bool) (addresses []string) {
	for r, o := range seen {
		if r.Kind != object.Node || isEdge(o) || !o.HasLabel(serverRole) {
			continue
		}
		if !withTieBreaker && o.Text("metadata", "labels", tieBreaker) == "true" {
			continue
		}
		if a := ownAddress(o); a != "" {
			addresses = append(addresses, a)
		}
	}
	slices.Sort(addresses)
	return addresses
}

// isEdge tells a Node of KubeEdge from a member, by the rule of kubeapi/access (docs/decisions/0030-edge-nodes-are-no-members.md).
func isEdge(node object.Object) bool {
	edge := node.HasLabel(edgeRole) || strings.Contains(node.Text("status", "nodeInfo", "kubeletVersion"), kubeEdge)
	return edge && !slices.ContainsFunc(join.MemberRoles(), node.HasLabel)
}

// MayLeave reports that a Node is an edge node, or that of a device which was asked to join and does not say that it is one:
// it has the address that join gave it, which no member has.
func MayLeave(node object.Object, asked join.Asked) bool {
	given := asked.Address != "" && !asked.TakenOver && ownAddress(node) == asked.Address
	return isEdge(node) || given && !slices.ContainsFunc(join.MemberRoles(), node.HasLabel)
}

// Edge is the edge node of that name or address, its address, and since when it is not Ready; zero while it is.
func Edge(seen map[object.Ref]object.Object, nameOrAddress string) (name, address string, since time.Time, known bool) {
	for r, o := range seen {
		if r.Kind != object.Node || !isEdge(o) {
			continue
		}
		if address = ownAddress(o); r.Name != nameOrAddress && (address == "" || address != nameOrAddress) {
			continue
		}
		return r.Name, address, notReady(o), true
	}
	return "", "", since, false
}

// notReady is since when a node is not Ready; zero while it is.
func notReady(node object.Object) (since time.Time) {
	for _, c := range node.List("status", "conditions") {
		if c.Text("type") != "Ready" || c.Text("status") == "True" {
			continue
		}
		if since, _ = time.Parse(time.RFC3339, c.Text("lastTransitionTime")); since.IsZero() {
			since = created(node)
		}
	}
	return since
}

// ownAddress is the address of a node in the cluster; "" for none.
func ownAddress(node object.Object) string {
	for _, a := range node.List("status", "addresses") {
		if a.Text("type") == "InternalIP" {
			return a.Text("address")
		}
	}
	return ""
}

// PathViews are all that the path on a server keeps in sight.
func PathViews() []View { return []View{{Ref: RefSettings}, {Ref: refTunnels}} }

// Tunnels are the settings, and the ports of KubeEdge's record by the addresses of cloudcores; none where logs and
// metrics of edge nodes are switched off.
func Tunnels(seen map[object.Ref]object.Object) (s settings.Settings, ports map[string]int, err error) {
	s, on, err := read(seen)
	if err != nil || !on || !s.CloudStream {
		return s, nil, err
	}
	record, err := tunnelsOf(seen[refTunnels])
	if err != nil {
		return s, nil, fmt.Errorf("read %s: %w", refTunnels, err)
	}
	return s, record.Ports, nil
}

// advertised are the addresses that edge nodes dial, and why there are none.
func advertised(s settings.Settings, seen map[object.Ref]object.Object) (addresses []string, why string) {
	switch {
	case len(s.AdvertiseAddress) > 0:
		return s.AdvertiseAddress, ""
	case s.ServiceType == settings.LoadBalancer:
		for _, i := range seen[refService].List("status", "loadBalancer", "ingress") {
			if ip := i.Text("ip"); ip != "" {
				addresses = append(addresses, ip)
			}
		}
		if len(addresses) == 0 {
			return nil, "Service kubeedge/cloudcore waits for an address of a load balancer"
		}
		return addresses, ""
	}
	if addresses = servers(seen, true); len(addresses) == 0 {
		return nil, "no server has a cluster address"
	}
	return addresses, ""
}
