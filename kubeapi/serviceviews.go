package kubeapi

import (
	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/listwatch"
	"github.com/zedkube/zedkube/types"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// serviceViews keeps the tables of services, of ingresses and of kube-vip's
// configuration, and returns what stops that. They have turns of their own, for
// nothing else is to wait for them.
func (r *run) serviceViews(conn *access.Connection) (stop []func()) {
	start := func(name string, lw *cache.ListWatch, rows access.Store) {
		stop = append(stop, r.keep(conn, &listwatch.Table{Name: name, Turns: r.served}, lw, rows))
	}
	start(types.TableServices, listwatch.ListWatch(conn.Kube.CoreV1().Services(metav1.NamespaceAll), ""), serviceRows(r.Services))
	start(types.TableIngresses, listIngresses(conn), ingressRows(r.Ingresses))
	start(types.TableKubeVIP, listwatch.ListWatch(conn.Kube.CoreV1().ConfigMaps(kubeVIPNamespace),
		fields.OneTermEqualSelector(metav1.ObjectNameField, kubeVIPName).String()), kubeVIPRows(r.KubeVIP))
	return stop
}

func listIngresses(conn *access.Connection) *cache.ListWatch {
	return listwatch.Optional(listwatch.NewGroup(conn, networkingv1.SchemeGroupVersion), listwatch.ListWatch(conn.Kube.NetworkingV1().Ingresses(metav1.NamespaceAll), ""),
		func(m metav1.ListMeta) runtime.Object { return &networkingv1.IngressList{ListMeta: m} },
		func(m metav1.ObjectMeta) runtime.Object { return &networkingv1.Ingress{ObjectMeta: m} })
}

func serviceRows(table access.Writer[types.Service]) access.Store {
	return &listwatch.Rows[*corev1.Service, types.Service]{
		Table: table, Row: serviceOf, Slim: slimService,
		Key: func(s types.Service) string {
			if s.Namespace == "" || s.Name == "" {
				return ""
			}
			return s.Key()
		},
	}
}

func ingressRows(table access.Writer[types.Ingress]) access.Store {
	return &listwatch.Rows[*networkingv1.Ingress, types.Ingress]{
		Table: table, Row: ingressOf, Slim: slimIngress,
		Key: func(i types.Ingress) string {
			if i.Namespace == "" || i.Name == "" {
				return ""
			}
			return i.Key()
		},
	}
}

func kubeVIPRows(table access.Writer[types.KubeVIP]) access.Store {
	return &listwatch.Rows[*corev1.ConfigMap, types.KubeVIP]{
		Table: table, Row: kubeVIPOf, Slim: slimKubeVIP,
		Key: func(types.KubeVIP) string { return types.Global },
	}
}
