package cloud

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/pkg/edge/settings"
)

// In containers of cloudcore.
const (
	configDir = "/etc/kubeedge/config"
	streamDir = "/etc/kubeedge/stream"
	stateDir  = "/var/lib/kubeedge"
)

// PathReady is where the path says on each server, at 127.0.0.1, whether it is ready.
const PathReady = 10349

// StreamDir is where the container before the stream has its certificate.
const StreamDir = streamDir

type (
	m = object.Map
	l = []any
)

// config is cloudcore's file. KubeEdge fills in what it does not say; it writes the file itself unless the numbers
// that depend on nodeLimit are what it wants them to be (AdjustCloudCoreConfig), which is why they are here.
func config(s settings.Settings, advertise []string) (string, error) {
	text, err := json.MarshalIndent(m{
		"apiVersion": "cloudcore.config.kubeedge.io/v1alpha2", "kind": "CloudCore",
		"commonConfig":  m{"monitorServer": m{"bindAddress": "127.0.0.1:9091"}},
		"kubeAPIConfig": m{"kubeConfig": "", "master": "", "qps": 5 * s.NodeLimit, "burst": 10 * s.NodeLimit},
		"modules": m{
			"cloudHub": m{
				"advertiseAddress": advertise, "dnsNames": l{""}, "nodeLimit": s.NodeLimit,
				"websocket":  m{"enable": s.Websocket, "address": "0.0.0.0", "port": settings.HubPort},
				"quic":       m{"enable": s.Quic, "address": "0.0.0.0", "port": settings.QuicPort, "maxIncomingStreams": 10000},
				"https":      m{"enable": s.HTTPS, "address": "0.0.0.0", "port": settings.CertificatesBehind},
				"unixsocket": m{"enable": false, "address": "unix://" + stateDir + "/kubeedge.sock"},
				"authorization": m{
					"enable": true, "debug": false, "modes": l{m{"node": m{"enable": true}}},
				},
			},
			"cloudStream": m{
				"enable": s.CloudStream, "streamPort": settings.StreamBehind, "tunnelPort": settings.TunnelBehind,
				"tlsStreamCAFile": streamDir + "/streamCA.crt", "tlsStreamCertFile": streamDir + "/stream.crt", "tlsStreamPrivateKeyFile": streamDir + "/stream.key",
			},
			"dynamicController": m{"enable": false}, "router": m{"enable": false}, "taskManager": m{"enable": false},
			"iptablesManager": m{"enable": false, "mode": "internal"},
		},
	}, "", "  ")
	return string(text) + "\n", err
}

// deployment is cloudcore's. certificate is that of the stream, replaced what has to be new in its pods.
func deployment(s settings.Settings, replicas int, config, certificate, replaced string) object.Object {
	sum := sha256.Sum256([]byte(config + "\x00" + certificate))
	strategy := m{"type": "Recreate"}
	if replicas > 1 {
		strategy = m{"type": "RollingUpdate", "rollingUpdate": m{"maxUnavailable": 1, "maxSurge": 0}}
	}
	annotations := m{checksumAnnotation: hex.EncodeToString(sum[:16])}
	if replaced != "" {
		annotations[replacedAnnotation] = replaced
	}
	return labelled(refDeployment).With(m{"spec": m{
		"replicas": replicas, "strategy": strategy, "revisionHistoryLimit": 2,
		"selector": m{"matchLabels": podLabels()},
		"template": m{
			"metadata": m{"labels": podLabels(), "annotations": annotations},
			"spec": m{
				"serviceAccountName": Name, "enableServiceLinks": false, "terminationGracePeriodSeconds": 10,
				"initContainers": l{program(s, "close-ports", "close-ports", "64Mi", "NET_ADMIN")},
				"affinity": m{
					"nodeAffinity": onServers(),
					"podAntiAffinity": m{"requiredDuringSchedulingIgnoredDuringExecution": l{
						m{"topologyKey": "kubernetes.io/hostname", "labelSelector": m{"matchLabels": podLabels()}},
					}},
				},
				"tolerations": l{lost("node.kubernetes.io/not-ready"), lost("node.kubernetes.io/unreachable")},
				"containers": append(front(s), m{
					"name": Name, "image": s.Image, "imagePullPolicy": "IfNotPresent",
					"args":         l{"--config", configDir + "/cloudcore.yaml"},
					"ports":        containerPorts(s),
					"resources":    m{"requests": m{"cpu": "100m", "memory": "128Mi"}, "limits": m{"memory": "1Gi"}},
					"volumeMounts": l{m{"name": "config", "mountPath": configDir}, m{"name": "stream", "mountPath": streamDir, "readOnly": true}, m{"name": "state", "mountPath": stateDir}},
				}),
				"volumes": l{
					m{"name": "config", "configMap": m{"name": Name}},
					m{"name": "stream", "secret": m{"secretName": Name, "optional": !s.CloudStream}},
					m{"name": "state", "emptyDir": m{}},
				},
			},
		},
	}})
}

