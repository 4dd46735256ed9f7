package kubeapi

import (
	"net/http"
	"sync/atomic"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// longhornClients are for the objects of Longhorn, of which they decode what we
// read.
type longhornClients struct {
	installed atomic.Bool // the namespace was found

	volumes   *gentype.ClientWithList[*volumePart, *partList[volumePart]]
	engines   *gentype.ClientWithList[*enginePart, *partList[enginePart]]
	replicas  *gentype.ClientWithList[*replicaPart, *partList[replicaPart]]
	snapshots *gentype.ClientWithList[*snapshotPart, *partList[snapshotPart]]
	nodes     *gentype.ClientWithList[*nodePart, *partList[nodePart]]
}

// connectLonghorn makes them for a connection.
func connectLonghorn(conn *connection) error {
	client, codec, err := partClient(conn.cfg, conn.via, longhornv1.SchemeGroupVersion, map[string]runtime.Object{
		"Volume": &volumePart{}, "VolumeList": &partList[volumePart]{},
		"Engine": &enginePart{}, "EngineList": &partList[enginePart]{},
		"Replica": &replicaPart{}, "ReplicaList": &partList[replicaPart]{},
		"Snapshot": &snapshotPart{}, "SnapshotList": &partList[snapshotPart]{},
		"Node": &nodePart{}, "NodeList": &partList[nodePart]{},
	})
	if err != nil {
		return err
	}
	c := kept[longhornClients](conn)
	c.volumes = longhornParts("volumes", client, codec, func() *volumePart { return &volumePart{} })
	c.engines = longhornParts("engines", client, codec, func() *enginePart { return &enginePart{} })
	c.replicas = longhornParts("replicas", client, codec, func() *replicaPart { return &replicaPart{} })
	c.snapshots = longhornParts("snapshots", client, codec, func() *snapshotPart { return &snapshotPart{} })
	c.nodes = longhornParts("nodes", client, codec, func() *nodePart { return &nodePart{} })
	return nil
}

// part is a pointer to a part of an object.
type part[T any] interface {
	*T
	metav1.Object
	runtime.Object
}

func longhornParts[T any, P part[T]](resource string, client rest.Interface, codec runtime.ParameterCodec, object func() P) *gentype.ClientWithList[P, *partList[T]] {
	return gentype.NewClientWithList(resource, client, codec, longhornNamespace, object,
		func() *partList[T] { return &partList[T]{} })
}

// ofLonghorn is all that api has of a kind of Longhorn's, none without Longhorn.
func ofLonghorn[T any, P part[T]](longhorn *group, api *gentype.ClientWithList[P, *partList[T]]) *cache.ListWatch {
	return chosenOfLonghorn(longhorn, api, "")
}

// chosenOfLonghorn is what the field selector on chooses of it.
func chosenOfLonghorn[T any, P part[T]](longhorn *group, api *gentype.ClientWithList[P, *partList[T]], on string) *cache.ListWatch {
	return optional(longhorn, listWatch(api, on),
		func(m metav1.ListMeta) runtime.Object { return &partList[T]{ListMeta: m} },
		func(m metav1.ObjectMeta) runtime.Object {
			end := P(new(T))
			end.SetResourceVersion(m.ResourceVersion)
			end.SetAnnotations(m.Annotations)
			return end
		})
}

// partClient is a client for kinds of one group, each with the type it is
// decoded to.
func partClient(cfg *rest.Config, rt http.RoundTripper, gv schema.GroupVersion, kinds map[string]runtime.Object) (rest.Interface, runtime.ParameterCodec, error) {
	scheme := runtime.NewScheme()
	for kind, object := range kinds {
		scheme.AddKnownTypeWithName(gv.WithKind(kind), object)
	}
	metav1.AddToGroupVersion(scheme, gv)
	cfg = inJSON(cfg)
	cfg.GroupVersion, cfg.APIPath = &gv, "/apis"
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := clientOver(cfg, rt, rest.RESTClientForConfigAndClient)
	return client, runtime.NewParameterCodec(scheme), err
}
