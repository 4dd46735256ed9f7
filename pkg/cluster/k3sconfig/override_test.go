package k3sconfig

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/zedkube/zedkube/types"
)

// options are what a list of notes is about.
func options(notes types.K3sOverrideNotes) (list []string) {
	for _, n := range notes {
		list = append(list, n.Option)
	}
	return list
}

func TestWhatTheOverrideMustNotHave(t *testing.T) {
	for content, want := range map[string][]string{
		"server: https://10.0.0.9:6443\n":                      {"server"},
		"s: https://10.0.0.9:6443\n":                           {"s"},
		"token: hunter2\n":                                     {"token"},
		"token+: hunter2\n":                                    {"token"},
		"\"token\": hunter2\n":                                 {"token"},
		"!!str token: hunter2\n":                               {"token"},
		"t: hunter2\n":                                         {"t"},
		"agent-token: hunter2\ntoken-file: /x\n":               {"agent-token", "token-file"},
		"cluster-init: true\n":                                 {"cluster-init"},
		"cluster-reset: true\n":                                {"cluster-reset"},
		"cluster-reset-restore-path: /x\n":                     {"cluster-reset-restore-path"},
		"datastore-endpoint: mysql://u:hunter2@db\n":           {"datastore-endpoint"},
		"node-name: other\n":                                   {"node-name"},
		"node-label+: [a=b, node-uuid=1]\n":                    {"node-label: node-uuid"},
		"node-label+: a=b,tie-breaker-node=true\n":             {"node-label: tie-breaker-node"},
		"node-ip: 10.0.0.9\nflannel-iface: eth0\n":             {"node-ip", "flannel-iface"},
		"https-listen-port: 7443\n":                            {"https-listen-port"},
		"cluster-cidr: 10.44.0.0/16\nservice-cidr: 10.45/16\n": {"cluster-cidr", "service-cidr"},
		"cluster-dns: 10.43.0.11\ncluster-domain: x\n":         {"cluster-dns", "cluster-domain"},
		"flannel-backend: host-gw\n":                           {"flannel-backend"},
		"egress-selector-mode: agent\n":                        {"egress-selector-mode"},
		"disable-agent: true\n":                                {"disable-agent"},
		"disable-network-policy: false\n":                      {"disable-network-policy"},
		"disable+: [traefik, coredns]\n":                       {"disable: coredns"},
		"disable+: traefik, coredns\n":                         {"disable: coredns"},
		"container-runtime-endpoint: /x\nrootless: true\n":     {"container-runtime-endpoint", "rootless"},
		"embedded-registry: true\n":                            {"embedded-registry"},
		"data-dir: /x\n":                                       {"data-dir"},
		"d: /x\n":                                              {"d"},
		"etcd-snapshot-dir: /x\nconfig: /x\nc: /x\n":           {"etcd-snapshot-dir", "config", "c"},
		"vpn-auth: hunter2\nvpn-auth-file: /x\n":               {"vpn-auth", "vpn-auth-file"},
		"protect-kernel-defaults: true\n":                      {"protect-kernel-defaults"},
		"kubelet-arg+: [register-node=false]\n":                {"kubelet-arg: register-node"},
		"kubelet-arg+: [node-labels=a=b]\n":                    {"kubelet-arg: node-labels"},
		"kubelet-arg+: [config=/x, client-ca-file=/x]\n":       {"kubelet-arg: config", "kubelet-arg: client-ca-file"},
		"etcd-arg+: [listen-metrics-urls=http://0.0.0.0:1]\n":  {"etcd-arg: listen-metrics-urls"},
		"kubelet-arg+: [root-dir=/x]\n":                        {"kubelet-arg: root-dir"},
		"kubelet-arg+: [\"--root_dir=/x\"]\n":                  {"kubelet-arg: root-dir"},
		"kubelet-arg+: hostname-override=x\n":                  {"kubelet-arg: hostname-override"},
		"kube-apiserver-arg+: [\"watch-cache-=true\"]\n":       {"kube-apiserver-arg: watch-cache"},
		"kube-apiserver-arg+: [etcd-servers=http://x]\n":       {"kube-apiserver-arg: etcd-servers"},
		"kube-controller-manager-arg+: [cluster-cidr=1/8]\n":   {"kube-controller-manager-arg: cluster-cidr"},
		"kube-proxy-arg+: [cluster-cidr=1/8]\n":                {"kube-proxy-arg: cluster-cidr"},
		"etcd-arg+: [force-new-cluster]\n":                     {"etcd-arg: force-new-cluster"},
		"v: 2\ntoken: hunter2\n":                               {"token"},

		"debug: true\ntoken=hunter2: x\n":       {"line 2"},
		"debug: true\n\nhunter2 x: y\n":         {"line 3"},
		"? [token]\n: x\n":                      {"line 1"},
		"{a: b}: x\n":                           {"line 1"},
		"!!binary dG9rZW4x: x\n":                {"line 1"},
		"7: x\n":                                {"line 1"},
		"a: b\n<<: {token: hunter2}\n":          {"line 2"},
		"write-kubeconfig-mode: {a: hunter2}\n": {"line 1"},
		"disable+:\n- [coredns]\n":              {"line 2"},
		"debug: !!binary dG9rZW4x\n":            {"line 1"},
		"disable+: !!set {coredns: }\n":         {"line 1"},
		"a: &token x\n? *token\n: y\n":          {"line 2"},
		"tls-san+: [&a x, *a]\n":                {"line 1"},
		"debug: true\ndebug: false\n":           {"line 2"},
		"debug: true\n---\ntoken: hunter2\n":    {""},
		"debug: true\n--- [\n":                  {""},
		"a: \"hunter2\n":                        {"line 2"},
		"\tdebug: true\n":                       {""},
	} {
		if got, _ := check([]byte(content)); !slices.Equal(options(got), want) {
			t.Errorf("%q: %v, want %v", content, got, want)
		} else if got[0].Why == "" || strings.Contains(fmt.Sprint(got), "hunter2") {
			t.Errorf("%q: %v", content, got)
		}
	}
}

