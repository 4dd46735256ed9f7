package kubeapi

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/zedkube/zedkube/types"
)

// serviceViews keeps the tables of services, of ingresses and of kube-vip's
// configuration, and returns what stops that. They have turns of their own, for
// nothing else is to wait for them.
func (r *run) serviceViews(conn *connection) (stop []func()) {
	start := func(name string, lw *cache.ListWatch, rows rowStore) {
		stop = append(stop, r.keep(conn, &view{name: name, turns: r.served}, lw, rows))
	}
	start(types.TableServices, listWatch(conn.kube.CoreV1().Services(metav1.NamespaceAll), ""), serviceRows(r.Services))
	start(types.TableIngresses, listIngresses(conn), ingressRows(r.Ingresses))
	start(types.TableKubeVIP, listWatch(conn.kube.CoreV1().ConfigMaps(kubeVIPNamespace),
		fields.OneTermEqualSelector(metav1.ObjectNameField, kubeVIPName).String()), kubeVIPRows(r.KubeVIP))
	return stop
}

func listIngresses(conn *connection) *cache.ListWatch {
	return optional(newGroup(conn, networkingv1.SchemeGroupVersion), listWatch(conn.kube.NetworkingV1().Ingresses(metav1.NamespaceAll), ""),
		func(m metav1.ListMeta) runtime.Object { return &networkingv1.IngressList{ListMeta: m} },
		func(m metav1.ObjectMeta) runtime.Object { return &networkingv1.Ingress{ObjectMeta: m} })
}

func serviceRows(table Writer[types.Service]) rowStore {
	return &rows[*corev1.Service, types.Service]{
		table: table, row: serviceOf, slim: slimService,
		key: func(s types.Service) string {
			if s.Namespace == "" || s.Name == "" {
				return ""
			}
			return s.Key()
		},
	}
}

func ingressRows(table Writer[types.Ingress]) rowStore {
	return &rows[*networkingv1.Ingress, types.Ingress]{
		table: table, row: ingressOf, slim: slimIngress,
		key: func(i types.Ingress) string {
			if i.Namespace == "" || i.Name == "" {
				return ""
			}
			return i.Key()
		},
	}
}

func kubeVIPRows(table Writer[types.KubeVIP]) rowStore {
	return &rows[*corev1.ConfigMap, types.KubeVIP]{
		table: table, row: kubeVIPOf, slim: slimKubeVIP,
		key: func(types.KubeVIP) string { return types.Global },
	}
}
