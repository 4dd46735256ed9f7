package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var made = time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)

// device makes a root of files, all written a minute before the bundle.
func device(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		write(t, filepath.Join(root, name), content)
	}
	return root
}

func write(t *testing.T, file, content string) {
	t.Helper()
	at := made.Add(-time.Minute)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600), os.Chtimes(file, at, at)); err != nil {
		t.Fatal(err)
	}
}

// packed writes a bundle and unpacks it.
func packed(t *testing.T, b Bundle) (root string, m Manifest) {
	t.Helper()
	b.Made = made
	if b.Limit == 0 {
		b.Limit = DefaultLimit
	}
	var out bytes.Buffer
	m, err := b.Write(t.Context(), &out)
	if err != nil {
		t.Fatal(err)
	}
	if int64(out.Len()) > b.Limit {
		t.Errorf("%d bytes of %d", out.Len(), b.Limit)
	}
	root = t.TempDir()
	unpack(t, &out, root)
	raw, err := os.ReadFile(filepath.Join(root, ManifestFile))
	var read Manifest
	if err := errors.Join(err, json.Unmarshal(raw, &read)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, read); diff != "" {
		t.Errorf("the manifest in the archive (-returned +read):\n%s", diff)
	}
	return root, m
}

func unpack(t *testing.T, from io.Reader, root string) {
	t.Helper()
	gz, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(gz)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsLocal(h.Name) || h.Typeflag != tar.TypeReg || h.Mode != 0o600 {
			t.Errorf("an odd entry: %+v", h)
			continue
		}
		content, err := io.ReadAll(r)
		file := filepath.Join(root, h.Name)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, content, 0o600), os.Chtimes(file, h.ModTime, h.ModTime)); err != nil {
			t.Fatal(err)
		}
	}
}

// secrets by what they are; none may be in a bundle, in whatever form.
var secrets = map[string]string{
	"cluster token": "K10f00ba2f00ba2f00ba2::server:hush-hush-41", "plain token": "blue Horse 17!", "cipher data": "c2VhbGVkLXNlYWxlZC1zZWFsZWQ=",
	"VNC password": "vnc-Pass-9", "cloud-init": "I2Nsb3VkLWNvbmZpZwpwYXNzd29yZDogaHVudGVyMg==", "kubeconfig key": "a3ViZWNvbmZpZy1rZXktYnl0ZXM=",
	"kubeconfig token": "kube-Tok-77", "registry password": "reg-Pw-55", "private key": "MHcCAQEEIBsecretsecretsecret", "override": "dG9rZW46IG92ZXItdG9rLTg4Cg==",
	"inside the override": "over-tok-88", "datastore": "ds-Key-33", "number": "8675309123",
	"second document": "second-doc-tok-19", "registration": "reg-cluster-tok-64", "curl password": "curl-Pw-21", "import": "imp0rt-t0ken-of-mine",
	"k3s token": "k3s-server-tok-55", "bearer": "bearer-tok-of-a-trace-77",
}

