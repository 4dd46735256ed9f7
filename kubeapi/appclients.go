package kubeapi

import (
	"fmt"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/types"
)

// kubevirtVersion is the group of virtual machines. A cluster may lack it.
func kubevirtVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}
}

type (
	vmiClient    = gentype.ClientWithList[*vmi, *vmiList]
	appSetClient = gentype.ClientWithList[*appSet, *appSetList]
)

// appClients are for the objects of applications in Namespace. They decode of
// them what we read.
type appClients struct {
	vmis *vmiClient
	sets map[string]*appSetClient // by types.AppSet.Kind
}

func newAppClients(cfg *rest.Config, rt http.RoundTripper) (*appClients, error) {
	kubevirt, codec, err := partClient(cfg, rt, kubevirtVersion(), map[string]runtime.Object{
		"VirtualMachineInstance": &vmi{}, "VirtualMachineInstanceList": &vmiList{},
		types.KindVMIReplicaSet: &appSet{}, types.KindVMIReplicaSet + "List": &appSetList{},
	})
	if err != nil {
		return nil, err
	}
	c := &appClients{
		vmis: gentype.NewClientWithList("virtualmachineinstances", kubevirt, codec, Namespace,
			func() *vmi { return &vmi{} }, func() *vmiList { return &vmiList{} }),
		sets: map[string]*appSetClient{types.KindVMIReplicaSet: setClient("virtualmachineinstancereplicasets", kubevirt, codec)},
	}
	apps, codec, err := partClient(cfg, rt, appsv1.SchemeGroupVersion, map[string]runtime.Object{
		types.KindReplicaSet: &appSet{}, types.KindReplicaSet + "List": &appSetList{},
	})
	if err != nil {
		return nil, err
	}
	c.sets[types.KindReplicaSet] = setClient("replicasets", apps, codec)
	return c, nil
}

func setClient(resource string, client rest.Interface, codec runtime.ParameterCodec) *appSetClient {
	return gentype.NewClientWithList(resource, client, codec, Namespace,
		func() *appSet { return &appSet{} }, func() *appSetList { return &appSetList{} })
}

// partClient is a client for kinds of one group, each with the type it is
// decoded to. It speaks JSON: custom resources have no protobuf, and only in
// JSON can a part of an object be decoded.
func partClient(cfg *rest.Config, rt http.RoundTripper, gv schema.GroupVersion, kinds map[string]runtime.Object) (rest.Interface, runtime.ParameterCodec, error) {
	scheme := runtime.NewScheme()
	for kind, object := range kinds {
		scheme.AddKnownTypeWithName(gv.WithKind(kind), object)
	}
	metav1.AddToGroupVersion(scheme, gv)
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	cfg.GroupVersion, cfg.APIPath = &gv, "/apis"
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	rt, err := rest.HTTPWrappersForConfig(cfg, rt)
	if err != nil {
		return nil, nil, fmt.Errorf("set up credentials of kubeconfig: %w", err)
	}
	client, err := rest.RESTClientForConfigAndClient(cfg, &http.Client{Transport: rt})
	if err != nil {
		return nil, nil, fmt.Errorf("set up client of kubeconfig: %w", err)
	}
	return client, runtime.NewParameterCodec(scheme), nil
}
