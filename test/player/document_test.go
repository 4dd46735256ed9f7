package player

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/elliptic"
	"crypto/sha256"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/evecommon"
	"google.golang.org/protobuf/proto"

	"github.com/zedkube/zedkube/types"
)

// played is a device that is on, without a program, in the cluster of a
// controller.
func played(t *testing.T) *Device {
	t.Helper()
	d := &Device{Root: t.TempDir(), Info: types.EdgeNodeInfo{DeviceName: "Node_1", DeviceID: uuid.New()}, said: map[string]string{}}
	c, err := newController()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.introduce(c.pair.controllerCert()); err != nil {
		t.Fatal(err)
	}
	block, err := c.sealFor(d.pair)
	if err != nil {
		t.Fatal(err)
	}
	err = d.ChangeCluster(func(e *types.EdgeNodeClusterConfig) {
		*e = types.EdgeNodeClusterConfig{
			Valid: true, ClusterName: "plant", ClusterID: types.UUIDandVersion{UUID: uuid.New()}, JoinServerIP: net.IPv4(10, 0, 0, 1),
			ClusterIPPrefix: &net.IPNet{IP: net.IPv4(10, 0, 0, 2), Mask: net.CIDRMask(24, 32)}, CipherToken: block,
			MasterNodeIDs: []uuid.UUID{d.Info.DeviceID, uuid.New()},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.freshRun(); err != nil {
		t.Fatal(err)
	}
	bus, _, err := d.openTopics()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { bus.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return d
}

// says is what a published file holds, "" for no file.
func (d *Device) says(topic, key string) string {
	content, err := os.ReadFile(filepath.Join(d.Root, topic, key+".json"))
	if err != nil {
		return ""
	}
	return string(content)
}

const (
	saysCluster    = "run/zedagent/EdgeNodeClusterConfig"
	saysSettings   = "run/zedagent/ConfigItemValueMap"
	saysApps       = "run/zedagent/AppInstanceConfig"
	controllerSide = "run/zedagent/ControllerCert"
	deviceSide     = "persist/status/tpmmgr/EdgeNodeCert"
)

func TestEditedDocumentIsHeardAndABrokenOneIsNot(t *testing.T) {
	d := played(t)
	edit := func(now, then string) error {
		data, err := os.ReadFile(d.DocumentPath())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), now) {
			t.Fatalf("no %s in %s", now, data)
		}
		if err := os.WriteFile(d.DocumentPath(), []byte(strings.Replace(string(data), now, then, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		return d.look()
	}
	if err := edit(`"plant"`, `"works"`); err != nil || !strings.Contains(d.says(saysCluster, "global"), `"ClusterName":"works"`) {
		t.Errorf("%v: %s", err, d.says(saysCluster, "global"))
	}
	was := d.says(saysCluster, "global")
	if err := edit(`"works"`, `"works`); err == nil {
		t.Error("no error for a document that is cut")
	}
	if got := d.says(saysCluster, "global"); got != was {
		t.Errorf("a document that is cut changes %s to %s", was, got)
	}
	if err := edit(`"works`, `"works"`); err != nil {
		t.Error(err)
	}
	if err := edit(`"10.0.0.1"`, `"node-1"`); err == nil {
		t.Error("no error for a join server that is no address")
	}
	if got := d.says(saysCluster, "global"); !strings.Contains(got, `"Valid":false`) {
		t.Errorf("a join server that is no address gives %s", got)
	}
}

func TestControllerSendsAppsAndSettings(t *testing.T) {
	d := played(t)
	app := types.AppInstanceConfig{UUIDandVersion: types.UUIDandVersion{UUID: uuid.New(), Version: "1"}, DisplayName: "cam"}
	for _, here := range []bool{true, false} {
		app.IsDesignatedNodeID = here
		if err := d.ConfigureApp(app); err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{true: `"IsDesignatedNodeID":true`, false: `"IsDesignatedNodeID":false`}[here]
		if got := d.says(saysApps, app.UUIDandVersion.UUID.String()); !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	item := types.ConfigItemValue{Key: types.SettingK3sVersion, ItemType: types.ConfigItemString, StrValue: "v9"}
	if err := d.ConfigureSettings(types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{item.Key: item}}); err != nil {
		t.Fatal(err)
	}
	if got := d.says(saysSettings, "global"); !strings.Contains(got, `"StrValue":"v9"`) {
		t.Errorf("settings: %s", got)
	}
}

func TestCertificatesComeAndGo(t *testing.T) {
	d := played(t)
	sides := map[Cert]func() string{
		OfController: func() string { return d.says(controllerSide, d.controllerCert.Key()) },
		OfDevice:     func() string { return d.says(deviceSide, d.pair.deviceCert().Key()) },
	}
	for side, says := range sides {
		if says() == "" {
			t.Errorf("side %d: no certificate", side)
		}
		if err := d.Withhold(side); err != nil {
			t.Fatal(err)
		}
		if says() != "" {
			t.Errorf("side %d: withheld and still there", side)
		}
		if err := d.Deliver(side); err != nil {
			t.Fatal(err)
		}
		if says() == "" {
			t.Errorf("side %d: delivered and not there", side)
		}
	}
	old := d.controllerCert
	pair, err := newKeyPair("controller")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.certify(pair.controllerCert()); err != nil {
		t.Fatal(err)
	}
	if d.says(controllerSide, old.Key()) != "" || d.says(controllerSide, d.controllerCert.Key()) == "" {
		t.Error("the new certificate is not in place of the old one")
	}
	if info, err := os.Stat(filepath.Join(d.Root, keyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v, %v", info, err)
	}
}

func TestDeviceCanDecryptWhatTheControllerEncrypts(t *testing.T) {
	c, err := newController()
	if err != nil {
		t.Fatal(err)
	}
	device, err := newKeyPair("device")
	if err != nil {
		t.Fatal(err)
	}
	block, err := c.sealFor(device)
	if err != nil {
		t.Fatal(err)
	}
	scalar, err := device.key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	//nolint:staticcheck // SA1019: both coordinates are needed
	x, y := elliptic.P256().ScalarMult(c.pair.key.X, c.pair.key.Y, scalar)
	var shared [64]byte
	x.FillBytes(shared[:32])
	y.FillBytes(shared[32:])
	key := sha256.Sum256(shared[:])
	b, err := aes.NewCipher(key[:])
	if err != nil {
		t.Fatal(err)
	}
	plain := make([]byte, len(block.CipherData))
	//nolint:staticcheck // SA1019: EVE's scheme is CFB
	cipher.NewCFBDecrypter(b, block.InitialValue).XORKeyStream(plain, block.CipherData)
	var clear evecommon.EncryptionBlock
	if err := proto.Unmarshal(plain, &clear); err != nil {
		t.Fatal(err)
	}
	if clear.GetClusterToken() != c.token || sha256.Sum256(plain) != [32]byte(block.ClearTextHash) {
		t.Errorf("the token is %q, not %q, or its hash is wrong", clear.GetClusterToken(), c.token)
	}
}