// planted is a device with secrets wherever they could be.
func planted(t *testing.T) string {
	s := secrets
	pem := "-----BEGIN EC PRIVATE KEY-----\n" + s["private key"] + "\n-----END EC PRIVATE KEY-----\n"
	quoted := func(v any) string { raw, _ := json.Marshal(v); return string(raw) }
	nested := quoted(map[string]any{"note": quoted(map[string]any{"password": s["registry password"], "deep": quoted(map[string]string{"token": s["plain token"]})})})
	log := quoted(map[string]string{"level": "info", "msg": "join with token " + s["cluster token"]}) + "\n" +
		"k3s server --token " + s["kubeconfig token"] + " --x\n" + "pulled https://robot:" + s["registry password"] + "@registry/x\n" + pem +
		"the word is " + s["plain token"] + ", in base64 " + base64.StdEncoding.EncodeToString([]byte("it is "+s["plain token"]+", really")) + "\n" + quoted(map[string]string{"msg": pem + nested}) + "\n"
	return device(t, map[string]string{
		"run/zedkube/EdgeNodeClusterStatus/global.json": fmt.Sprintf(`{"ClusterName":"plant-7","ClusterIPIsReady":true,"EncryptedClusterToken":%s}`, quoted(s["plain token"])),
		"run/zedagent/EdgeNodeInfo/global.json":         `{"DeviceName":"Press_Line_2","DeviceID":"c4a1d7e2-90b3-4d58-8a6e-1be0f7723c05"}`,
		"run/zedagent/EdgeNodeClusterConfig/global.json": fmt.Sprintf(`{"Initialized":true,"Valid":true,"ClusterID":{"UUID":"5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11","Version":""},"ClusterIPPrefix":{"IP":"10.90.7.21","Mask":"////AA=="},
			"CipherToken":{"CipherBlockID":"5d0c","CipherContextID":"site","InitialValue":"AAECAwQFBgcICQoLDA0ODw==","pubsub-large-CipherData":%q,"IsCipher":true}}`, s["cipher data"]),
		"persist/status/zedkube/ClusterMembership/global.json":                     fmt.Sprintf(`{"State":"member","Config":{"CipherToken":{"CipherBlockID":"5d0c","pubsub-large-CipherData":%q}}}`, s["cipher data"]),
		"persist/status/zedkube/ClusterMembership/global.json.bak":                 fmt.Sprintf(`{"State":"member","Config":{"CipherToken":{"CipherBlockID":"5d0c","pubsub-large-CipherData":%q}}}`, s["cipher data"]),
		"run/domainmgr/DomainStatus/9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34.json":     fmt.Sprintf(`{"VncPasswd":%q,"EnvVariables":{"A":%q},"Pin":{"Secret":%s}}`, s["VNC password"], s["registry password"], s["number"]),
		"run/zedagent/AppInstanceConfig/9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34.json": fmt.Sprintf(`{"DisplayName":"Label_Printer","UUIDandVersion":{"UUID":"9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34","Version":"3"},"pubsub-large-CloudInitUserData":%q,"Notes":%s}`, s["cloud-init"], quoted(nested)),
		"run/zedagent/DatastoreConfig/a.json":                                      fmt.Sprintf(`{"ApiKey":%q,"Password":%q,"Fqdn":"https://x"}`, s["datastore"], s["registry password"]),
		"run/zedagent/DatastoreConfig/half.json":                                   fmt.Sprintf(`{"ApiKey":%q,"Password":%q`, s["datastore"], s["registry password"]),
		"run/zedagent/ConfigItemValueMap/global.json":                              fmt.Sprintf(`{"GlobalSettings":{"k3s.config.override":{"Key":"k3s.config.override","ItemType":3,"StrValue":%q}}}`, s["override"]),
		"run/.kube/k3s/k3s.yaml":                                                   "clusters:\n- name: default\n  cluster:\n    server: https://127.0.0.1:6443\nusers:\n- name: default\n  user:\n    client-key-data: " + s["kubeconfig key"] + "\n    token: " + s["kubeconfig token"] + "\n",
		"persist/vault/k3s-user-override.yaml":                                     "token: " + s["inside the override"] + "\n---\nagent-token: " + s["second document"] + "\n",
		"persist/vault/manifests/registration.yaml":                                "kind: Namespace\n---\nkind: Secret\ndata:\n  token: " + base64.StdEncoding.EncodeToString([]byte(s["registration"])) + "\n",
		"persist/certs/ecdh.key.pem":                                               pem,
		"persist/zedkube/audit/1.jsonl":                                            `{"ID":"1","Op":"cordon","Why":"password=` + s["registry password"] + `"}` + "\n",
		"persist/kubelog/k3s-install.log": log + "and " + s["inside the override"] + ", " + s["second document"] + ", " + s["registration"] + "\n" +
			"curl -u robot:" + s["curl password"] + " https://rancher/v3/import/" + s["import"] + "_c-m-1.yaml\n",
		"persist/kubelog/k3s.log": log + `time="2026-11-20T14:03:12Z" level=info msg="To join server node to cluster: k3s server -s https://10.90.7.21:6443 -t K10` + strings.Repeat("0a", 32) + "::server:" + s["k3s token"] + `"` + "\n" +
			"I1120 14:03:12.000000    4711 round_trippers.go:469]     Authorization: Bearer " + s["bearer"] + "\n",
		"persist/kubelog/k3s.log.1":             log,
		"persist/kubelog/upgrade-component.log": log + "2026/11/20 14:03:12 KubectlApply: https://robot:" + s["curl password"] + "@mirror/longhorn.yaml\n",
		"persist/newlog/collect/dev.log.1":      log,
		"persist/newlog/collect/app.9f27.log":   "what an application says",
		"run/zedkube.pid":                       "4711\n", "run/zedkube.touch": "", "run/eve-hv-type": "k\n",
		"run/edgeview/VncParams/vmiVNC.run": `{"VMIName":"x","VNCPort":5907}`,
	})
}
