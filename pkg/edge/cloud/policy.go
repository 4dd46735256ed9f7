package cloud

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/zedkube/zedkube/pkg/edge/join"
	"github.com/zedkube/zedkube/pkg/edge/object"
)

// The users by which cloudcore writes Nodes: itself, and the edge node that it does it for.
const (
	cloudcoreUser = "system:serviceaccount:" + Where + ":" + Name
	nodeUser      = "system:node:"
	nodeGroup     = "system:nodes"

	agentPrefix = "zedkube.github.io/" // of what the agents of members write of themselves at their Nodes
)

var (
	refPolicy        = object.Ref{Kind: object.Policy, Name: Nodes}
	refPolicyBinding = object.Ref{Kind: object.PolicyBinding, Name: Nodes}
)

// impersonation is by whom cloudcore may write: by edge nodes that were asked to join, and by nobody else
// (docs/decisions/0050-names-of-edge-nodes.md). A rule without names would be for all.
func impersonation(names []string) l {
	if len(names) == 0 {
		return l{}
	}
	var users []string
	for _, name := range names {
		users = append(users, nodeUser+name)
	}
	return l{named("", words("users"), words("impersonate"), users...), named("", words("groups"), words("impersonate"), nodeGroup)}
}

// Admits reports that cloudcore's ClusterRole lets it write for an edge node of this name. The role is nil for none.
func Admits(role object.Object, name string) bool {
	return slices.ContainsFunc(role.List("rules"), func(rule object.Object) bool {
		users, _ := rule["resourceNames"].([]any)
		return slices.Contains(users, any(nodeUser+name))
	})
}

// grantedRules are what the controller has so that it can grant cloudcore its own: the names are not known beforehand.
func grantedRules() l {
	return append(cloudcoreRules(), rule("", words("users"), words("impersonate")), named("", words("groups"), words("impersonate"), nodeGroup))
}

// policy bounds what those users may write of Nodes. Other users, such as the kubelets of members, it does not concern,
// and without the record it does not apply: the roles still do.
func policy() object.Object {
	labels, _ := json.Marshal(join.MemberLabels()) // a list of texts, which CEL writes the same way
	check := func(expression, message string) m { return m{"expression": expression, "message": message} }
	return labelled(refPolicy).With(m{"spec": m{
		"failurePolicy": "Fail",
		"paramKind":     m{"apiVersion": "v1", "kind": "ConfigMap"},
		"matchConstraints": m{"resourceRules": l{m{
			"apiGroups": l{""}, "apiVersions": l{"v1"}, "operations": l{"CREATE", "UPDATE"}, "resources": l{"nodes", "nodes/status"},
		}}},
		"matchConditions": l{m{"name": "of-edge-nodes", "expression": fmt.Sprintf(
			"request.userInfo.username == %q || (request.userInfo.username.startsWith(%q) && has(params.data) && request.userInfo.username.substring(%d) in params.data)",
			cloudcoreUser, nodeUser, len(nodeUser))}},
		"variables": l{
			m{"name": "cloudcore", "expression": fmt.Sprintf("request.userInfo.username == %q", cloudcoreUser)},
			m{"name": "asked", "expression": "has(params.data) && object.metadata.name in params.data ? params.data[object.metadata.name] : ''"},
			m{"name": "labels", "expression": "has(object.metadata.labels) ? object.metadata.labels : {}"},
			m{"name": "had", "expression": "oldObject != null && has(oldObject.metadata.labels) ? oldObject.metadata.labels : {}"},
			m{"name": "annotations", "expression": "has(object.metadata.annotations) ? object.metadata.annotations : {}"},
			m{"name": "annotated", "expression": "oldObject != null && has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}"},
			m{"name": "kubelet", "expression": "has(object.status) && has(object.status.nodeInfo) ? object.status.nodeInfo.kubeletVersion : ''"},
			m{"name": "addresses", "expression": "has(object.status) && has(object.status.addresses) ? object.status.addresses.filter(a, a.type == 'InternalIP').map(a, a.address) : []"},
		},
		"validations": l{
			check("variables.asked != ''", "no edge node was asked to join under this name: zedkube-edge join NAME"),
			check(fmt.Sprintf("variables.cloudcore || request.userInfo.username == %q + object.metadata.name", nodeUser), "an edge node writes its own Node only"),
			check(fmt.Sprintf("%s.all(k, !(k in variables.labels) || (k in variables.had && !variables.cloudcore))", labels), "an edge node has no label of a member of the cluster"),
			check(fmt.Sprintf("!variables.cloudcore || %s.all(k, !(k in variables.had))", labels), "this Node is a member of the cluster, and no edge node"),
			// edgecore registers with the version; the label follows by cloudcore.
			check(fmt.Sprintf("%q in variables.labels || variables.kubelet.contains(%q)", edgeRole, kubeEdge),
				"an edge node says that it is one, by its label "+edgeRole+" or the version of its kubelet"),
			check(fmt.Sprintf("variables.annotations.all(k, !k.startsWith(%q) || (k in variables.annotated && variables.annotated[k] == variables.annotations[k]))", agentPrefix),
				"an edge node writes no annotation of the agent of a member"),
			check(`variables.asked.contains('"takenOver":true') || variables.addresses.all(a, variables.asked.contains('"address":"' + a + '"'))`,
				"an edge node has the address only that it was given by zedkube-edge join"),
		},
	}})
}

func policyBinding() object.Object {
	return labelled(refPolicyBinding).With(m{"spec": m{
		"policyName": Nodes, "validationActions": l{"Deny"},
		// Not Deny: without the record the kubelets of members could not write either.
		"paramRef": m{"name": Nodes, "namespace": Where, "parameterNotFoundAction": "Allow"},
	}})
}