func TestWhatTheOverrideMayHave(t *testing.T) {
	for content, doubts := range map[string][]string{
		"":                    nil,
		"# token: x\n":        nil,
		"---\n":               nil,
		"null\n":              nil,
		"debug: true\nv: 2\n": nil,
		"tls-san+: [10.0.0.9, k3s.example]\ndisable+:\n- traefik\n":                                nil,
		"etcd-snapshot-schedule-cron: 0 */6 * * *\n":                                               nil,
		"kubelet-arg+:\n- max-pods=42\n- feature-gates=A=true,B=false\n":                           nil,
		"etcd-arg+: [quota-backend-bytes=4294967296, max-txn-ops=99]\netcd-expose-metrics: true\n": nil,
		"secrets-encryption: true\nnode-taint+: [a=b:NoSchedule]\n":                                nil,
		"disable-default-registry-endpoint: true\n":                                                nil,
		"tls-san: [10.0.0.9]\n": {"tls-san"},
		"disable: traefik\n":    {"disable"},
		"disable:\n":            {"disable"},
		"kubelet-arg:\n- max-pods=42\nkube-apiserver-arg+: [v=2]\n": {"kubelet-arg"},
		"private-registry: /persist/registries.yaml\n":              {"private-registry"},
	} {
		if refused, got := check([]byte(content)); len(refused) > 0 || !slices.Equal(options(got), doubts) {
			t.Errorf("%q: refused %v, warned of %v, want %v", content, refused, got, doubts)
		}
	}
}

func TestTheNamesOfTheAPIServerArePublished(t *testing.T) {
	many := "tls-san: [" + strings.Repeat("a.b,", 1000) + "a.b]\n"
	for content, want := range map[string][]string{
		"tls-san: a.example.org\n":                               {"a.example.org"},
		"tls-san+: [a.example.org, 10.0.0.9, '*.b.org']\n":       {"a.example.org", "10.0.0.9", "*.b.org"},
		"tls-san: a.example.org, fd00::1\nsnapshotter: native\n": {"a.example.org", "fd00::1"},
		"tls-san: [\"a b\", 'x\ty', '\u00e9']\n":                 nil,
		"tls-san: a.example.org\ntoken: hunter2\n":               nil,
		"# none\n": nil,
		"":         nil,
		many:       slices.Repeat([]string{"a.b"}, maxSANs),
	} {
		if d := cmp.Diff(want, checked([]byte(content)).sans); d != "" {
			t.Errorf("%.60q: %s", content, d)
		}
	}
}

func TestTheDocumentListsEveryOption(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(raw), "\n### Override of k3s\n")
	section, _, _ = strings.Cut(section, "\n### ")
	for _, row := range slices.Concat(denied, doubtful) {
		for _, name := range append(strings.Fields(row.options), strings.Fields(row.values)...) {
			if _, err := path.Match(name, "x"); err != nil || !strings.Contains(section, "`"+name+"`") {
				t.Errorf("%q: docs/wire.md does not list it, or it is no pattern (%v)", name, err)
			}
		}
	}
}

func TestAnOverrideOfAliasesCostsNoMemory(t *testing.T) {
	long := "a: &a " + strings.Repeat("x", maxOverride/2) + "\nb: [" + strings.Repeat("*a,", maxOverride/8) + "*a]\n"
	nested := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		nested += fmt.Sprintf("%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 8), c-1)
	}
	for _, content := range []string{long, nested, strings.Repeat("[", maxOverride), strings.Repeat("{a: ", maxOverride/4), "a: [" + strings.Repeat(",", maxOverride/2), "[" + strings.Repeat("#\n", maxOverride/2-1)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		refused, _ := check([]byte(content))
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; len(refused) == 0 || len(refused) > maxNotes || used > 64<<20 {
			t.Errorf("%.20q...: %d bytes, refused %v", content, used, refused)
		}
	}
}

