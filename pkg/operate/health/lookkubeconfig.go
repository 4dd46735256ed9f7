package health

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
)

// Kubeconfig is what a kubeconfig leads to.
type Kubeconfig struct {
	Server      string              // a URL
	Authorities []*x509.Certificate // of the server; none for those of the system
	Client      *x509.Certificate   // nil for none
	Token       string              // "" for none
	TLS         *tls.Config         // trusts these, and shows Client; nil in a copy of a device
}

// kubeconfig is the file and what it leads to.
type kubeconfig struct {
	Kubeconfig
	path string
	why  string // why it cannot be used, a sentence; "" where it can
	gone bool   // it is not there
	mode fs.FileMode
}

func (d *Device) readKubeconfig() kubeconfig {
	k := kubeconfig{path: d.Kubeconfig}
	if info, err := os.Stat(k.path); err == nil {
		k.mode = info.Mode()
	}
	var err error
	switch k.Kubeconfig, err = d.ReadKubeconfig(k.path, !d.live()); {
	case errors.Is(err, fs.ErrNotExist):
		k.gone, k.why = true, "there is no kubeconfig "+k.path
	case err != nil:
		k.why = err.Error()
	}
	return k
}

// authority is the one that expires first; nil for none.
func (k kubeconfig) authority() (first *x509.Certificate) {
	for _, c := range k.Authorities {
		if first == nil || c.NotAfter.Before(first.NotAfter) {
			first = c
		}
	}
	return first
}