// onServers is the node affinity of all pods here.
func onServers() m {
	return m{"requiredDuringSchedulingIgnoredDuringExecution": m{"nodeSelectorTerms": l{m{"matchExpressions": l{
		m{"key": edgeRole, "operator": "DoesNotExist"}, m{"key": serverRole, "operator": "Exists"},
	}}}}}
}

// program is a container of zedkube-edge. It has no rights but the capabilities, which only root can use.
func program(s settings.Settings, name, command, memory string, capabilities ...any) m {
	security := m{
		"runAsNonRoot": true, "runAsUser": 65532, "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
		"capabilities": m{"drop": l{"ALL"}}, "seccompProfile": m{"type": "RuntimeDefault"},
	}
	if len(capabilities) > 0 {
		security["capabilities"] = m{"drop": l{"ALL"}, "add": capabilities}
		security["runAsNonRoot"], security["runAsUser"] = false, 0
	}
	return m{
		"name": name, "image": s.ControllerImage, "imagePullPolicy": "IfNotPresent", "args": l{command},
		"resources": m{"requests": m{"cpu": "10m", "memory": "16Mi"}, "limits": m{"memory": memory}}, "securityContext": security,
	}
}

// front are the containers that stand before ports of cloudcore, which it opens itself even where they are switched off.
func front(s settings.Settings) (all l) {
	before := func(name, portName string, port int) m {
		c := program(s, name, name, "128Mi")
		c["ports"] = l{m{"name": portName, "containerPort": port, "protocol": "TCP"}}
		c["readinessProbe"] = m{"httpGet": m{"scheme": "HTTPS", "port": port, "path": "/readyz"}, "periodSeconds": 2, "timeoutSeconds": 5}
		all = append(all, c)
		return c
	}
	if s.HTTPS {
		before("certificates", "cloudhub-https", settings.CertificatesPort)
	}
	if s.CloudStream {
		stream := before("stream", "cloudstream", settings.StreamPort)
		stream["volumeMounts"] = l{m{"name": "stream", "mountPath": streamDir, "readOnly": true}}
		stream["readinessProbe"] = m{"tcpSocket": m{"port": settings.StreamPort}, "periodSeconds": 5} // it answers nobody who may not
		before("tunnel", "tunnelport", settings.TunnelPort)
	}
	return all
}

// path leads requests for edge nodes to cloudcore, on each server.
func path(s settings.Settings) object.Object {
	own := m{"app.kubernetes.io/name": Path}
	c := program(s, Path, "path", "128Mi", "NET_ADMIN")
	c["readinessProbe"] = m{"httpGet": m{"host": "127.0.0.1", "port": PathReady, "path": "/readyz"}, "periodSeconds": 5}
	return labelled(refPath).With(m{"spec": m{
		"selector": m{"matchLabels": own}, "revisionHistoryLimit": 2,
		"updateStrategy": m{"type": "RollingUpdate", "rollingUpdate": m{"maxUnavailable": 1}},
		"template": m{"metadata": m{"labels": own}, "spec": m{
			"serviceAccountName": Path, "enableServiceLinks": false, "terminationGracePeriodSeconds": 10, "hostNetwork": true,
			"affinity":    m{"nodeAffinity": onServers()},
			"tolerations": l{m{"operator": "Exists"}}, // where there is a server, there is an API server
			"containers":  l{c},
		}},
	}})
}

