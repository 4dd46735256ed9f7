package kubeconfigs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

const (
	// Selector selects the objects of issued kubeconfigs.
	Selector = mark + "=true"
	mark     = "zedkube.github.io/kubeconfig" // a label of both objects, and the annotation of the binding
	prefix   = "zedkube-kubeconfig-"          // of their names
	manager  = "zedkube-kubeconfig"

	maxText     = 256              // bytes of a text that is read back: anybody may have changed it
	undoWithin  = 10 * time.Second // bounds the removal of one that could not be issued
	accountKind = "ServiceAccount"
)

// ErrNoAuthority is returned where there is no certificate by which others could
// recognize the API server.
var ErrNoAuthority = errors.New("the agent's own kubeconfig names no certificate authority")

// note is the annotation. The end is not in it: it follows from the creation by the API
// server's clock, which the token expires by, too.
type note struct {
	Node   string          `json:"node"`
	From   string          `json:"from"`
	Reason string          `json:"reason"`
	For    metav1.Duration `json:"for"`
}

// Client has the verbs on issued kubeconfigs.
type Client struct{ *access.Session }

// IssueKubeconfig makes what the kubeconfig rests on, for k.Role, k.Node, k.From and
// k.Reason, and returns it as YAML for the API server at host, with the time when its token
// expires. Where it fails, what was made is removed. The binding is made first and owns
// the account: whatever is left over after a crash, the binding names it.
func (c *Client) IssueKubeconfig(ctx context.Context, k types.IssuedKubeconfig, lasts time.Duration, host string) (types.IssuedKubeconfig, []byte, error) {
	k.Name = prefix + rand.String(5)
	op := access.Operation{Op: "issue kubeconfig", Target: "kubeconfig/" + k.Name}
	var text []byte
	err := c.Write(ctx, op, "issue kubeconfig", func(ctx context.Context, conn *access.Connection) error {
		if len(conn.Cfg.CAData) == 0 {
			return ErrNoAuthority
		}
		token, err := grant(ctx, conn, &k, lasts)
		if err == nil {
			text, err = render(conn, k.Name, token, host)
		}
		if err == nil || apierrors.IsAlreadyExists(err) && k.UID == "" {
			return err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
		defer cancel()
		if k.UID == "" { // a request without an answer may have made it
			b, getErr := conn.Kube.RbacV1().ClusterRoleBindings().Get(ctx, k.Name, metav1.GetOptions{})
			if getErr != nil || b.Name != k.Name {
				return err
			}
			k.UID = string(b.UID)
		}
		return errors.Join(err, remove(ctx, conn, k))
	})
	if err != nil {
		return types.IssuedKubeconfig{}, nil, err
	}
	return k, text, nil
}

// grant makes the objects and obtains the token. k.UID is set as soon as there is
// something to remove.
func grant(ctx context.Context, conn *access.Connection, k *types.IssuedKubeconfig, lasts time.Duration) (token string, err error) {
	text, err := json.Marshal(note{Node: k.Node, From: k.From, Reason: k.Reason, For: metav1.Duration{Duration: lasts}})
	if err != nil {
		return "", err
	}
	marked := metav1.ObjectMeta{Name: k.Name, Labels: map[string]string{mark: "true"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: marked,
		Subjects:   []rbacv1.Subject{{Kind: accountKind, Namespace: access.Namespace, Name: k.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: k.Role},
	}
	binding.Annotations = map[string]string{mark: string(text)}
	by := metav1.CreateOptions{FieldManager: manager}
	if binding, err = conn.Kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, by); err != nil {
		return "", err
	}
	if binding.Name != k.Name || binding.UID == "" {
		return "", access.ErrOther
	}
	k.UID, k.Created = string(binding.UID), binding.CreationTimestamp.Time
	account := &corev1.ServiceAccount{ObjectMeta: marked, AutomountServiceAccountToken: ptr.To(false)}
	account.OwnerReferences = []metav1.OwnerReference{{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding", Name: k.Name, UID: binding.UID}}
	accounts := conn.Kube.CoreV1().ServiceAccounts(access.Namespace)
	if _, err = accounts.Create(ctx, account, by); err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(lasts.Seconds()))}}
	if request, err = accounts.CreateToken(ctx, k.Name, request, by); err != nil {
		return "", err
	}
	if request.Status.Token == "" || request.Status.ExpirationTimestamp.IsZero() {
		return "", access.ErrOther
	}
	k.Expires = request.Status.ExpirationTimestamp.Time
	return request.Status.Token, nil
}

// render is the kubeconfig. Its port is that of the agent's own.
func render(conn *access.Connection, name, token, host string) ([]byte, error) {
	server, err := url.Parse(conn.Cfg.Host)
	if err != nil || server.Host == "" {
		return nil, errors.New("the agent's own kubeconfig names no server")
	}
	server.Host = net.JoinHostPort(host, cmp.Or(server.Port(), "443"))
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: server.String(), CertificateAuthorityData: conn.Cfg.CAData}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	out.CurrentContext = name
	return clientcmd.Write(*out)
}

