package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/zedkube/zedkube/pkg/base/filewatch"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/redact"
	"github.com/zedkube/zedkube/pkg/base/safefile"
)

const (
	// RescanEvery finds what inotify does not show: symbolic links, modes, lost
	// events.
	RescanEvery = 10 * time.Second
	// Settle gives a writer that truncates and writes in place the time to end.
	Settle = 50 * time.Millisecond
)

// maxKubeconfig bounds what is read of the file; the kube container's has 3 kB.
const maxKubeconfig = 1 << 20

// KubeconfigFile follows a file that may come late, change under our eyes, be half
// written or vanish for a while (docs/wire.md, "Files"). What
// cannot be used is "not yet": it is reported once, and the last good
// configuration stays in use. That holds for a vanished file too: whether the
// server it led to still answers is seen by asking the server.
type KubeconfigFile struct {
	Log     logrus.FieldLogger
	Path    string
	Pulse   *loop.Pulse              // of the looks at the file, and of the loops that stuck names
	Stuck   func() string            // the other loops that do not turn; nil for none
	Apply   func(*rest.Config) error // called when the configuration has changed
	Missing func(reason string)      // called when the file cannot be used

	text     [sha256.Size]byte // of the file that Apply took last
	used     [sha256.Size]byte // of what it means
	reported string            // the last complaint
	stuckAt  string            // the loops that were stuck at the last look
}

// Watch looks at the file now and at every change until ctx is done.
func (k *KubeconfigFile) Watch(ctx context.Context) {
	changed := make(chan struct{}, 1)
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() {
		watch, err := filewatch.New()
		if err == nil {
			err = watch.Run(ctx, func() {
				select {
				case changed <- struct{}{}:
				default: // it is looked at anyway
				}
			}, k.Path)
		}
		if err != nil {
			k.Log.WithError(err).Warn("kubeconfig is only checked from time to time")
		}
	})
	rescan := time.NewTicker(RescanEvery)
	defer rescan.Stop()
	for {
		k.Turn()
		select {
		case <-ctx.Done():
			return
		case <-rescan.C:
			continue
		case <-changed:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(Settle):
		}
	}
}

// look reads the file and hands on what changed. A file that has not changed is not parsed.
func (k *KubeconfigFile) look() {
	data, unread := ReadTrusted(k.Path)
	text := sha256.Sum256(data)
	if unread == nil && text == k.text {
		k.reported = ""
		return
	}
	cfg, sum, err := RestConfig(k.Path, func(string) ([]byte, error) { return data, unread })
	if err == nil && sum != k.used {
		err = k.Apply(cfg)
	}
	if err != nil {
		complaint := fmt.Sprintf("%x %v", sum, err)
		if complaint != k.reported {
			k.reported = complaint
			k.Log.WithError(err).Warn("kubeconfig cannot be used yet")
		}
		k.Missing(err.Error())
		return
	}
	k.text, k.used, k.reported = text, sum, ""
}

// Kubeconfig is what a kubeconfig leads to.
type Kubeconfig struct {
	Server      string              // a URL
	Authorities []*x509.Certificate // of the server; none for those of the system
	Client      *x509.Certificate   // nil for none
	Token       string              // "" for none
	TLS         *tls.Config         // trusts these, and shows Client; nil in a copy of a device
}

