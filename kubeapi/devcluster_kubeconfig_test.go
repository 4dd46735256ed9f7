//go:build linux

package kubeapi_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/operate/kubeconfigs"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// issuing issues kubeconfigs on one node and uses them.
func issuing(t *testing.T, c *devcluster.Cluster) {
	a, admin := newAgent(t, c, 7), c.Client()
	bindings, accounts := admin.RbacV1().ClusterRoleBindings(), admin.CoreV1().ServiceAccounts(kubeapi.Namespace)
	issue := func(role string) (types.IssuedKubeconfig, kubernetes.Interface, *rest.Config) {
		t.Helper()
		own, err := clientcmd.RESTConfigFromKubeConfig(c.NodeKubeconfig(7))
		if err != nil {
			t.Fatal(err)
		}
		server, _ := url.Parse(own.Host)
		began := time.Now().Add(-time.Second) // the API server's clock, in whole seconds
		k, text, err := a.IssueKubeconfig(t.Context(), types.IssuedKubeconfig{Role: role, Node: c.Nodes[7].Name, From: "uid 0", Reason: "a test"}, 10*time.Minute, server.Hostname())
		if err != nil {
			t.Fatal(err)
		}
		if left := k.Expires.Sub(began); left < 10*time.Minute || left > 12*time.Minute {
			t.Errorf("it expires in %v", left)
		}
		cfg, err := clientcmd.RESTConfigFromKubeConfig(text)
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if cfg.Host != own.Host || string(cfg.CAData) != string(own.CAData) || len(cfg.CertData)+len(cfg.KeyData) > 0 {
			t.Errorf("it leads to %s, not to %s, or has other certificates", cfg.Host, own.Host)
		}
		if exp := expiryOf(t, cfg.BearerToken); !exp.Equal(k.Expires.Truncate(time.Second)) {
			t.Errorf("the token expires %v, not %v", exp, k.Expires)
		}
		return k, kubernetes.NewForConfigOrDie(cfg), cfg
	}
	view, asView, cfg := issue("view")
	edit, asEdit, _ := issue("edit")
	isForbidden := func(what string, err error, want bool) {
		t.Helper()
		if got := apierrors.IsForbidden(err); got != want || !want && err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	tries := func(as kubernetes.Interface) (read, write, secrets, cluster error) {
		_, read = as.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 1})
		_, write = as.CoreV1().ConfigMaps(kubeapi.Namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "issued-"}}, metav1.CreateOptions{})
		_, secrets = as.CoreV1().Secrets(kubeapi.Namespace).List(t.Context(), metav1.ListOptions{Limit: 1})
		_, cluster = as.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{Limit: 1})
		return read, write, secrets, cluster
	}
	var read, write, secrets, cluster error
	eventually(t, "the roles count", 5*time.Second, func() bool {
		read, write, secrets, cluster = tries(asView)
		_, _, list, _ := tries(asEdit)
		return read == nil && list == nil
	})
	isForbidden("view reads", read, false)
	isForbidden("view writes", write, true)
	isForbidden("view reads secrets", secrets, true)
	isForbidden("view reads roles", cluster, true)
	_, write, secrets, cluster = tries(asEdit)
	isForbidden("edit writes", write, false)
	isForbidden("edit reads secrets", secrets, false)
	isForbidden("edit reads roles", cluster, true)

	// All that is kept of it, on the server and here, is without the token.
	eventually(t, "both are in the table", 5*time.Second, func() bool { return len(a.issued.All()) == 2 })
	row, _ := a.issued.Get(view.Name)
	if row.UID != view.UID || row.Role != "view" || row.Node != view.Node || row.From != "uid 0" || row.Reason != "a test" || row.Expires.Sub(row.Created) != 10*time.Minute {
		t.Errorf("row is %+v", row)
	}
	listed, err := a.Kubeconfigs(t.Context())
	if err != nil || len(listed) != 2 {
		t.Errorf("listed are %+v, %v", listed, err)
	}
	for _, get := range []func() (any, error){
		func() (any, error) { return bindings.Get(t.Context(), view.Name, metav1.GetOptions{}) },
		func() (any, error) { return accounts.Get(t.Context(), view.Name, metav1.GetOptions{}) },
	} {
		o, err := get()
		text, _ := json.Marshal(o)
		if err != nil || strings.Contains(string(text), cfg.BearerToken) {
			t.Errorf("%v, %s", err, text)
		}
	}

	// One is revoked; the other one expires, as its node sees it.
	refused := func(as kubernetes.Interface) func() bool {
		return func() bool {
			_, err := as.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 1})
			return apierrors.IsUnauthorized(err)
		}
	}
	if err := a.RevokeKubeconfig(t.Context(), view); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a revoked token gets 401", 12*time.Second, refused(asView))
	if err := a.RevokeKubeconfig(t.Context(), view); err != nil {
		t.Errorf("revoked again: %v", err)
	}
	if _, err := asEdit.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 1}); err != nil {
		t.Errorf("the other one, which is valid: %v", err)
	}
	var expired pubsub.Table[types.IssuedKubeconfig]
	late := edit
	late.Expires = time.Now()
	_ = expired.Publish(late.Name, late)
	if err := (&kubeconfigs.Component{Issued: &expired, Info: &a.info, Nodes: &a.nodes, API: &a.api, Kube: a.Client}).Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an expired token gets 401", 12*time.Second, refused(asEdit))
	gone := func(name string) bool {
		_, noBinding := bindings.Get(t.Context(), name, metav1.GetOptions{})
		_, noAccount := accounts.Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(noBinding) && apierrors.IsNotFound(noAccount)
	}
	eventually(t, "nothing is left", 5*time.Second, func() bool { return gone(view.Name) && gone(edit.Name) && len(a.issued.All()) == 0 })

	// What fails on its way leaves nothing, and what is deleted by hand takes the token with it.
	if _, _, err := a.IssueKubeconfig(t.Context(), types.IssuedKubeconfig{Role: "view"}, time.Minute, "127.0.0.1"); !apierrors.IsInvalid(err) {
		t.Errorf("a token of a minute: %v", err)
	}
	if listed, err := a.Kubeconfigs(t.Context()); err != nil || len(listed) > 0 {
		t.Errorf("a failure has left %+v, %v", listed, err)
	}
	third, _, _ := issue("view")
	if err := bindings.Delete(t.Context(), third.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the account goes with its binding", 10*time.Second, func() bool { return gone(third.Name) })
	foreignMarks(t, a, admin)
}

