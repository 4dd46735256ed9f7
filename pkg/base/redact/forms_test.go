package redact

import (
	"slices"
	"strings"
	"testing"
)

// forms are the usual ways in which secrets are written, SEKRET being one, whatever
// that looks like.
var forms = []string{
	// fields of JSON
	`{"pass":"SEKRET"}`, `{"pw":"SEKRET"}`, `{"pin":"SEKRET"}`, `{"otp":"SEKRET"}`, `{"key":"SEKRET"}`, `{"sshkey":"SEKRET"}`, `{"recoveryKey":"SEKRET"}`,
	`{"AccountKey":"SEKRET"}`, `{"seed":"SEKRET words of it"}`, `{"mnemonic":"SEKRET abandon ability"}`, `{"session":"SEKRET"}`, `{"AuthPass":"SEKRET"}`,
	`{"PrivPass":"SEKRET"}`, `{"community":"SEKRET"}`, `{"DB_PASS":"SEKRET"}`, `{"auths":{"reg.example":{"auth":"SEKRET"}}}`, `{"ntlm":"SEKRET"}`,
	`{"password":"SEKRET"}`, `{"passwd":"SEKRET"}`, `{"passphrase":"SEKRET"}`, `{"token":"SEKRET"}`, `{"apiKey":"SEKRET"}`, `{"clientSecret":"SEKRET"}`,
	`{"credential":"SEKRET"}`, `{"jwt":"SEKRET"}`, `{"cookie":"SEKRET"}`, `{"PreSharedKey":"SEKRET"}`, `{"wpaPsk":"SEKRET"}`, `{"privateKey":"SEKRET"}`,
	`{"userPw":"SEKRET"}`, `{"UserPW":"SEKRET"}`, `{"LoginPin":"SEKRET"}`, `{"SimPIN":"SEKRET"}`, `{"wifiKey":"SEKRET"}`, `{"DbPass":"SEKRET"}`, `{"SnmpCommunity":"SEKRET"}`,
	`{"name":"wg0","key":"SEKRET"}`, `{"headers":{"X-Vault-Token":"SEKRET"}}`, `{"totp":"SEKRET"}`, `{"smtp_auth":"SEKRET"}`, `{"sim_puk":"SEKRET"}`,
	// text
	"DB_PASS=SEKRET", "pass: SEKRET", "pw=SEKRET", "pin: SEKRET", "otp=SEKRET", `key="SEKRET"`, "sshkey: SEKRET", "recoveryKey=SEKRET", "seed: SEKRET b c", "session=SEKRET",
	"MYPASS=SEKRET", "export MYPASS='SEKRET'", "smbpass=SEKRET", "dbpass: SEKRET", "userpw=SEKRET", "simpin=SEKRET", "sim-pin: SEKRET", "wifikey=SEKRET", "wifi_key=SEKRET",
	"wpa_key=SEKRET", "--db-pass=SEKRET", "pass := SEKRET", `pass = "a \"b\" SEKRET"`, "wireguard key: SEKRET", "key = SEKRET", "a=b&pass=SEKRET", "x.pass=SEKRET", "pass:\n  SEKRET", "pin: |\n  SEKRET\n", "  pass:\n    - SEKRET", "_auth = SEKRET", "smtp_auth=SEKRET", "X-My-Auth: SEKRET", "session_id=SEKRET", "session-id: SEKRET",
	"snmp-server community SEKRET ro", "community: SEKRET", "snmpd: rocommunity SEKRET 10.0.0.0/8", "rwcommunity SEKRET", "rocommunity6 SEKRET",
	"DefaultEndpointsProtocol=https;AccountName=x;AccountKey=SEKRET;EndpointSuffix=core",
	"k3s server -t SEKRET", "/usr/bin/k3s agent --server https://x -t SEKRET", "sshpass -p SEKRET ssh me@x", "sshpass -pSEKRET ssh x", "docker login -u me -p SEKRET reg", "docker login -pSEKRET reg", "mysql -u me -pSEKRET db", "mysql -p'SEKRET' db",
	"smbclient -U u%SEKRET //x/y", "smbclient //x/y --user=u%SEKRET", "ldapsearch -x -w SEKRET -b dc=x", "ldapsearch -w 'SEKRET'", "redis-cli -a SEKRET",
	"openssl rsa -passin pass:SEKRET", "PGPASSWORD=SEKRET psql",
	"Authorization: NTLM SEKRET", `Authorization: Digest username="me", response="SEKRET"`, "auth: SEKRET", "auth: Basic SEKRET", `auth = "Bearer SEKRET"`, "Proxy-Authorization: Basic SEKRET",
}

