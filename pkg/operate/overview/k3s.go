package overview

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/zedkube/zedkube/types"
)

// k3s says what changes k3s, or keeps it from changing, of all who have a part in it.
func (r *reader) k3s() {
	l := cmp.Or(r.o.Change, &types.KubeLifecycle{}) // object has read it
	if l.Phase != "" && l.Phase != types.LifecycleIdle {
		r.o.K3s = append(r.o.K3s, string(l.Phase)+": "+l.Reason)
		if nodes := first(l.Nodes); len(nodes) > 0 {
			var order []string
			for _, n := range nodes {
				order = append(order, n.Name+" "+n.State)
			}
			r.o.K3s = append(r.o.K3s, fmt.Sprintf("Order of the change to %s: %s.", l.To, strings.Join(order, ", ")))
		}
	}
	if o := l.Override; o.Reason != "" && o.Reason != l.Reason {
		r.o.K3s = append(r.o.K3s, o.Reason)
	}
	if w := l.Restart; w.Reason != "" && w.Reason != l.Reason {
		if w.Announced != "" && !strings.Contains(w.Reason, w.Announced) {
			w.Reason += " Announced: " + w.Announced + "."
		}
		r.o.K3s = append(r.o.K3s, w.Reason)
	}
	r.kubeContainer()
}

// KubeContainer says what is not in order of the kube container and its components, by the
// files below root, "" for the device itself.
func KubeContainer(root string) []string {
	r := reader{root: root, left: maxRead}
	r.kubeContainer()
	return r.o.K3s
}

func (r *reader) kubeContainer() {
	k, source := one[types.KubeInitStatus](r, global(plain("kube-init", "KubeInitStatus")))
	u, _ := one[types.KubeClusterUpdateStatus](r, global(filepath.Join(types.PathKeptTopics, "zedagent", "KubeClusterUpdateStatus")))
	if source.Known() && (k.LastError != "" || !k.AllComponentsInitialized) {
		said := "The kube container is in state " + cmp.Or(k.State, "unknown") + ", and not all is initialized."
		if k.LastError != "" {
			said = "The kube container is in state " + cmp.Or(k.State, "unknown") + ". Its last error: " + k.LastError
		}
		r.o.K3s = append(r.o.K3s, said)
	}
	switch u.Status {
	case types.KubeCompUpdateDownload, types.KubeCompUpdateInProgress:
		r.o.K3s = append(r.o.K3s, fmt.Sprintf("EVE updates component %s: %s.", u.Component, u.Status))
	case types.KubeCompUpdateDownloadFailed, types.KubeCompUpdateFailed:
		r.o.K3s = append(r.o.K3s, fmt.Sprintf("EVE's update of component %s failed, and it begins no other one: %s", u.Component, cmp.Or(u.Error, u.Status.String())))
	}
}
