package main

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/test/player"
)

// Where secrets lie, below a device's root.
const (
	installLog   = "persist/kubelog/k3s-install.log" // the kube container's, of k3s
	statusFile   = "run/zedkube/EdgeNodeClusterStatus/global.json"
	manifestFile = "persist/vault/manifests/registration.yaml"
	keyFile      = "persist/certs/ecdh.key.pem"
)

// leak NODE: the kube container writes the cluster's token into its log.
func leak(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	path := filepath.Join(m.Root, installLog)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte("k3s joins with "+s.fleet.Token()+" now\n"), 0o600)
}

// hidden is a secret, and the files of a device that may hold it.
type hidden struct {
	what  string
	bytes []string
	files []string
}

// in reports that the secret can be read in a text.
func (h hidden) in(text string) bool {
	for _, b := range h.bytes {
		for _, form := range []string{b, base64.RawStdEncoding.EncodeToString([]byte(b)), hex.EncodeToString([]byte(b))} {
			if strings.Contains(text, form) {
				return true
			}
		}
	}
	return false
}

// hiddenOn are the secrets of a device: all tokens that the cluster has had, the
// manifest and the private key.
func (s *story) hiddenOn(m *player.Member) ([]hidden, error) {
	text, err := os.ReadFile(filepath.Join(m.Root, keyFile))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the device has no key")
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	scalar, err := key.Bytes()
	if err != nil {
		return nil, err
	}
	const named = "name: fleet-registration" // whatever becomes of the lines
	return []hidden{
		{"the token", []string{s.fleet.Token()}, []string{statusFile, installLog}},
		{"a former token", s.tokens, []string{installLog}},
		{"the token of a kubeconfig", s.handed, nil},
		{"the manifest", []string{s.fleet.Manifest(), named}, []string{manifestFile}},
		{"the private key", []string{strings.Split(string(text), "\n")[1], string(scalar)}, []string{keyFile}},
	}, nil
}

// unleaked: nobody was answered with a secret, and no device has one in a file,
// its agent's log included, but where it belongs and for root alone.
func unleaked(s *story, _ *testscript.TestScript, _ []string) error {
	for _, m := range s.fleet.Members {
		secrets, err := s.hiddenOn(m)
		if err != nil {
			return err
		}
		for _, body := range s.answers {
			for _, h := range secrets {
				if h.in(body) {
					return fmt.Errorf("%s is in an answer: %s", h.what, body)
				}
			}
		}
		if err := unleakedBelow(m.Root, secrets); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

// unleakedBelow looks through all files below root.
func unleakedBelow(root string, secrets []hidden) error {
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !d.Type().IsRegular() {
			return nil
		}
		content, failed := os.ReadFile(path)
		if errors.Is(failed, fs.ErrNotExist) {
			return nil
		}
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		for _, h := range secrets {
			if !h.in(string(content)) {
				continue
			}
			if err := h.mayBe(root, path); err != nil {
				return err
			}
			found[h.what] = true
		}
		return nil
	})
	for _, what := range []string{"the token", "the private key"} {
		if err == nil && !found[what] {
			return fmt.Errorf("%s is nowhere: it was not looked for as it is", what)
		}
	}
	return err
}

// mayBe fails where the secret does not belong, or others can read it.
func (h hidden) mayBe(root, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, file := range h.files {
		if path == filepath.Join(root, file) && info.Mode() == 0o600 {
			return nil
		}
	}
	return fmt.Errorf("%s is in %s, mode %s", h.what, path, info.Mode())
}
