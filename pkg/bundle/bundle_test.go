package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/zedkube/zedkube/pkg/overview"
	"github.com/zedkube/zedkube/pkg/topicview"
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
		"persist/vault/k3s-user-override.yaml":                                     "token: " + s["inside the override"] + "\n",
		"persist/certs/ecdh.key.pem":                                               pem,
		"persist/zedkube/audit/1.jsonl":                                            `{"ID":"1","Op":"cordon","Why":"password=` + s["registry password"] + `"}` + "\n",
		"persist/kubelog/k3s-install.log":                                          log + "and " + s["inside the override"] + "\n",
		"persist/newlog/collect/dev.log.1":                                         log,
		"persist/newlog/collect/app.9f27.log":                                      "what an application says",
		"run/zedkube.pid":                                                          "4711\n", "run/zedkube.touch": "", "run/eve-hv-type": "k\n",
		"run/edgeview/VncParams/vmiVNC.run": `{"VMIName":"x","VNCPort":5907}`,
	})
}

func TestNoSecretLeavesTheDevice(t *testing.T) {
	answer := func(form Form, text string) Source {
		return Source{Name: fmt.Sprintf("answer-%d", form), Form: form, Get: func(context.Context) ([]byte, error) { return []byte(text), nil }}
	}
	root, m := packed(t, Bundle{Root: planted(t), Version: "1.4.0", Node: "press-line-2", Extras: []Source{
		answer(Text, "the token is "+secrets["plain token"]), answer(JSON, `{"password":"`+secrets["VNC password"]+`"}`),
		{Name: "failed", Get: func(context.Context) ([]byte, error) { return nil, errors.New("token: " + secrets["kubeconfig token"]) }},
	}})
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		for what, secret := range secrets {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), strings.Trim(fmt.Sprintf("%q", secret), `"`)} {
				if bytes.Contains(raw, []byte(form)) {
					t.Errorf("%s: the %s is in it:\n%s", path, what, raw)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, e := range m.Files {
		if strings.Contains(e.Path, "vault") || strings.Contains(e.Path, "certs") || strings.Contains(e.Path, "app.") {
			t.Errorf("%s is packed", e.Path)
		}
	}
	if len(m.Files) < 18 {
		t.Errorf("only %d files: %+v", len(m.Files), m)
	}
}

func TestAnUnpackedBundleReadsAsTheDeviceDid(t *testing.T) {
	device := planted(t)
	root, _ := packed(t, Bundle{Root: device})
	before, after := overview.Read(device, made), overview.Read(root, time.Now())
	if !after.Copied || !after.ReadAt.Equal(made) || after.Node.Name != "press-line-2" || !after.Cluster.Wanted || after.Cluster.Membership.State != "member" {
		t.Errorf("%+v", after)
	}
	ignored := cmpopts.IgnoreFields(overview.Overview{}, "Copied", "Problems", "Agent", "API", "Disks", "Unreadable")
	if diff := cmp.Diff(before, after, ignored); diff != "" {
		t.Errorf("(-device +bundle):\n%s", diff)
	}
	values, err := topicview.Read(root, topicview.Topic{Agent: "zedagent", Name: "EdgeNodeClusterConfig"}, "global")
	if err != nil || values[0].Why != "" || !values[0].Written.Equal(made.Add(-time.Minute)) {
		t.Errorf("%+v, %v", values, err)
	}
}

func TestNothingButFilesOfThePlacesIsPacked(t *testing.T) {
	root := device(t, map[string]string{
		"run/zedkube/NodeDrainStatus/global.json": `{"Status":2}`,
		"run/zedkube/NodeDrainStatus/tmp17":       `half`,
		"persist/certs/key.json":                  `"away"`,
		"elsewhere/detach.log":                    "away",
	})
	topic := filepath.Join(root, "run/zedkube/NodeDrainStatus")
	outside := filepath.Join(t.TempDir(), "away.json")
	write(t, outside, `"away"`)
	if err := errors.Join(
		os.Symlink("../../../persist/certs/key.json", filepath.Join(topic, "inside.json")), os.Symlink(outside, filepath.Join(topic, "outside.json")),
		syscall.Mkfifo(filepath.Join(topic, "fifo.json"), 0o600), os.Symlink("../../persist/certs", filepath.Join(root, "run/zedkube/Certs")),
		os.Symlink("../elsewhere", filepath.Join(root, "persist/kubelog")), os.MkdirAll(filepath.Join(root, "run/.kube/k3s/k3s.yaml"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	_, m := packed(t, Bundle{Root: root})
	var got []string
	for _, e := range m.Files {
		got = append(got, e.Path)
	}
	if diff := cmp.Diff([]string{"run/zedkube/NodeDrainStatus/global.json"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, want := range []string{"run/zedkube/NodeDrainStatus/inside.json", "run/zedkube/NodeDrainStatus/outside.json", "run/zedkube/NodeDrainStatus/fifo.json", "persist/kubelog", "run/.kube/k3s/k3s.yaml"} {
		if !slices.ContainsFunc(m.LeftOut, func(l Lack) bool { return l.Path == want && l.Why != "" }) {
			t.Errorf("%s is not among what was left out: %+v", want, m.LeftOut)
		}
	}
}

func TestTheArchiveStaysWithinItsLimitAndSaysWhatItLacks(t *testing.T) {
	noise := func(n int) string {
		b := make([]byte, n/2)
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		return fmt.Sprintf(`"%x"`, b)
	}
	files := map[string]string{"run/a/Topic/small.json": `{}`, "run/a/Topic/huge.json": `"` + strings.Repeat("x", maxFile) + `"`}
	for i := range 8 {
		files[fmt.Sprintf("run/a/Topic/noise%d.json", i)] = noise(256 << 10)
	}
	_, m := packed(t, Bundle{Root: device(t, files), Limit: reserve + 512<<10})
	lacks := 0
	for _, l := range m.LeftOut {
		if strings.HasPrefix(l.Path, "run/a/Topic/") {
			lacks++
		}
	}
	if !slices.ContainsFunc(m.Files, func(e Entry) bool { return e.Path == "run/a/Topic/small.json" }) || len(m.Files)+lacks != 10 || lacks < 2 || len(m.Files) < 3 {
		t.Errorf("%d files, %d left out: %+v", len(m.Files), lacks, m.LeftOut)
	}
}

func TestOnlyTheEndOfALogIsPackedFromTheBeginningOfALine(t *testing.T) {
	line := strings.Repeat("a line of the log ", 5) + "\n"
	root, m := packed(t, Bundle{Root: device(t, map[string]string{"persist/kubelog/detach.log": strings.Repeat(line, logTail/len(line)+100)})})
	raw, err := os.ReadFile(filepath.Join(root, "persist/kubelog/detach.log"))
	if err != nil || len(raw) > logTail || len(raw)%len(line) != 0 || m.Files[0].Cut == 0 {
		t.Errorf("%d bytes, %+v, %v", len(raw), m.Files, err)
	}
}

func TestOfTheDevicesLogTheNewestFilesArePacked(t *testing.T) {
	files := map[string]string{}
	for i := range 6 {
		files[fmt.Sprintf("persist/newlog/collect/dev.log.%d", i)] = "x\n"
	}
	root := device(t, files)
	for i := range 6 {
		at := made.Add(time.Duration(i) * -time.Hour)
		if err := os.Chtimes(filepath.Join(root, fmt.Sprintf("persist/newlog/collect/dev.log.%d", i)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	_, m := packed(t, Bundle{Root: root})
	if len(m.Files) != maxLogs || m.Files[0].Path != "persist/newlog/collect/dev.log.0" {
		t.Errorf("%+v", m.Files)
	}
}

func TestABundleEndsWithItsContextAndItsWriter(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stop := Source{Name: "x", Get: func(context.Context) ([]byte, error) { cancel(); return nil, nil }}
	if _, err := (Bundle{Root: planted(t), Made: made, Limit: DefaultLimit, Extras: []Source{stop}}).Write(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	full := errors.New("no space left on device")
	if _, err := (Bundle{Root: planted(t), Made: made, Limit: DefaultLimit}).Write(t.Context(), refusing{full}); !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
	if _, err := (Bundle{Root: filepath.Join(t.TempDir(), "none"), Limit: DefaultLimit}).Write(t.Context(), io.Discard); err == nil {
		t.Error("a root that is not there is no error")
	}
}

type refusing struct{ err error }

func (r refusing) Write([]byte) (int, error) { return 0, r.err }
