package health

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

// kubeconfig is the part of one that a node uses.
type kubeconfig struct {
	path   string
	why    string // why it cannot be used, a sentence; "" where it can
	gone   bool   // it is not there
	mode   fs.FileMode
	age    time.Duration
	server string
	roots  []*x509.Certificate
	client *x509.Certificate
	pair   *tls.Certificate
	token  string
}

// kubeconfigFile is its form, as kubectl's.
type kubeconfigFile struct {
	CurrentContext string `json:"current-context"`
	Contexts       []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
			User    string `json:"user"`
		} `json:"context"`
	} `json:"contexts"`
	Clusters []struct {
		Name    string        `json:"name"`
		Cluster kubeconfigEnd `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string         `json:"name"`
		User kubeconfigUser `json:"user"`
	} `json:"users"`
}

type kubeconfigEnd struct {
	Server string `json:"server"`
	CAData string `json:"certificate-authority-data"`
	CAFile string `json:"certificate-authority"`
}

type kubeconfigUser struct {
	CertData  string `json:"client-certificate-data"`
	CertFile  string `json:"client-certificate"`
	KeyData   string `json:"client-key-data"`
	KeyFile   string `json:"client-key"`
	Token     string `json:"token"`
	TokenFile string `json:"tokenFile"`
}

// readKubeconfig reads the file; what is wrong with it is in why.
func readKubeconfig(path string, now time.Time) kubeconfig {
	k := kubeconfig{path: path}
	info, err := os.Stat(path)
	if err == nil {
		k.mode, k.age = info.Mode(), now.Sub(info.ModTime())
	}
	text, err := readSmall(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		k.gone, k.why = true, "there is no kubeconfig "+path
		return k
	case err != nil:
		k.why = "the kubeconfig cannot be read: " + err.Error()
		return k
	}
	var file kubeconfigFile
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		k.why = "the kubeconfig is no YAML: " + err.Error()
		return k
	}
	if err := k.take(file); err != nil {
		k.why = "the kubeconfig " + err.Error()
	}
	return k
}

// take takes cluster and user of the present context, or the only ones.
func (k *kubeconfig) take(file kubeconfigFile) error {
	cluster, user := "", ""
	for _, c := range file.Contexts {
		if c.Name == file.CurrentContext || len(file.Contexts) == 1 {
			cluster, user = c.Context.Cluster, c.Context.User
		}
	}
	var end kubeconfigEnd
	for _, c := range file.Clusters {
		if c.Name == cluster || len(file.Clusters) == 1 {
			end = c.Cluster
		}
	}
	if k.server = end.Server; k.server == "" {
		return errors.New("names no server")
	}
	if u, err := url.Parse(end.Server); err != nil || u.Host == "" {
		return errors.New("names a server that is no URL")
	}
	if ca, err := k.data(end.CAData, end.CAFile); err != nil {
		return fmt.Errorf("has no usable CA: %w", err)
	} else if k.roots = certificatesIn(ca); len(k.roots) == 0 && (end.CAData != "" || end.CAFile != "") {
		return errors.New("has no usable CA: it is not a certificate")
	}
	for _, u := range file.Users {
		if u.Name == user || len(file.Users) == 1 {
			return k.credentials(u.User)
		}
	}
	return errors.New("names no user")
}

func (k *kubeconfig) credentials(u kubeconfigUser) error {
	k.token = u.Token
	if u.TokenFile != "" && k.token == "" {
		token, err := readSmall(k.beside(u.TokenFile))
		if err != nil {
			return fmt.Errorf("has no usable token: %w", err)
		}
		k.token = token
	}
	cert, err := k.data(u.CertData, u.CertFile)
	if err != nil {
		return fmt.Errorf("has no usable client certificate: %w", err)
	}
	if own := certificatesIn(cert); len(own) > 0 {
		k.client = own[0]
	}
	if k.client == nil && k.token == "" {
		return errors.New("has neither a client certificate nor a token")
	}
	key, err := k.data(u.KeyData, u.KeyFile)
	if err != nil {
		return fmt.Errorf("has no usable client key: %w", err)
	}
	if k.client != nil {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("has a client certificate and no key to it: %w", err)
		}
		k.pair = &pair
	}
	return nil
}

// data is what stands in the file in base64, or in a file beside it.
func (k *kubeconfig) data(inline, file string) ([]byte, error) {
	if inline == "" && file != "" {
		text, err := readSmall(k.beside(file))
		return []byte(text), err
	}
	return base64.StdEncoding.DecodeString(inline)
}

func (k *kubeconfig) beside(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(k.path), file)
}

// authority is the one that ends first; nil for none.
func (k *kubeconfig) authority() (first *x509.Certificate) {
	for _, c := range k.roots {
		if first == nil || c.NotAfter.Before(first.NotAfter) {
			first = c
		}
	}
	return first
}

func certificatesIn(data []byte) (list []*x509.Certificate) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			list = append(list, cert)
		}
	}
	return list
}