func TestTheLastGoodOverrideStays(t *testing.T) {
	const bad = "token: hunter2\nkubelet-arg: [root-dir=/hunter2]\n"
	tell(t, func(s *story) {
		s.mount()
		s.start()
		s.say("", "", overrideYAML)
		good := types.K3sOverrideStatus{
			Sum: sumOf([]byte(overrideYAML)), InForce: sumOf([]byte(overrideYAML)), Accepted: true,
			Warnings: types.K3sOverrideNotes{{Option: "kubelet-arg", Why: "it replaces what EVE has in this list; with + after its name it adds to that"}},
		}
		s.expectOverride(good)
		if len(s.wrote) != 1 || !strings.Contains(s.wrote[0].Why, good.Sum) {
			s.Errorf("%+v recorded", s.wrote)
		}

		s.say("", "", bad)
		since, refused := time.Now().Add(-time.Second), types.K3sOverrideStatus{
			Sum: sumOf([]byte(bad)), InForce: good.Sum,
			Refused: types.K3sOverrideNotes{{Option: "token", Why: joins}, {Option: "kubelet-arg: root-dir", Why: paths}}, Warnings: good.Warnings,
		}
		s.expectOverride(refused)
		s.expect(overrideYAML)
		if len(s.did) != 1 || s.did[0].Op != "refuse k3s override" || s.did[0].Target != "setting/k3s.config.override" || !strings.HasPrefix(s.did[0].Why, "SHA-256 "+refused.Sum+": ") {
			s.Errorf("%+v recorded", s.did)
		}

		// Another process of the agent does not know what was in force, but finds its file, and keeps it.
		s.stop()
		s.start()
		s.later()
		s.expectOverride(refused)
		_ = os.Remove(s.file)
		s.later()
		s.expect(overrideYAML)
		s.expectOverride(refused)
		if got, _ := s.override.Get(types.Global); got.Since.Sub(since).Abs() > 2*time.Second {
			s.Errorf("it is refused since %s, want %s", got.Since, since)
		}
		if len(s.did) != 1 {
			s.Errorf("%d records of one refusal", len(s.did))
		}
		raw, _ := json.Marshal([]any{s.override.All(), s.did, s.wrote})
		if s.logged("hunter2") > 0 || strings.Contains(string(raw), "hunter2") {
			s.Error("the text of the override is logged, recorded or published")
		}

		s.say("", "", "token: [\n")
		if got, _ := s.override.Get(types.Global); got.InForce != good.Sum || len(s.did) != 2 {
			s.Errorf("%+v, %d records", got, len(s.did))
		}
		s.say("", "", overrideYAML)
		s.expectOverride(good)
		s.say("", "", "")
		s.expectOverride(types.K3sOverrideStatus{Sum: types.K3sNoOverride, InForce: types.K3sNoOverride, Accepted: true})
		s.expect("")
		s.say("", "", bad)
		s.expect("") // the last good one is none
	})
}

func TestARefusedOverrideThatIsInForceIsLeftAlone(t *testing.T) {
	const bad = "node-name: other\n"
	tell(t, func(s *story) {
		s.start()
		s.say("", "", bad)
		want := types.K3sOverrideStatus{Sum: sumOf([]byte(bad)), Refused: types.K3sOverrideNotes{{Option: "node-name", Why: byName}}}
		s.expectOverride(want)
		s.mount() // later than the agent's start
		if err := os.WriteFile(s.file, []byte(bad), 0o600); err != nil {
			s.Fatal(err)
		}
		s.later()
		want.InForce = want.Sum
		s.expectOverride(want)
		s.expect(bad)
		if len(s.wrote) > 0 {
			s.Errorf("%+v recorded", s.wrote)
		}
	})
}

// expectOverride wants a status, whenever it began.
func (s *story) expectOverride(want types.K3sOverrideStatus) {
	s.Helper()
	got, _ := s.override.Get(types.Global)
	got.Since = time.Time{}
	if d := cmp.Diff(want, got); d != "" {
		s.Errorf("K3sOverrideStatus: want -, got +\n%s", d)
	}
}

// FuzzOverride compares with what k3s would read: its parser makes flags of the names.
func FuzzOverride(f *testing.F) {
	for _, seed := range []string{"token: x", "\"to\\x6ben\": x", "a: [b, c]\nd+: e", "? token\n: x", "%YAML 1.1\n---\na: b\n...\n", "!!str t: x", "{token : x}", "!"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		refused, warnings := check([]byte(content))
		if len(refused) > maxNotes || len(warnings) > maxNotes {
			t.Error("too many notes")
		}
		if len(refused) > 0 {
			return
		}
		var values map[string]any
		if err := yaml.Unmarshal([]byte(content), &values); err != nil {
			t.Fatalf("accepted, and k3s cannot read it: %v", err)
		}
		for name := range values {
			if why, is := search(denied, strings.TrimSuffix(name, "+"), ""); is && why != "" || strings.ContainsAny(name, "= ") {
				t.Errorf("accepted with %q", name)
			}
		}
	})
}
