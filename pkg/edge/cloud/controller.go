package cloud

import (
	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/pkg/edge/settings"
)

// Lease is the one that the controller's replicas run for.
const Lease = Controller

// Granted is the ClusterRole whose permissions the controller itself never uses: Kubernetes lets nobody grant what
// he does not have, and the controller keeps cloudcore's role.
const Granted = Controller + "-grants"

// Made are the objects that "enable" makes, in that order: what the controller needs to run.
func Made(s settings.Settings, crds []object.Object) (refs []object.Ref, objects []object.Object) {
	add := func(r object.Ref, content m) {
		refs, objects = append(refs, r), append(objects, labelled(r).With(content))
	}
	account := object.Ref{Kind: object.ServiceAccount, Namespace: Where, Name: Controller}
	subjects := m{"subjects": l{m{"kind": "ServiceAccount", "name": Controller, "namespace": Where}}}
	bound := func(k object.Kind, name string) m {
		return m{"roleRef": roleRef(k, name), "subjects": subjects["subjects"]}
	}
	add(refNamespace, m{})
	add(account, m{})
	add(object.Ref{Kind: object.ClusterRole, Name: Controller}, m{"rules": clusterRules(crds)})
	add(object.Ref{Kind: object.ClusterRole, Name: Granted}, m{"rules": grantedRules()})
	add(object.Ref{Kind: object.ClusterRoleBinding, Name: Controller}, bound(object.ClusterRole, Controller))
	add(object.Ref{Kind: object.ClusterRoleBinding, Name: Granted}, bound(object.ClusterRole, Granted))
	add(object.Ref{Kind: object.Role, Namespace: Where, Name: Controller}, m{"rules": rules()})
	add(object.Ref{Kind: object.RoleBinding, Namespace: Where, Name: Controller}, bound(object.Role, Controller))
	add(refReader, bound(object.Role, clientCAReader))
	forPath := func(k object.Kind) object.Ref { return object.Ref{Kind: k, Namespace: Where, Name: Path} }
	add(forPath(object.ServiceAccount), m{})
	add(forPath(object.Role), m{"rules": l{named("", words("configmaps"), words("list", "watch"), Controller, refTunnels.Name)}})
	add(forPath(object.RoleBinding), m{
		"roleRef": roleRef(object.Role, Path), "subjects": l{m{"kind": "ServiceAccount", "name": Path, "namespace": Where}},
	})
	add(refController, m{"spec": controllerSpec(s)})
	return refs, objects
}

// named is a rule for objects of these names.
func named(group string, resources, verbs []string, names ...string) m {
	r := rule(group, resources, verbs)
	r["resourceNames"] = names
	return r
}

// clusterRules are what the controller needs of what belongs to no namespace.
func clusterRules(crds []object.Object) l {
	const rbac, certificates, admission = "rbac.authorization.k8s.io", "certificates.k8s.io", "admissionregistration.k8s.io"
	var names []string
	for _, o := range crds {
		names = append(names, o.Name())
	}
	inSight := words("list", "watch")
	return l{
		named("", words("namespaces"), words("list", "watch", "patch"), Where),
		rule("", words("nodes"), inSight),
		rule("apiextensions.k8s.io", words("customresourcedefinitions"), words("list", "watch", "create")),
		named("apiextensions.k8s.io", words("customresourcedefinitions"), words("patch"), names...),
		rule(rbac, words("clusterroles", "clusterrolebindings"), words("create")),
		named(rbac, words("clusterroles", "clusterrolebindings"), words("list", "watch", "patch"), Name),
		rule(admission, words("validatingadmissionpolicies", "validatingadmissionpolicybindings"), words("create")),
		named(admission, words("validatingadmissionpolicies", "validatingadmissionpolicybindings"), words("list", "watch", "patch"), Nodes),
		rule(certificates, words("certificatesigningrequests"), words("create")),
		named(certificates, words("certificatesigningrequests"), words("get", "list", "watch", "delete"), refRequest.Name),
		named(certificates, words("certificatesigningrequests/approval"), words("update"), refRequest.Name),
		named(certificates, words("signers"), words("approve"), signer),
	}
}

