package cloud

import (
	"github.com/zedkube/zedkube/pkg/edge/join"
	"github.com/zedkube/zedkube/pkg/edge/object"
)

// Names that people and KubeEdge know.
const (
	Name       = "cloudcore"    // of most objects of cloudcore
	Controller = "zedkube-edge" // of the controller's own objects, and of the settings
	Path       = "zedkube-edge-path"
	Nodes      = "zedkube-edge-nodes" // of the record of who was asked to join
	Where      = "kubeedge"           // the namespace of both
	SettingsAt = "settings.json"

	// whereClientCA is where the API server says by what it knows clients, and clientCAReader the role that may read it.
	whereClientCA  = "kube-system"
	clientCAReader = "extension-apiserver-authentication-reader"

	serverRole = "node-role.kubernetes.io/control-plane"
	edgeRole   = join.EdgeRole
	tieBreaker = "tie-breaker-node" // "true" on the server that is cordoned for good
	kubeEdge   = "-kubeedge-"       // in the version of the kubelet of an edge node

	managedLabel       = "app.kubernetes.io/managed-by"
	checksumAnnotation = "edge.zedkube.io/checksum"
	replacedAnnotation = "edge.zedkube.io/replaced"
	caAnnotation       = "edge.zedkube.io/casecret" // on the settings: the UID of the casecret that edge nodes trust
	tunnelRecord       = "tunnelportrecord.kubeedge.io"
)

// The objects of which there is one.
var (
	refNamespace  = object.Ref{Kind: object.Namespace, Name: Where}
	RefSettings   = object.Ref{Kind: object.ConfigMap, Namespace: Where, Name: Controller}
	refConfig     = object.Ref{Kind: object.ConfigMap, Namespace: Where, Name: Name}
	refTunnels    = object.Ref{Kind: object.ConfigMap, Namespace: Where, Name: "tunnelport"}
	refClientCA   = object.Ref{Kind: object.ConfigMap, Namespace: whereClientCA, Name: "extension-apiserver-authentication"}
	refStreamKey  = object.Ref{Kind: object.Secret, Namespace: Where, Name: Name}
	RefCA         = object.Ref{Kind: object.Secret, Namespace: Where, Name: "casecret"}
	RefServing    = object.Ref{Kind: object.Secret, Namespace: Where, Name: "cloudcoresecret"}
	refAccount    = object.Ref{Kind: object.ServiceAccount, Namespace: Where, Name: Name}
	RefRole       = object.Ref{Kind: object.ClusterRole, Name: Name}
	refBinding    = object.Ref{Kind: object.ClusterRoleBinding, Name: Name}
	refController = object.Ref{Kind: object.Deployment, Namespace: Where, Name: Controller}
	refDeployment = object.Ref{Kind: object.Deployment, Namespace: Where, Name: Name}
	refService    = object.Ref{Kind: object.Service, Namespace: Where, Name: Name}
	refPath       = object.Ref{Kind: object.DaemonSet, Namespace: Where, Name: Path}
	refReader     = object.Ref{Kind: object.RoleBinding, Namespace: whereClientCA, Name: Controller}
	refStream     = object.Ref{Kind: object.Service, Namespace: Where, Name: Name + "-stream"}
	refBudget     = object.Ref{Kind: object.Budget, Namespace: Where, Name: Name}
	refRequest    = object.Ref{Kind: object.Request, Name: "zedkube-cloudstream"}
)

// View names objects that the controller keeps in sight.
type View struct {
	Ref   object.Ref // without Name: all of that kind in the namespace
	Label string     // "" for all
	Field string     // a selector; "" for all
}

// Views are all that the controller keeps in sight, and what status looks at.
func Views() []View {
	of := func(k object.Kind) View { return View{Ref: object.Ref{Kind: k, Namespace: Where}} }
	return []View{
		{Ref: refNamespace},
		{Ref: refClientCA},
		{Ref: RefRole},
		{Ref: refBinding},
		{Ref: refPolicy},
		{Ref: refPolicyBinding},
		{Ref: refRequest},
		{Ref: refStreamKey},
		{Ref: RefCA},
		{Ref: RefServing},
		{Ref: object.Ref{Kind: object.Node}},
		{Ref: object.Ref{Kind: object.CRD}, Label: managedLabel + "=" + Controller},
		of(object.ConfigMap), of(object.ServiceAccount), of(object.Service), of(object.Deployment), of(object.DaemonSet), of(object.Budget), of(object.Pod),
	}
}

// labelled is an empty object with the labels of what zedkube-edge keeps.
func labelled(r object.Ref) object.Object {
	o := object.New(r)
	o["metadata"].(m)["labels"] = labels()
	return o
}

func labels() m {
	all := podLabels()
	all[managedLabel] = Controller
	return all
}

// podLabels are those of KubeEdge's chart.
func podLabels() m { return m{"k8s-app": "kubeedge", "kubeedge": "cloudcore"} }
