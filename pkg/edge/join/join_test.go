package join

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/edge/settings"
)

func TestName(t *testing.T) {
	for name, good := range map[string]bool{
		"camera-7": true, "a.b-c.d": true, "7": true, strings.Repeat("a", 63): true,
		"": false, "Camera": false, "-a": false, "a-": false, "a..b": false, "a_b": false, "_refused": false, "a;reboot": false, strings.Repeat("a", 64): false, "a\n": false,
	} {
		if err := Name(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestToken takes a token apart as KubeEdge does (pkg/security/token).
func TestToken(t *testing.T) {
	until := time.Unix(1893456000, 0)
	parts := strings.Split(Token([]byte("CA"), []byte("key"), "camera-7", until), ".")
	if len(parts) != 4 {
		t.Fatalf("it has %d parts", len(parts))
	}
	if sum := sha256.Sum256([]byte("CA")); parts[0] != hex.EncodeToString(sum[:]) {
		t.Errorf("the authority is %s", parts[0])
	}
	header, _ := base64.RawURLEncoding.DecodeString(parts[1])
	claims, _ := base64.RawURLEncoding.DecodeString(parts[2])
	if string(header) != `{"alg":"HS256","typ":"JWT"}` || string(claims) != `{"exp":1893456000,"sub":"camera-7"}` {
		t.Errorf("it says %s %s", header, claims)
	}
	mac := hmac.New(sha256.New, []byte("key"))
	mac.Write([]byte(parts[1] + "." + parts[2]))
	if got, err := base64.RawURLEncoding.DecodeString(parts[3]); err != nil || !hmac.Equal(got, mac.Sum(nil)) {
		t.Errorf("the signature is not that of the key: %v", err)
	}
}

func TestWhose(t *testing.T) {
	key, now := []byte("key"), time.Unix(1893456000, 0)
	after := func(token string) string { _, rest, _ := strings.Cut(token, "."); return rest } // the hash
	good := after(Token(nil, key, "camera-7", now.Add(time.Second)))
	if name, err := Whose(good, key, now); name != "camera-7" || err != nil {
		t.Errorf("it is %q's: %v", name, err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := func(head, claims string) string {
		text := encode([]byte(head)) + "." + encode([]byte(claims))
		return text + "." + encode(mac(text, key))
	}
	for what, token := range map[string]string{
		"nothing": "", "one part": "a", "with its hash": Token(nil, key, "camera-7", now.Add(time.Second)),
		"of another authority": after(Token(nil, []byte("other"), "camera-7", now.Add(time.Second))),
		"not signed":           good[:strings.LastIndexByte(good, '.')+1],
		"another algorithm":    signed(`{"alg":"none","typ":"JWT"}`, `{"exp":1893456001,"sub":"camera-7"}`),
		"no claims":            signed(jwtHead, "x"),
		"expired":              signed(jwtHead, `{"exp":1893456000,"sub":"camera-7"}`),
		"for ever":             signed(jwtHead, `{"sub":"camera-7"}`),
		"KubeEdge's own":       signed(jwtHead, `{"exp":1893456001}`),
	} {
		if name, err := Whose(token, key, now); err == nil {
			t.Errorf("%s: it is %q's", what, name)
		}
	}
}

func TestAsk(t *testing.T) {
	s := settings.Default()
	s.NodeLimit = 4
	now := time.Unix(1800000000, 0)
	r := TakeOver(map[string]string{"old": "100.127.254.2"}, now)
	r.Refused["lost"] = Past{Since: now}
	taken := map[string]string{"node-1": "10.0.0.1", "other": "100.127.254.3"}
	for _, c := range []struct{ name, wanted, address, wrong string }{
		{"a", "", "100.127.254.1", ""},
		{"b", "", "100.127.254.4", ""},
		{"a", "", "100.127.254.1", ""}, // again: the same
		{"a", "100.127.254.9", "100.127.254.9", ""},
		{"lost", "100.127.254.9", "", "that of a"},
		{"lost", "100.127.254.3", "", "that of other"},
		{"lost", "100.127.254.0", "", "no address of edgeBlock"},
		{"lost", "100.127.254.255", "", "no address of edgeBlock"},
		{"lost", "192.0.2.1", "", "no address of edgeBlock"},
		{"Lost", "", "", "no name of a node"},
		{"100.127.254.7", "", "", "is an address"},
		{"lost", "", "100.127.254.1", ""},
		{"fifth", "", "", "nodeLimit is 4"},
	} {
		a, err := r.Ask(s, c.name, c.wanted, taken, now, now.Add(time.Hour))
		if a.Address != c.address || c.wrong == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s %s: %s, %v", c.name, c.wanted, a.Address, err)
		}
	}
	if len(r.Refused) > 0 {
		t.Errorf("a name that was asked again is still refused: %v", r.Refused)
	}
	s.NodeLimit = settings.MaxNodes
	for i := range settings.MaxNodes - 4 {
		if _, err := r.Ask(s, fmt.Sprintf("n%d", i), "", taken, now, now); err != nil {
			t.Fatalf("the device %d: %v", i, err)
		}
	}
	seen := map[string]bool{"100.127.254.3": true}
	for name, a := range r.Asked {
		if seen[a.Address] {
			t.Errorf("%s has the address %s of another one", name, a.Address)
		}
		seen[a.Address] = true
	}
}

func TestRecordIsKept(t *testing.T) {
	now := time.Unix(1800000000, 0).UTC()
	r := TakeOver(map[string]string{"a": "100.127.254.1", "b": "100.127.254.2", "c": "100.127.254.3"}, now)
	r.Leave("b", false, now)
	r.Leave("c", true, now)
	for i := range 2 * maxPast {
		r.Left[fmt.Sprintf("old-%d", i)] = Past{Since: now.Add(-time.Hour)}
	}
	data, err := r.Data()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(data)
	if err != nil || !slices.Equal(got.Names(), []string{"a"}) || got.Asked["a"] != r.Asked["a"] || got.Refused["c"] != r.Refused["c"] ||
		got.Left["b"] != r.Left["b"] || len(got.Left) != maxPast {
		t.Errorf("it is %v, %v", got, err)
	}
	for _, bad := range []map[string]any{{"a": "{"}, {"_refused": "[]"}, {"A": "{}"}} {
		if _, err := Read(bad); err == nil {
			t.Errorf("%v is read", bad)
		}
	}
}

func device() Device {
	return Device{
		Name: "camera-7", Address: "100.127.254.7", Arch: "amd64", Runtime: "unix:///run/containerd/containerd.sock", CgroupDriver: "cgroupfs",
		Labels: []string{"site=gate"}, Token: "secret", Servers: []string{"192.0.2.1", "192.0.2.2"}, Settings: settings.Default(),
	}
}

func TestValidate(t *testing.T) {
	if err := device().Validate(); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(*Device){
		"arch":    func(d *Device) { d.Arch = "mips" },
		"runtime": func(d *Device) { d.Runtime = "unix:///run/x; reboot" },
		"cgroups": func(d *Device) { d.CgroupDriver = "none" },
		"label":   func(d *Device) { d.Labels = []string{"site"} },
		"shell":   func(d *Device) { d.Labels = []string{"site=$(reboot)"} },
		"server":  func(d *Device) { d.Labels = []string{"node-role.kubernetes.io/control-plane=true"} },
		"member":  func(d *Device) { d.Labels = []string{"node-uuid=x"} },
	} {
		d := device()
		if change(&d); d.Validate() == nil {
			t.Errorf("%s: it is allowed", what)
		}
	}
}

func TestConfig(t *testing.T) {
	text, err := device().Config()
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		APIVersion string
		Modules    struct {
			EdgeHub struct {
				HTTPServer, Token string
				Websocket, Quic   struct {
					Enable bool
					Server string
				}
			}
			EdgeStream struct {
				Enable bool
				Server string
			}
			Edged struct {
				HostnameOverride, NodeIP string
				NodeLabels               map[string]string
				TailoredKubeletConfig    struct {
					ContainerRuntimeEndpoint string
					RegisterWithTaints       []struct{ Key, Effect string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	m := c.Modules
	if c.APIVersion != "edgecore.config.kubeedge.io/v1alpha2" || m.EdgeHub.HTTPServer != "https://192.0.2.1:31002" || m.EdgeHub.Websocket.Server != "192.0.2.1:31000" ||
		!m.EdgeHub.Websocket.Enable || m.EdgeHub.Quic.Enable || m.EdgeStream.Server != "192.0.2.1:31004" || !m.EdgeStream.Enable || m.EdgeHub.Token != "" || strings.Contains(text, "secret") {
		t.Errorf("the addresses are wrong:\n%s", text)
	}
	if m.Edged.HostnameOverride != "camera-7" || m.Edged.NodeIP != "100.127.254.7" || m.Edged.NodeLabels["site"] != "gate" || len(m.Edged.TailoredKubeletConfig.RegisterWithTaints) != 1 {
		t.Errorf("the node is wrong:\n%s", text)
	}
	d := device()
	d.NoTaint, d.Settings.CloudStream = true, false
	if text, err = d.Config(); err != nil || strings.Contains(text, "NoSchedule") {
		t.Errorf("%v: it has a taint:\n%s", err, text)
	}
	c.Modules.EdgeStream.Enable = true
	if err := json.Unmarshal([]byte(text), &c); err != nil || c.Modules.EdgeStream.Enable {
		t.Errorf("%v: without cloudStream there is a tunnel:\n%s", err, text)
	}
}

func TestKeadm(t *testing.T) {
	for _, word := range []string{"--cloudcore-ipport=192.0.2.1:31000", "--certport=31002", "--edgenode-name=camera-7", "--token=secret", "--kubeedge-version=v1.20.0", "modules.edgeStream.server=192.0.2.1:31004"} {
		if line := device().Keadm(); !strings.Contains(line, word) {
			t.Errorf("it lacks %s: %s", word, line)
		}
	}
}

// unpacked are the names in an archive, with their modes, and the text of one.
func unpacked(t *testing.T, archive []byte, name string) (modes map[string]int64, content string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	modes = map[string]int64{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return modes, content
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		short := strings.TrimPrefix(h.Name, "zedkube-edge-camera-7/")
		if modes[short] = h.Mode; short == name {
			content = string(text)
		}
	}
}

func TestBundle(t *testing.T) {
	pack := func() []byte {
		files, err := device().Files()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := device().Write(&b, gzip.BestSpeed, append(files, text("edgecore", 0o755, "binary"))); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	archive := pack()
	if !bytes.Equal(archive, pack()) {
		t.Error("the same files make another archive")
	}
	modes, sums := unpacked(t, archive, "SHA256SUMS")
	want := map[string]int64{
		"edgecore": 0o755, "join.sh": 0o755, "leave.sh": 0o755, "run.sh": 0o755, "edgecore.yaml": 0o600, "token": 0o600,
		"settings.sh": 0o644, "edgecore.service": 0o644, "address.service": 0o644, "SHA256SUMS": 0o644,
	}
	if !maps.Equal(modes, want) {
		t.Errorf("it has %v", modes)
	}
	if strings.Count(sums, "\n") != len(want)-1 {
		t.Errorf("the sums are\n%s", sums)
	}
	if _, unit := unpacked(t, archive, "address.service"); !strings.Contains(unit, "ip addr replace 100.127.254.7/32 dev lo") {
		t.Errorf("the address is not in its unit:\n%s", unit)
	}
}

// TestCommand runs the line as far as the bundle, in which a file is then changed.
func TestCommand(t *testing.T) {
	line, err := device().Command()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	before, _, _ := strings.Cut(strings.Replace(line, "cd /root", "cd "+dir, 1), " && sh ")
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", before).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "-c", "SHA256SUMS")
	check.Dir = filepath.Join(dir, "zedkube-edge-camera-7")
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if info, err := os.Stat(filepath.Join(check.Dir, "token")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token: %v, %v", info, err)
	}
	if strings.Contains(line, "\n") || len(line) > 8000 {
		t.Errorf("it has %d characters", len(line))
	}
	if err := os.WriteFile(filepath.Join(check.Dir, "edgecore.yaml"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "sh", filepath.Join(check.Dir, "join.sh"))
	if out, err := run.CombinedOutput(); err == nil || os.Geteuid() == 0 && !strings.Contains(string(out), "files were changed") {
		t.Errorf("with a file that was changed: %v\n%s", err, out)
	}
}

// edgecore.yaml names the first server; join.sh puts the one in its place that it has reached.
func TestTheServerThatIsReachedIsTheOneInTheConfiguration(t *testing.T) {
	script, err := os.ReadFile("device/join.sh")
	if err != nil {
		t.Fatal(err)
	}
	function := regexp.MustCompile(`(?m)^served\(\) .*$`).Find(script)
	for _, c := range []struct{ first, url, was, is string }{
		{"10.77.0.11", "10.77.0.12", "https://10.77.0.11:31002", "https://10.77.0.12:31002"},
		{"10.77.0.11", "10.77.0.11", "https://10.77.0.11:31002", "https://10.77.0.11:31002"},
		{"[2001:db8::5]", "[2001:db8::6]", "https://[2001:db8::5]:31002", "https://[2001:db8::6]:31002"},
		{"[2001:db8::5]", "[2001:db8::5]", "https://[2001:db8::5]:31002", "https://[2001:db8::5]:31002"},
		{"1.2.3.4", "edge.example.com", "wss://1.2.3.4:10000 1:2", "wss://edge.example.com:10000 1:2"},
		{"1.2.3.4", "5.6.7.8", "11213141:1", "11213141:1"},
	} {
		file := filepath.Join(t.TempDir(), "edgecore.yaml")
		if err := os.WriteFile(file, []byte(c.was), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf("FIRST='%s' URL='%s'\n%s\nserved %s", c.first, c.url, function, file)).CombinedOutput()
		if err != nil || string(out) != c.is {
			t.Errorf("%s for %s: %q, %v", c.url, c.first, out, err)
		}
	}
}

func TestScriptsAreForAnyShell(t *testing.T) {
	path, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("shellcheck is not installed")
	}
	if out, err := exec.CommandContext(t.Context(), path, "-s", "sh", "device/join.sh", "device/leave.sh", "device/run.sh").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