// rules are what the controller needs in its namespace.
func rules() l {
	return l{
		rule("", words("configmaps", "serviceaccounts", "services"), words("list", "watch", "create")),
		rule("", words("pods"), words("list", "watch")),
		named("", words("configmaps"), words("patch"), Name, Controller),
		named("", words("configmaps"), words("update"), refTunnels.Name),
		named("", words("serviceaccounts"), words("patch"), Name),
		named("", words("services"), words("patch"), Name, refStream.Name),
		named("", words("services"), words("delete"), refStream.Name),
		rule("", words("secrets"), words("create")),
		named("", words("secrets"), words("list", "watch"), Name, RefCA.Name, RefServing.Name),
		named("", words("secrets"), words("patch"), Name),
		named("", words("secrets"), words("delete"), RefServing.Name),
		rule("apps", words("deployments", "daemonsets"), words("list", "watch", "create")),
		named("apps", words("deployments"), words("patch"), Name),
		named("apps", words("daemonsets"), words("patch", "delete"), Path),
		rule("policy", words("poddisruptionbudgets"), words("list", "watch", "create")),
		named("policy", words("poddisruptionbudgets"), words("patch", "delete"), Name),
		rule("coordination.k8s.io", words("leases"), words("create")),
		named("coordination.k8s.io", words("leases"), words("get", "update"), Lease),
	}
}

// controllerSpec is the Deployment's: two, on servers, of which one leads.
func controllerSpec(s settings.Settings) m {
	own := m{"app.kubernetes.io/name": Controller}
	return m{
		"replicas": 2, "revisionHistoryLimit": 2, "selector": m{"matchLabels": own},
		"template": m{"metadata": m{"labels": own}, "spec": m{
			"serviceAccountName": Controller, "enableServiceLinks": false, "terminationGracePeriodSeconds": 10,
			"securityContext": m{"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": m{"type": "RuntimeDefault"}},
			"affinity": m{
				"nodeAffinity": onServers(),
				"podAntiAffinity": m{"preferredDuringSchedulingIgnoredDuringExecution": l{m{"weight": 100, "podAffinityTerm": m{
					"topologyKey": "kubernetes.io/hostname", "labelSelector": m{"matchLabels": own},
				}}}},
			},
			"tolerations": l{lost("node.kubernetes.io/not-ready"), lost("node.kubernetes.io/unreachable")},
			"containers": l{m{
				"name": Controller, "image": s.ControllerImage, "imagePullPolicy": "IfNotPresent", "args": l{"controller"},
				"env":       l{m{"name": "POD_NAME", "valueFrom": m{"fieldRef": m{"fieldPath": "metadata.name"}}}},
				"resources": m{"requests": m{"cpu": "10m", "memory": "32Mi"}, "limits": m{"memory": "128Mi"}},
				"securityContext": m{
					"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": m{"drop": l{"ALL"}},
				},
			}},
		}},
	}
}

// Dropped are the objects that "disable" removes, in that order: first what would make the others again, with its rights,
// for its pods go on for a while. With purge
// they are followed by everything else that there is of KubeEdge but its Nodes: the namespace has the rest.
func Dropped(purge bool, crds []object.Object) []object.Ref {
	of := func(k object.Kind, names ...string) (list []object.Ref) {
		for _, name := range names {
			list = append(list, object.Ref{Kind: k, Namespace: Where, Name: name})
		}
		return list
	}
	list := append(of(object.Deployment, Controller), of(object.RoleBinding, Controller)...)
	list = append(list, object.Ref{Kind: object.ClusterRoleBinding, Name: Controller}, refReader)
	list = append(list, refDeployment, refPath)
	list = append(list, refService, refStream, refBudget, refConfig, refStreamKey, refRequest)
	list = append(list, refPolicyBinding, refPolicy)
	list = append(list, of(object.RoleBinding, Path)...)
	list = append(list, of(object.Role, Controller, Path)...)
	list = append(list, of(object.ServiceAccount, Controller, Name, Path)...)
	for _, name := range []string{Granted, Name} {
		list = append(list, object.Ref{Kind: object.ClusterRoleBinding, Name: name})
	}
	for _, name := range []string{Controller, Granted, Name} {
		list = append(list, object.Ref{Kind: object.ClusterRole, Name: name})
	}
	if purge {
		for _, o := range crds {
			list = append(list, o.Ref(object.CRD))
		}
		list = append(list, refNamespace)
	}
	return list
}

// Probe is the Service as it would be, for the API server to say whether its ports are free.
func Probe(s settings.Settings) (object.Ref, object.Object) { return refService, service(s) }
