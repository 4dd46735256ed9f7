//go:build linux

package devcluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func whoAmI(t *testing.T, config *rest.Config) authv1.UserInfo {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.UserInfo
}

func identityPasses(t *testing.T, c *Cluster) {
	config := nodeConfig(t, c, 0)
	config.UserAgent = "someone/1.0"
	if me := whoAmI(t, config); me.Username != "system:admin" || !slices.Contains(me.Groups, "system:masters") {
		t.Errorf("the administrator is %+v", me)
	}
	calls, err := c.Calls()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(calls, func(call Call) bool {
		return call.UserAgent == "someone/1.0" && call.From == c.Nodes[0].IP && call.Resource == "selfsubjectreviews"
	}) {
		t.Error("the audit log does not know who asked")
	}
	token, err := c.Client().CoreV1().ServiceAccounts(AppNamespace).CreateToken(t.Context(), "default", &authv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token.Status.Token
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("X-Remote-User", "system:admin")
			return next.RoundTrip(r)
		})
	})
	if me := whoAmI(t, config); me.Username != "system:serviceaccount:"+AppNamespace+":default" {
		t.Errorf("the owner of a token is %+v", me)
	}
}

func newCA(t *testing.T, c *Cluster) {
	old := nodeConfig(t, c, 0)
	client := nodeClient(t, c, 0)
	if err := c.RotateCA(0); err != nil {
		t.Fatal(err)
	}
	var unknown x509.UnknownAuthorityError
	if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !errors.As(err, &unknown) {
		t.Errorf("who trusts the old authority gets %v", err)
	}
	old.Insecure, old.CAData = true, nil
	credulous, err := kubernetes.NewForConfig(old)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := credulous.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("who has an old certificate gets %v", err)
	}
	if me := whoAmI(t, nodeConfig(t, c, 0)); me.Username != "system:admin" {
		t.Errorf("with the new kubeconfig, the administrator is %+v", me)
	}
	if me := whoAmI(t, nodeConfig(t, c, 1)); me.Username != "system:admin" {
		t.Errorf("on the other node, the administrator is %+v", me)
	}
}

func certSkew(t *testing.T, c *Cluster) {
	client := nodeClient(t, c, 0)
	for _, skew := range []time.Duration{time.Hour, -time.Hour} {
		if err := c.SetCertSkew(0, skew); err != nil {
			t.Fatal(err)
		}
		_, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		var verify *tls.CertificateVerificationError
		var invalid x509.CertificateInvalidError
		if !errors.As(err, &verify) || !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
			t.Errorf("skew %v: %v", skew, err)
		}
	}
	if err := c.SetCertSkew(0, 0); err != nil {
		t.Fatal(err)
	}
}