// looks are what secrets look like.
var looks = []string{
	"SEKRET", "sekret", "sekret2-correct-horse", "correct-horse-sekret", "/sekret", "/kL3Zm9vsekretmF6cXV4MTIzNDU2Nzg5MDEyMzQ1Njc=", "/kL3Zm9vsekret/F6cXV4MT/zNDU2Nzg5=",
	"kL3Zm9v/sekretmF6cX", "sekret_0123", "sekret.X1y2Z3",
}

// marked begin with what their maker puts before them, or have a form that nothing
// else has; no name is needed.
var marked = []string{
	"ghp_SEKRET0123456789", "glpat-SEKRET0123456789", "AKIASEKRET0123456789", "xoxb-SEKRET-0123456789", "sk-SEKRET0123456789", "npm_SEKRETabcdefghijklmnop0123456789",
	"dckr_pat_SEKRETabcdefghijk", "AGE-SECRET-KEY-1SEKRETQQQQQQQ", "ya29.SEKRETabcdefgh", "https://hooks.slack.com/services/T000/B000/SEKRETXXXXXX",
	"root:$6$SEKRET$hash:1:", "root:$apr1$SEKRET$x", "root:{SSHA}SEKRETabcd", "cn: {SSHA512}SEKRETabcd==", "me:$7$101$SEKRET", "pbkdf2: $pbkdf2-sha256$29000$SEKRET$x",
	"me:$2y$10$SEKRETabcd", "psql postgres://u:SEKRET@h/db", "SharedAccessSignature sr=x&sig=SEKRET&se=1",
}

// hashes of passwords, which are the passwords where NTLM is spoken.
var hashes = []string{
	"SAM: 8846f7eaee8fb117ad06bdd830b7586c:8846f7eaee8fb117ad06bdd830b7586c", "8846f7eaee8fb117ad06bdd830b7586c:8846f7eaee8fb117ad06bdd830b7586c",
	"SAM:8846f7eaee8fb117ad06bdd830b7586c:8846f7eaee8fb117ad06bdd830b7586c", "me:500:8846f7eaee8fb117ad06bdd830b7586c:8846f7eaee8fb117ad06bdd830b7586c:::",
	"Administrator:500:aad3b435b51404eeaad3b435b51404ee:8846f7eaee8fb117ad06bdd830b7586c:::", "me:1001:NO PASSWORD*********************:8846f7eaee8fb117ad06bdd830b7586c:::",
	"ME:500:AAD3B435B51404EEAAD3B435B51404EE:8846f7EAEE8FB117AD06BDD830B7586C:::",
}

func TestNoUsualFormOfASecretStays(t *testing.T) {
	for _, form := range forms {
		for _, look := range looks {
			staysNowhere(t, strings.ReplaceAll(form, "SEKRET", look), "SEKRET", "sekret")
		}
	}
	for _, form := range marked {
		staysNowhere(t, form, "SEKRET")
		if !strings.Contains(form, "AKIA") && !strings.Contains(form, "AGE-") { // capitals are part of these
			staysNowhere(t, strings.ReplaceAll(form, "SEKRET", "sekret"), "sekret")
		}
	}
	for _, form := range hashes {
		staysNowhere(t, form, "8846f7")
	}
	if n := len(forms) + len(marked) + len(hashes); n < 54 {
		t.Errorf("only %d forms", n)
	}
}

// staysNowhere has a form taken for a field, a text and the line of a log, with
// nothing in it but the form.
func staysNowhere(t *testing.T, form string, secrets ...string) {
	t.Helper()
	inLog := `{"level":"info","msg":"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(form) + `"}`
	results := map[string]string{
		"text":          new(Redactor).Text("a line\n" + form + "\nan end"),
		"only text":     Text(form),
		"line of a log": string(new(Redactor).Lines([]byte(inLog + "\n"))),
	}
	if strings.HasPrefix(form, "{") {
		results["value"] = string(new(Redactor).JSON([]byte(form)))
	}
	for where, got := range results {
		if slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(got, s) }) {
			t.Errorf("as %s: %s became %s", where, form, got)
		}
	}
}

