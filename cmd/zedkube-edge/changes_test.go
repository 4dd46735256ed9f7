//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/pkg/edge/cloud"
	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/pkg/edge/settings"
)

// leaves are the fields of a JSON text by path.
func leaves(text string) map[string]string {
	found := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if fields, is := v.(map[string]any); is {
			for name, v := range fields {
				walk(path+"."+name, v)
			}
			return
		}
		found[path] = fmt.Sprint(v)
	}
	var v any
	if json.Unmarshal([]byte(text), &v) == nil {
		walk("", v)
	}
	return found
}

func changed(a, b map[string]string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if a[name] != b[name] {
			names = append(names, strings.TrimPrefix(name, ".modules")+"="+b[name])
		}
	}
	return names
}

// ports are those of the Service, by name.
func (s *site) ports() string {
	service, err := s.kube.CoreV1().Services(namespace).Get(s.Context(), "cloudcore", metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	var list []string
	for _, p := range service.Spec.Ports {
		list = append(list, fmt.Sprintf("%s:%d>%s", p.Name, p.NodePort, p.TargetPort.String()))
	}
	return string(service.Spec.Type) + " " + strings.Join(list, " ")
}

// parametersArrive changes one parameter after the other: exactly its field becomes another one, and cloudcore is
// restarted once or not at all.
func (s *site) parametersArrive() {
	const usual = "NodePort cloudhub:31000>10000 cloudhub-https:31002>10002 tunnelport:31004>10004"
	for _, row := range []struct {
		set, fields, ports string
		restarts           int64
	}{
		{"nodeLimit=200", ".kubeAPIConfig.burst=2000 .kubeAPIConfig.qps=1000 .cloudHub.nodeLimit=200", usual, 1},
		{"quic=true", ".cloudHub.quic.enable=true", "NodePort cloudhub:31000>10000 cloudhub-quic:31001>10001 cloudhub-https:31002>10002 tunnelport:31004>10004", 1},
		{"quic=false", ".cloudHub.quic.enable=false", usual, 1},
		{"https=false", ".cloudHub.https.enable=false", "NodePort cloudhub:31000>10000 tunnelport:31004>10004", 1},
		{"https=true", ".cloudHub.https.enable=true", usual, 1},
		{"websocketPort=31100", "", "NodePort cloudhub:31100>10000 cloudhub-https:31002>10002 tunnelport:31004>10004", 0},
		{"websocketPort=0", "", usual, 0},
		{"cloudTunnelPort=31104", "", "NodePort cloudhub:31000>10000 cloudhub-https:31002>10002 tunnelport:31104>10004", 0},
		{"cloudTunnelPort=0", "", usual, 0},
		{"exposeCloudStream=true", "", "NodePort cloudhub:31000>10000 cloudhub-https:31002>10002 cloudstream:31003>10003 tunnelport:31004>10004", 0},
		{"exposeCloudStream=false", "", usual, 0},
		{"image=docker.io/kubeedge/cloudcore:v1.20.1", "", usual, 1},
		{"ha=true", "", usual, 1},
		{"ha=false", "", usual, 1},
		{"cloudStream=false", ".cloudStream.enable=false", "NodePort cloudhub:31000>10000 cloudhub-https:31002>10002", 1},
		{"cloudStream=true", ".cloudStream.enable=true", usual, 1},
		{"logPort=10351", "", usual, 0},
	} {
		before, was := s.ready(), leaves(s.configMap("cloudcore").Data["cloudcore.yaml"])
		s.must("set", "--yes", row.set)
		s.until(row.set, func() error {
			if got := strings.Join(changed(was, leaves(s.configMap("cloudcore").Data["cloudcore.yaml"])), " "); got != row.fields {
				return fmt.Errorf("the fields that changed are %q", got)
			}
			if got := s.ports(); got != row.ports {
				return fmt.Errorf("the Service is %q", got)
			}
			d, err := s.deployment()
			if err != nil {
				return err
			}
			if got := d.Generation - before.Generation; got != row.restarts {
				return fmt.Errorf("the Deployment changed %d times", got)
			}
			return nil
		})
		s.budget(row.set == "ha=true")
	}
	// What a second change would be shows a look later: nothing may have happened again.
	d := s.ready()
	s.touch()
	if again := s.ready(); again.Generation != d.Generation {
		s.Errorf("the Deployment changed from %d to %d by itself", d.Generation, again.Generation)
	}
}

// budget expects a PodDisruptionBudget or none.
func (s *site) budget(wanted bool) {
	s.Helper()
	s.until("the budget", func() error {
		_, err := s.kube.PolicyV1().PodDisruptionBudgets(namespace).Get(s.Context(), "cloudcore", metav1.GetOptions{})
		switch {
		case !wanted && err == nil:
			return errors.New("there is one")
		case !wanted && apierrors.IsNotFound(err):
			return nil
		}
		return err
	})
}

// touch changes a label of an object by hand, and returns once the controller has put it back: it has looked then.
func (s *site) touch() {
	s.Helper()
	patch := []byte(`{"metadata":{"labels":{"k8s-app":"changed"}}}`)
	if _, err := s.kube.CoreV1().ServiceAccounts(namespace).Patch(s.Context(), "cloudcore", ktypes.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
	s.until("a label is put back", func() error {
		o, err := s.kube.CoreV1().ServiceAccounts(namespace).Get(s.Context(), "cloudcore", metav1.GetOptions{})
		if err == nil && o.Labels["k8s-app"] != "kubeedge" {
			err = errors.New("it is not")
		}
		return err
	})
}

// settled returns once the controller has nothing to do.
func (s *site) settled() {
	s.Helper()
	s.ready()
	s.touch()
	s.ready()
}

// whatIsChangedByHandIsBack takes each object that the controller keeps, and changes some.
func (s *site) whatIsChangedByHandIsBack() {
	before := s.objects()
	for _, kind := range kinds {
		list, err := s.any.Resource(kind).List(s.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=zedkube-edge"})
		if err != nil {
			s.Fatal(err)
		}
		for _, o := range list.Items {
			if kind.Resource == "namespaces" || strings.HasPrefix(o.GetName(), "zedkube-edge") && kind.Resource != "daemonsets" {
				continue // the controller ends with them
			}
			gone := metav1.DeletePropagationBackground
			if err := s.any.Resource(kind).Namespace(o.GetNamespace()).Delete(s.Context(), o.GetName(), metav1.DeleteOptions{PropagationPolicy: &gone}); err != nil && !apierrors.IsNotFound(err) {
				s.Fatal(err)
			}
			s.until(kind.Resource+" "+o.GetName()+" is back", func() error {
				now, err := s.any.Resource(kind).Namespace(o.GetNamespace()).Get(s.Context(), o.GetName(), metav1.GetOptions{})
				if err == nil && now.GetUID() == o.GetUID() {
					err = errors.New("it is not deleted yet")
				}
				return err
			})
		}
	}
	s.settled()
	if now := s.objects(); !slices.Equal(now, before) {
		s.Errorf("the objects are %q, not %q", now, before)
	}
	for what, patch := range map[string]string{
		"deployments cloudcore":  `{"spec":{"replicas":2}}`,
		"services cloudcore":     `{"spec":{"sessionAffinity":"None"}}`,
		"configmaps cloudcore":   `{"data":{"cloudcore.yaml":"broken"}}`,
		"clusterroles cloudcore": `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`,
		"secrets cloudcore":      `{"data":{"stream.crt":"YnJva2Vu"}}`,
	} {
		s.settled() // another certificate changes the Deployment a moment later
		f := strings.Fields(what)
		i := slices.IndexFunc(kinds, func(k schema.GroupVersionResource) bool { return k.Resource == f[0] })
		at := s.any.Resource(kinds[i]).Namespace(map[bool]string{false: namespace}[f[0] == "clusterroles"])
		was, err := at.Get(s.Context(), f[1], metav1.GetOptions{})
		if err != nil {
			s.Fatal(err)
		}
		if _, err := at.Patch(s.Context(), f[1], ktypes.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			s.Fatal(err)
		}
		s.until(what+" is as it was", func() error {
			now, err := at.Get(s.Context(), f[1], metav1.GetOptions{})
			if err != nil {
				return err
			}
			for field, v := range map[string]any{"spec": was.Object["spec"], "rules": was.Object["rules"]} {
				if f[0] == "deployments" || f[0] == "services" || f[0] == "clusterroles" {
					if !object.Same(v, now.Object[field]) {
						return fmt.Errorf("%s is %v", field, now.Object[field])
					}
				}
			}
			if text, _, _ := unstructured.NestedString(now.Object, "data", "cloudcore.yaml"); text == "broken" {
				return errors.New("it is broken")
			}
			if text, _, _ := unstructured.NestedString(now.Object, "data", "stream.crt"); text == "YnJva2Vu" {
				return errors.New("it is broken")
			}
			return nil
		})
	}
	s.ready()
}

// addressesReachTheCertificate: cloudcore keeps a certificate that lacks an address until it is deleted.
func (s *site) addressesReachTheCertificate() {
	before := s.ready()
	s.must("set", "--yes", "advertiseAddress=192.0.2.10")
	s.until("the certificate names the address", func() error {
		secret, err := s.kube.CoreV1().Secrets(namespace).Get(s.Context(), "cloudcoresecret", metav1.GetOptions{})
		if err == nil && !certifies(secret, "192.0.2.10") {
			err = errors.New("it does not")
		}
		return err
	})
	if after := s.ready(); after.Generation != before.Generation+1 {
		s.Errorf("cloudcore was restarted %d times", after.Generation-before.Generation)
	}
}

// theAuthorityIsLost: no edge node trusts the next one.
func (s *site) theAuthorityIsLost() {
	s.ready()
	if err := s.kube.CoreV1().Secrets(namespace).Delete(s.Context(), "casecret", metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	s.until("the loss of casecret is a problem", func() error {
		out, err := s.command("status")
		if err == nil || !strings.Contains(out, "casecret") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	s.restart()
	s.until("another casecret is a problem, too", func() error {
		out, err := s.command("status")
		if err == nil || !strings.Contains(out, "another one than before") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if _, err := s.kube.CoreV1().ConfigMaps(namespace).Patch(s.Context(), "zedkube-edge", ktypes.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"edge.zedkube.io/casecret":null}}}`), metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
	s.ready()
}

// restart deletes cloudcore's pods.
func (s *site) restart() {
	if err := s.kube.CoreV1().Pods(namespace).DeleteCollection(s.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "kubeedge=cloudcore"}); err != nil {
		s.Fatal(err)
	}
}

// theLeaderDies: another controller puts back what is changed.
func (s *site) theLeaderDies(ctx context.Context, stop func()) func() {
	next := s.control(ctx, "controller-2")
	stop()
	s.touch()
	lease, err := s.kube.CoordinationV1().Leases(namespace).Get(s.Context(), "zedkube-edge", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != "controller-2" {
		s.Errorf("the lease is %v, %v", lease, err)
	}
	s.until("the record of tunnels has only those that are there", func() error {
		pods, err := s.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubeedge=cloudcore"})
		record := s.configMap("tunnelport").Annotations["tunnelportrecord.kubeedge.io"]
		if err == nil && (len(pods.Items) != 1 || strings.Count(record, "true") != 1 || !strings.Contains(record, `"`+pods.Items[0].Status.PodIP+`"`)) {
			err = fmt.Errorf("it is %s", record)
		}
		return err
	})
	return next
}

// listEqualsUse compares the roles with what the controller has asked for.
func (s *site) listEqualsUse() {
	crds, err := cloud.Definitions()
	if err != nil {
		s.Fatal(err)
	}
	_, objects := cloud.Made(settings.Default(), crds)
	unused := map[string]bool{}
	for _, o := range objects {
		if o["kind"] != "ClusterRole" && o["kind"] != "Role" || o.Name() == cloud.Granted {
			continue
		}
		text, _ := json.Marshal(o)
		var role rbacv1.ClusterRole
		if err := json.Unmarshal(text, &role); err != nil {
			s.Fatal(err)
		}
		for _, r := range role.Rules {
			names := r.ResourceNames
			if len(names) == 0 {
				names = []string{""}
			}
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					for _, name := range names {
						unused[strings.Join([]string{verb, resource, name}, " ")] = true
					}
				}
			}
		}
	}
	calls, err := s.cluster.Calls()
	if err != nil {
		s.Fatal(err)
	}
	asked := 0
	for _, call := range calls {
		if call.User != "system:serviceaccount:kubeedge:zedkube-edge" && call.User != "system:serviceaccount:kubeedge:zedkube-edge-path" {
			continue
		}
		resource := strings.TrimSuffix(call.Resource+"/"+call.Subresource, "/")
		if asked++; call.Code == 403 && call.At.Before(s.off) {
			s.Errorf("refused: %s %s %s", call.Verb, resource, call.Name)
		}
		delete(unused, strings.Join([]string{call.Verb, resource, call.Name}, " "))
		delete(unused, strings.Join([]string{call.Verb, resource, ""}, " "))
		if call.Verb == "patch" && call.Code == 201 { // an object that is made by an apply takes both
			delete(unused, strings.Join([]string{"create", resource, ""}, " "))
		}
		if call.Verb == "watch" { // what a server that streams no lists is asked for
			delete(unused, strings.Join([]string{"list", resource, call.Name}, " "))
			delete(unused, strings.Join([]string{"list", resource, ""}, " "))
		}
		if resource == "certificatesigningrequests/approval" {
			delete(unused, "approve signers kubernetes.io/kubelet-serving")
		}
	}
	if len(unused) > 0 || asked < 100 {
		s.Errorf("of %d requests, none needs: %q", asked, slices.Sorted(maps.Keys(unused)))
	}
}

// playCloudcore does what KubeEdge's cloudcore was seen to do to the cluster, once for each of its pods.
func (s *site) playCloudcore(ctx context.Context) {
	begun := map[ktypes.UID]bool{}
	for ctx.Err() == nil {
		list, err := s.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubeedge=cloudcore"})
		if err == nil {
			for _, pod := range list.Items {
				if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && !begun[pod.UID] {
					begun[pod.UID] = s.begin(ctx, &pod) == nil
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}
