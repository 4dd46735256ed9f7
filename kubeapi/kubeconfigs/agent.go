package kubeconfigs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// Who an agent is to the API server; deploy/rbac.yaml names the group.
const (
	agentUser  = "system:zedkube:" // and the name of the node
	agentGroup = "system:zedkube"
)

var errNotSigned = errors.New("the controller manager has not signed the certificate")

// IssueAgentKubeconfig has the cluster sign a client certificate for zedkube on that node,
// and returns a kubeconfig with it for the API server that this connection leads to. It takes
// an administrator, who makes, approves and forgets the request.
func (c *Client) IssueAgentKubeconfig(ctx context.Context, node types.Node, lasts time.Duration) (text []byte, err error) {
	user := pkix.Name{CommonName: agentUser + node.Name, Organization: []string{agentGroup}}
	request, key, err := requestOf(user)
	if err != nil {
		return nil, fmt.Errorf("issue a kubeconfig for zedkube: %w", err)
	}
	op := access.Operation{Op: "issue kubeconfig", Target: "kubeconfig/" + user.CommonName}
	err = c.Write(ctx, op, "issue a kubeconfig for zedkube", func(ctx context.Context, conn *access.Connection) error {
		if len(conn.Cfg.CAData) == 0 {
			return ErrNoAuthority
		}
		signed, err := sign(ctx, conn, request, lasts)
		if err != nil {
			return err
		}
		out := clientcmdapi.NewConfig()
		out.Clusters[agentGroup] = &clientcmdapi.Cluster{Server: conn.Cfg.Host, CertificateAuthorityData: conn.Cfg.CAData}
		out.AuthInfos[agentGroup] = &clientcmdapi.AuthInfo{ClientCertificateData: signed, ClientKeyData: key}
		out.Contexts[agentGroup] = &clientcmdapi.Context{Cluster: agentGroup, AuthInfo: agentGroup}
		out.CurrentContext = agentGroup
		text, err = clientcmd.Write(*out)
		return err
	})
	return text, err
}

// requestOf is a certificate request and its key, in PEM.
func requestOf(user pkix.Name) (request, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	asked, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: user}, private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: asked}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

// sign makes and approves the request, and waits for the certificate.
func sign(ctx context.Context, conn *access.Connection, request []byte, lasts time.Duration) ([]byte, error) {
	api := conn.Kube.CertificatesV1().CertificateSigningRequests()
	r, err := api.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "zedkube-agent-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: certificatesv1.KubeAPIServerClientSignerName, ExpirationSeconds: ptr.To(int32(lasts.Seconds())),
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		return nil, err
	}
	defer func() { // the certificate is of no use without the key; Kubernetes removes the request after an hour
		_ = api.Delete(ctx, r.Name, access.Exactly(string(r.UID)))
	}()
	r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: manager, Message: "asked for by an administrator on a device",
	})
	if _, err := api.UpdateApproval(ctx, r.Name, r, metav1.UpdateOptions{FieldManager: manager}); err != nil {
		return nil, err
	}
	w, err := api.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, r.Name).String()})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if now, ok := event.Object.(*certificatesv1.CertificateSigningRequest); ok && now.UID == r.UID && len(now.Status.Certificate) > 0 {
			return now.Status.Certificate, nil
		}
	}
	return nil, errNotSigned
}