func TestNamesAreNotTakenForKeys(t *testing.T) {
	for _, text := range []string{
		`{"key":"global","topic":"zedkube/KubeConfig"}`, `{"Key":"timer.config.interval","IntValue":60}`, "key=9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34", "key: node-1",
		"bypass=true", `{"PublicKey":"AAAA"}`, "the session of today", "compass: 3",
		`{"key":"node-role.kubernetes.io/control-plane"}`, `{"effect":"NoSchedule","key":"node.kubernetes.io/unreachable"}`, `{"topologyKey":"kubernetes.io/hostname"}`,
		"Key:node.kubernetes.io/not-ready,Operator:Exists", `key="kube-system/coredns-6799fbcd5-x8zq2"`, `{"key":"eve-kube-app/plc-0"}`, "key: kubevirt.io/schedulable",
		`{"key":"/persist/kube-status/zedkube-applogs.jsonl"}`, "key=/run/zedkube/KubeConfig/global.json", `{"key":"/var/lib/kubelet/pods/9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34/volumes"}`,
		`{"key":"9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34"}`, `{"key":"docker.io/library/nginx:1.25"}`, "key: registry.k8s.io/pause:3.9", "key: 12", `{"key":"ca.crt"}`, `{"key":"tls.crt","path":"tls.crt"}`,
		"monkey: 3", "auth:\n  user: me\n", "key:\n  name: x\n", "spin=4", "GpioPin: 7", "turkey: yes", "/sys/class/gpio/pin", `{"pinned":"yes","passed":"3","keyed":"x","authority":"y"}`, "passed: 3, skipped: 0",
		"sha256:8846f7eaee8fb117ad06bdd830b7586c8846f7eaee8fb117ad06bdd830b7586c", "8846f7eaee8fb117ad06bdd830b7586c  a.img", "9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34:9f27b6c8",
		"image docker.io/library/nginx@sha256:8846f7eaee8fb117ad06bdd830b7586c8846f7eaee8fb117ad06bdd830b7586c", "costs $5$ and $1", "{SSH} me", "smbclient -U u //x", "mysql -u me db",
		"ldapsearch -x -b dc=example", "the BGP community 65000:1 is kept", "0000:00:1f.2 pinned", "npm_config_cache=/x", "sk- and ya29 of it", "docker login reg",
	} {
		if got := new(Redactor).Text(text); got != text {
			t.Errorf("%s became %s", text, got)
		}
		if strings.HasPrefix(text, `{"`) {
			if got := strings.TrimSpace(string(new(Redactor).JSON([]byte(text)))); strings.Contains(got, Hidden) {
				t.Errorf("%s became %s", text, got)
			}
		}
	}
}

// What stands beside a key may say that it names something, where its look does not.
func TestAKeyBesideWhatItNamesIsAName(t *testing.T) {
	for _, value := range []string{
		`{"key":"press-line-2","topic":"KubeNodeMetrics"}`, `{"key":"pod-template-hash","operator":"Exists"}`, `{"effect":"NoExecute","key":"CriticalAddonsOnly"}`,
		`{"key":"app","operator":"In","values":["x"]}`, `{"GlobalSettings":{"debug-level":{"Key":"debug-level","ItemType":3,"StrValue":"warning"}}}`,
	} {
		if got := string(new(Redactor).JSON([]byte(value))); strings.Contains(got, Hidden) {
			t.Errorf("%s became %s", value, got)
		}
		if got := string(new(Redactor).Lines([]byte(value + "\n"))); strings.Contains(got, Hidden) {
			t.Errorf("in a line %s became %s", value, got)
		}
	}
	for _, value := range []string{`{"key":"kL3Zm9v1sekretmF6","topic":"x"}`, `{"secrets":{"key":"press-sekret","topic":"x"}}`, `{"key":"/sekret","topic":"x"}`} {
		if got := string(new(Redactor).JSON([]byte(value))); strings.Contains(got, "sekret") && !strings.Contains(got, Hidden) {
			t.Errorf("%s became %s", value, got)
		}
	}
}