// foreignMarks is what others have marked as ours.
func foreignMarks(t *testing.T, a *agent, admin kubernetes.Interface) {
	const mark = "zedkube.github.io/kubeconfig"
	bindings, accounts := admin.RbacV1().ClusterRoleBindings(), admin.CoreV1().ServiceAccounts(kubeapi.Namespace)
	for _, name := range []string{"somebody-elses", "zedkube-kubeconfig-odd"} {
		b := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{mark: "true"}, Annotations: map[string]string{mark: `{"node":"n","for":"87600h","reason":"` + strings.Repeat("ä", 9000) + `"}`}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		}
		if _, err := bindings.Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "zedkube-kubeconfig-odd"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the one with our name is in the table", 5*time.Second, func() bool { return len(a.issued.All()) == 1 })
	row, _ := a.issued.Get("zedkube-kubeconfig-odd")
	if row.Expires.Sub(row.Created) != types.KubeconfigAtMost || len(row.Reason) > 256 || row.Reason == "" {
		t.Errorf("it lasts %v, for %d bytes of reason", row.Expires.Sub(row.Created), len(row.Reason))
	}
	another := row
	another.UID = "another"
	if err := a.RevokeKubeconfig(t.Context(), another); err != nil {
		t.Errorf("one that is gone: %v", err)
	}
	if _, err := bindings.Get(t.Context(), row.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("its namesake: %v", err)
	}
	if err := a.RevokeKubeconfig(t.Context(), types.IssuedKubeconfig{Name: "somebody-elses", UID: "u"}); err == nil {
		t.Error("one of another name is deleted")
	}
	if err := a.RevokeKubeconfig(t.Context(), row); err != nil {
		t.Error(err)
	}
	if _, err := accounts.Get(t.Context(), "zedkube-kubeconfig-odd", metav1.GetOptions{}); err != nil {
		t.Errorf("an account that is not the binding's: %v", err)
	}
	if _, err := bindings.Get(t.Context(), "somebody-elses", metav1.GetOptions{}); err != nil {
		t.Errorf("a binding of another name: %v", err)
	}
}