// lost has a pod go from a node that is lost after 20 s, not Kubernetes' five minutes: another one serves the edge
// nodes within 30 s after the node is NotReady.
func lost(taint string) m {
	return m{"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int(lostFor.Seconds())}
}

func containerPorts(s settings.Settings) (list l) {
	for _, p := range s.All() {
		if p.Inside == settings.CertificatesPort || p.Inside == settings.StreamPort || p.Inside == settings.TunnelPort {
			continue // of the containers before it
		}
		list = append(list, m{"name": p.Name, "containerPort": p.Inside, "protocol": p.Protocol})
	}
	return list
}

// service is how edge nodes reach cloudcore. A port that is not open is not in it: cloudcore itself listens on some
// of them even so.
func service(s settings.Settings) object.Object {
	var ports l
	for _, p := range s.Open() {
		port := m{"name": p.Name, "protocol": p.Protocol, "port": p.Inside, "targetPort": p.Inside}
		if s.ServiceType == settings.NodePort {
			port["nodePort"] = p.Port
		} else {
			port["port"] = p.Port
		}
		ports = append(ports, port)
	}
	return labelled(refService).With(m{"spec": m{
		"type": s.ServiceType, "selector": podLabels(), "sessionAffinity": "ClientIP", "ports": ports,
	}})
}

// streamService is how servers reach the stream; nobody outside of the cluster does.
func streamService() object.Object {
	return labelled(refStream).With(m{"spec": m{
		"type": "ClusterIP", "selector": podLabels(),
		"ports": l{m{"name": "cloudstream", "protocol": "TCP", "port": settings.StreamPort, "targetPort": settings.StreamPort}},
	}})
}

func budget() object.Object {
	return labelled(refBudget).With(m{"spec": m{"maxUnavailable": 1, "selector": m{"matchLabels": podLabels()}}})
}

func rule(group string, resources, verbs []string) m {
	return m{"apiGroups": []string{group}, "resources": resources, "verbs": verbs}
}

func words(w ...string) []string { return w }

// cloudcoreRules are what cloudcore needs: those of KubeEdge's chart, with which it was seen to work, and one that node
// authorization takes; the other one is impersonation.
func cloudcoreRules() l {
	whole := words("get", "list", "watch", "create", "update", "patch", "delete")
	return l{
		rule("", words("nodes", "nodes/status", "serviceaccounts/token", "configmaps", "pods", "pods/status", "secrets", "endpoints", "services", "persistentvolumes", "persistentvolumeclaims"),
			words("get", "list", "watch", "create", "update")),
		rule("", words("namespaces"), words("get", "create", "list", "watch")),
		rule("", words("events"), words("create", "update", "patch")),
		rule("", words("nodes", "nodes/status", "pods/status"), words("patch")),
		rule("", words("pods", "configmaps"), words("delete")),
		rule("coordination.k8s.io", words("leases"), words("get", "list", "watch", "create", "update")),
		rule("devices.kubeedge.io", words("devices", "devicemodels", "devices/status", "devicemodels/status"), whole),
		rule("reliablesyncs.kubeedge.io", words("objectsyncs", "clusterobjectsyncs", "objectsyncs/status", "clusterobjectsyncs/status"), whole),
		rule("rules.kubeedge.io", words("rules", "ruleendpoints", "rules/status", "ruleendpoints/status"), whole),
		rule("apiextensions.k8s.io", words("customresourcedefinitions"), whole),
		rule("networking.istio.io", words("*"), words("get", "list", "watch")),
		rule("operations.kubeedge.io", words("nodeupgradejobs", "nodeupgradejobs/status", "imageprepulljobs", "imageprepulljobs/status"), words("get", "list", "watch", "update", "patch")),
		// What the container before its stream asks.
		rule("authentication.k8s.io", words("tokenreviews"), words("create")),
		rule("authorization.k8s.io", words("subjectaccessreviews"), words("create")),
		rule("storage.k8s.io", words("volumeattachments"), words("get", "list", "watch")),
	}
}