// ReadKubeconfig reads the file at path and refuses what the agent refuses. In a
// copy of a device it may belong to anybody, and its secrets may be redacted.
func ReadKubeconfig(path string, copied bool) (Kubeconfig, error) {
	read := ReadTrusted
	if copied {
		read = readCopy
	}
	cfg, _, err := RestConfig(path, read)
	if err != nil {
		return Kubeconfig{}, err
	}
	k := Kubeconfig{Server: cfg.Host, Authorities: certificates(cfg.CAData), Token: cfg.BearerToken}
	if own := certificates(cfg.CertData); len(own) > 0 {
		k.Client = own[0]
	}
	if copied {
		return k, nil
	}
	if k.TLS, err = rest.TLSConfigFor(cfg); err != nil {
		return Kubeconfig{}, fmt.Errorf("set up certificates of kubeconfig %s: %w", path, err)
	}
	if k.TLS == nil { // there is a token, and the authorities are the system's
		k.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return k, nil
}

// RestConfig returns the configuration of the current context and a hash of
// all it is made of. The hash is set for an unusable file too, to tell one from
// the next.
func RestConfig(path string, read func(path string) ([]byte, error)) (*rest.Config, [sha256.Size]byte, error) {
	var none [sha256.Size]byte
	data, err := read(path)
	if err != nil {
		return nil, none, fmt.Errorf("read kubeconfig: %w", err)
	}
	sum := sha256.Sum256(data)
	raw, err := clientcmd.Load(data)
	if err != nil {
		// The parser's text may quote the file, which holds a key.
		return nil, sum, fmt.Errorf("parse kubeconfig %s: not a complete kubeconfig", path)
	}
	if err := clientcmdapi.MinifyConfig(raw); err != nil {
		return nil, sum, fmt.Errorf("parse kubeconfig %s: %w", path, err)
	}
	if err := inlineOnly(raw); err != nil {
		return nil, sum, fmt.Errorf("refuse kubeconfig %s: %w", path, err)
	}
	cfg, err := clientcmd.NewDefaultClientConfig(*raw, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, sum, fmt.Errorf("parse kubeconfig %s: %w", path, err)
	}
	if !hasCredentials(cfg) {
		return nil, sum, fmt.Errorf("parse kubeconfig %s: no credentials", path)
	}
	whole, err := clientcmd.Write(*raw)
	if err != nil {
		return nil, sum, fmt.Errorf("encode kubeconfig %s: %w", path, err)
	}
	return cfg, sha256.Sum256(whole), nil
}

// readCopy reads a file of which nothing is used but what it says. Keys are
// decoded as bytes.
func readCopy(path string) ([]byte, error) {
	data, err := safefile.Read(path, maxKubeconfig)
	return bytes.ReplaceAll(data, []byte(redact.Hidden), []byte(redact.HiddenBytes)), err
}

// ReadTrusted reads the file if nobody but root or our own user can have written
// it: it decides to which server this node's rights go.
func ReadTrusted(path string) ([]byte, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := safefile.Others(info); err != nil {
		return nil, fmt.Errorf("%s: %w: chown root %s; chmod go-w %s", path, err, path, path)
	}
	return safefile.All(f, maxKubeconfig)
}

// inlineOnly refuses what a kubeconfig of k3s does not have, and what would run a
// program, send the content of another file to the server, go through another
// server, or act as somebody else: the agent is root.
func inlineOnly(raw *clientcmdapi.Config) error {
	for _, cluster := range raw.Clusters {
		switch {
		case cluster.CertificateAuthority != "":
			return errors.New("certificate-authority names a file; only certificate-authority-data is accepted")
		case cluster.InsecureSkipTLSVerify:
			return errors.New("insecure-skip-tls-verify is set: the server's certificate has to be checked")
		case cluster.ProxyURL != "":
			return errors.New("proxy-url is set: requests must go directly to the server")
		}
	}
	for _, user := range raw.AuthInfos {
		switch {
		case user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0:
			return errors.New("the user impersonates another one (as, as-uid, as-groups or as-user-extra); only the user's own permissions are used")
		case user.Exec != nil:
			return errors.New("the user has an exec plug-in, and no program is run; only data in the file itself is accepted")
		case user.AuthProvider != nil:
			return errors.New("the user has an auth-provider; only data in the file itself is accepted")
		case user.TokenFile != "":
			return errors.New("the user has a tokenFile; only data in the file itself is accepted")
		case user.ClientCertificate != "" || user.ClientKey != "":
			return errors.New("client-certificate or client-key names a file; only client-certificate-data and client-key-data are accepted")
		}
	}
	return nil
}

// hasCredentials tells a file that was cut inside its last entry, the user,
// from a whole one: nobody needs a kubeconfig to be anonymous.
func hasCredentials(cfg *rest.Config) bool {
	return len(cfg.CertData) > 0 || cfg.BearerToken != "" || cfg.Username != ""
}

// Turn is one look at the file. It does not end for the watchdog while another
// loop is stuck: one pulse shows all of them, and who reads it sees this loop stuck.
func (k *KubeconfigFile) Turn() {
	if k.stuckAt == "" {
		k.Pulse.Begin()
	}
	k.look()
	stuck := ""
	if k.Stuck != nil {
		stuck = k.Stuck()
	}
	if stuck != "" && stuck != k.stuckAt {
		k.Log.WithField("loops", stuck).Error("loops of the connection to the API server are stuck")
	}
	if k.stuckAt = stuck; stuck == "" {
		k.Pulse.End(RescanEvery, k.reported != "")
	}
}