// expiryOf is the claim exp of a token.
func expiryOf(t *testing.T, token string) time.Time {
	t.Helper()
	part := strings.Split(token, ".")
	if len(part) != 3 {
		t.Fatal("the token is no JWT")
	}
	raw, err := base64.RawURLEncoding.DecodeString(part[1])
	var claims struct {
		Exp int64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		t.Fatal("the token cannot be read")
	}
	return time.Unix(claims.Exp, 0)
}

// recorded are the operations that were begun.
type recorded []types.Operation

func (r *recorded) Begin(o types.Operation) func(types.OperationOutcome, error) {
	*r = append(*r, o)
	return func(types.OperationOutcome, error) {}
}

// agents issues kubeconfigs for agents as an administrator, and uses them.
func agents(t *testing.T, c *devcluster.Cluster) {
	var record recorded
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	if err := os.WriteFile(path, c.NodeKubeconfig(7), 0o600); err != nil {
		t.Fatal(err)
	}
	admin, done, err := kubeapi.Dial(t.Context(), logrus.New(), path, &record)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	for what, node := range map[string]types.Node{"a server": {Name: "node-7", ControlPlane: true}, "a worker": {Name: "worker"}} {
		text, err := admin.IssueAgentKubeconfig(t.Context(), node, 2*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if last := record[len(record)-1]; last.Op != "issue kubeconfig" || last.Target != "kubeconfig/system:zedkube:"+node.Name {
			t.Errorf("%s: its record is %+v", what, last)
		}
		cfg, err := clientcmd.RESTConfigFromKubeConfig(text)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(cfg.CertData)
		cert, err := x509.ParseCertificate(block.Bytes)
		if left := time.Until(cert.NotAfter); err != nil || left < time.Hour || left > 2*time.Hour {
			t.Errorf("%s: the certificate is valid for %v, %v", what, left, err)
		}
		as := kubernetes.NewForConfigOrDie(cfg)
		who, err := as.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil || who.Status.UserInfo.Username != "system:zedkube:"+node.Name {
			t.Errorf("%s is %+v, %v", what, who, err)
		}
		for verb, want := range map[authorizationv1.ResourceAttributes]bool{
			{Verb: "patch", Resource: "nodes", Name: "x"}:                                                           true,
			{Verb: "get", Resource: "nodes", Subresource: "pods", Name: "x"}:                                        true,
			{Verb: "get", Resource: "nodes", Subresource: "proxy", Name: "x"}:                                       false,
			{Verb: "create", Resource: "nodes", Subresource: "proxy", Name: "x"}:                                    false,
			{Verb: "get", Resource: "secrets", Namespace: "kube-system", Name: "x"}:                                 false,
			{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: "eve-kube-app", Name: "x"}:           false,
			{Verb: "create", Resource: "pods", Namespace: "eve-kube-app"}:                                           false,
			{Verb: "escalate", Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "view"}:          false,
			{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "view"}:              true,
			{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "admin"}:             false,
			{Verb: "impersonate", Resource: "users", Name: "x"}:                                                     false,
			{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-system", Name: "x"}: false,
		} {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &verb}}
			review, err := as.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
			if err != nil || review.Status.Allowed != want {
				t.Errorf("%s may %+v: %v, %v", what, verb, review.Status.Allowed, err)
			}
		}
	}
	if left, err := c.Client().CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
		t.Errorf("%d requests are left, %v", len(left.Items), err)
	}

	// An agent can neither ask for such a certificate nor bind another role.
	a := newAgent(t, c, 7)
	if _, err := a.IssueAgentKubeconfig(t.Context(), types.Node{Name: "n", ControlPlane: true}, time.Hour); !errors.Is(err, types.ErrRefused) {
		t.Errorf("an agent issues a kubeconfig for an agent: %v", err)
	}
	if _, _, err := a.IssueKubeconfig(t.Context(), types.IssuedKubeconfig{Role: "cluster-admin", Reason: "x"}, time.Hour, "127.0.0.1"); !errors.Is(err, types.ErrRefused) {
		t.Errorf("an agent issues a kubeconfig with cluster-admin: %v", err)
	}
}