// RevokeKubeconfig removes what an issued kubeconfig rests on; what is gone already is
// no error.
func (c *Client) RevokeKubeconfig(ctx context.Context, k types.IssuedKubeconfig) error {
	op := access.Operation{Op: "revoke kubeconfig", Target: "kubeconfig/" + k.Name}
	return c.Write(ctx, op, "revoke kubeconfig "+k.Name, func(ctx context.Context, conn *access.Connection) error {
		return remove(ctx, conn, k)
	})
}

// remove deletes the account first: without it the API server refuses the token. The
// binding goes last, so that what is left after a crash can still be found.
func remove(ctx context.Context, conn *access.Connection, k types.IssuedKubeconfig) error {
	if k.UID == "" || !strings.HasPrefix(k.Name, prefix) {
		return fmt.Errorf("%s: %w", k.Name, access.ErrNoUID)
	}
	accounts := conn.Kube.CoreV1().ServiceAccounts(access.Namespace)
	account, err := accounts.Get(ctx, k.Name, metav1.GetOptions{})
	switch {
	case access.NotFound(err):
	case err != nil:
		return err
	case account.Name != k.Name:
		return access.ErrOther
	case slices.ContainsFunc(account.OwnerReferences, func(o metav1.OwnerReference) bool { return string(o.UID) == k.UID }): // another one is somebody else's
		if err := access.DeleteObject(ctx, accounts, k.Name, string(account.UID), nil); err != nil {
			return err
		}
	}
	return access.DeleteObject(ctx, conn.Kube.RbacV1().ClusterRoleBindings(), k.Name, k.UID, nil)
}

// Kubeconfigs lists the issued kubeconfigs.
func (c *Client) Kubeconfigs(ctx context.Context) ([]types.IssuedKubeconfig, error) {
	return access.Read(ctx, c.Session, "list issued kubeconfigs", func(ctx context.Context, conn *access.Connection) (found []types.IssuedKubeconfig, err error) {
		list := func(ctx context.Context, o metav1.ListOptions) (*rbacv1.ClusterRoleBindingList, error) {
			o.LabelSelector = Selector
			return conn.Kube.RbacV1().ClusterRoleBindings().List(ctx, o)
		}
		err = access.Each(ctx, "cluster role bindings", access.StoragePage, list, func(b *rbacv1.ClusterRoleBinding) error {
			if !isForeign(b) {
				found = append(found, kubeconfigOf(b))
			}
			return nil
		})
		return found, err
	})
}

// Rows fills the table of issued kubeconfigs, by name.
func Rows(table access.Writer[types.IssuedKubeconfig]) access.Store {
	rows := access.RowsOf(table, kubeconfigOf, access.Name)
	rows.Drops = isForeign
	return rows
}

// isForeign says of a binding with our label that it is not one of ours.
func isForeign(b *rbacv1.ClusterRoleBinding) bool { return !strings.HasPrefix(b.Name, prefix) }

// kubeconfigOf is the row of a binding. One whose annotation cannot be read, or asks for
// more than is ever issued, lasts as long as one may: it must not last for ever.
func kubeconfigOf(b *rbacv1.ClusterRoleBinding) types.IssuedKubeconfig {
	var n note
	if err := json.Unmarshal([]byte(b.Annotations[mark]), &n); err != nil || n.For.Duration <= 0 || n.For.Duration > types.KubeconfigAtMost {
		n.For.Duration = types.KubeconfigAtMost
	}
	return types.IssuedKubeconfig{
		Name: b.Name, UID: string(b.UID), Role: b.RoleRef.Name, Node: cut(n.Node), From: cut(n.From), Reason: cut(n.Reason),
		Created: b.CreationTimestamp.Time, Expires: b.CreationTimestamp.Add(n.For.Duration),
	}
}

func cut(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}
