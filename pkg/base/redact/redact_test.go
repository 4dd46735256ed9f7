package redact

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const pem = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIB\n-----END EC PRIVATE KEY-----"

func TestSecretsAreTakenOutOfText(t *testing.T) {
	rows := map[string]string{
		"token is K10deadbeef01234::server:abc!":        "token is (redacted)",
		"K3S_TOKEN=abc K3S_URL=https://x:6443":          "K3S_TOKEN=(redacted) K3S_URL=https://x:6443",
		"--token abc --server x":                        "--token (redacted) --server x",
		"--agent-token abc":                             "--agent-token (redacted)",
		`"password": "abc", "user": "u"`:                `"password": "(redacted)", "user": "u"`,
		`"password": "a \"b\" c", "user": "u"`:          `"password": "(redacted)", "user": "u"`,
		`{\"password\":\"a b\",\"user\":\"u\"}`:         `{\"password\":\"(redacted)\",\"user\":\"u\"}`,
		`password='a b' user=u`:                         `password='(redacted)' user=u`,
		"Authorization: Bearer abc.def":                 "Authorization: Bearer (redacted)",
		"https://me:abc@registry/x":                     "https://(redacted)registry/x",
		"https://abc@registry/x":                        "https://(redacted)registry/x",
		"plain-token-of-mine everywhere":                "(redacted) everywhere",
		"the token of the cluster has not come":         "the token of the cluster has not come",
		"a " + pem + " b":                               "a (redacted) b",
		"a -----BEGIN PRIVATE KEY-----\nMHcCAQ":         "a (redacted)",
		"MHcCAQ\nEEIB\n-----END EC PRIVATE KEY-----\nb": "(redacted)\nb",
		"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c":        "(redacted)",
		"curl -u me:abc https://x/y":                    "curl -u me:(redacted) https://x/y",
		"-u me:abc":                                     "-u me:(redacted)",
		"curl https://x/v3/import/abc_c-1.yaml | x":     "curl https://x/v3/import/(redacted) | x",
		"": "",
	}
	for text, want := range rows {
		if got := Text(text, "plain-token-of-mine"); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestSecretsGoInWhateverFormTheyAreWritten(t *testing.T) {
	for _, text := range []string{
		"token: |\n  SEKRET\n", "  password: >2-\n      a b SEKRET\n      SEKRET c\n", "tokens:\n  - SEKRET\n", "token: 'it''s SEKRET'",
		`--token "a SEKRET"`, `--token \"a SEKRET\"`, `--agent-token 'a SEKRET'`, `bearer "SEKRET"`, "token := SEKRET", "Token:{Value:SEKRET}", "password: [SEKRET]",
		"Authorization: Negotiate SEKRET", "authorization: token SEKRET", "Cookie: sid=SEKRET", "wpa_psk=SEKRET", `psk: "SEKRET"`, "db_pwd=SEKRET",
		"https://x/?a=b&sig=SEKRET", "https://x/?X-Amz-Signature=SEKRET", "access_key=SEKRET", "encryptionKey: SEKRET", "shared-key: SEKRET",
		"curl -u me:SEKRET x", "curl -ume:SEKRET", `-u "me:a SEKRET"`, `-u 'me:SEKRET'`, `-u me:"SEKRET"`, `-u \"me:SEKRET\"`, `["-u","me:SEKRET"]`, `-u me:a\SEKRET`,
		"credentials:\n  password: SEKRET", "credentials:\n  - password: \"a SEKRET\"", "secrets:\n  a-token: |\n    a SEKRET\n", "credentials: {password: SEKRET}",
		"--user me:SEKRET", "--user=me:SEKRET", "--proxy-user me:SEKRET", "-U me:SEKRET", `{\"cmd\":\"curl -u me:SEKRET\",\"n\":1}`,
		"with map[Cookie:[sid=SEKRET]]: EOF", "map[X-Api-Key:[SEKRET]]: 403 Forbidden", "Authorization:[Basic SEKRET]: unexpected end", "token: [SEKRET]: it has expired",
		"Token:{Value:SEKRET}: refused", "credentials: {SEKRET}: not known",
		"https://x/v3/import/SEKRET.yaml", "https://x/v3/import/SEKRET_c-m-1.yml?a=b", "/import/aSEKRET.b.yaml",
		"-----BEGIN PGP PRIVATE KEY BLOCK-----\nSEKRET\n-----END PGP PRIVATE KEY BLOCK-----",
	} {
		if got := new(Redactor).Text("a line\n" + text + "\nan end"); strings.Contains(got, "SEKRET") || !strings.HasPrefix(got, "a line\n") || !strings.HasSuffix(got, "\nan end") {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, field := range []string{"PreSharedKey", "accessKey", "EncryptionKey", "userPwd"} {
		if got := string(new(Redactor).JSON([]byte(`{"` + field + `":"SEKRET"}`))); strings.Contains(got, "SEKRET") {
			t.Errorf("it became %s", got)
		}
	}
}

// As fields of JSON they go as well.
func TestCloudInitAndVariablesGoInText(t *testing.T) {
	for _, text := range []string{
		"userData: SEKRET", `user-data: "#cloud-config SEKRET"`, "CloudInitUserData=SEKRET", "userDataBase64: SEKRET", "user_data: |\n  #cloud-config\n  - [ x, SEKRET ]\n",
		"- cloudInitNoCloud:\n    userData: |\n      #cloud-config\n      - [ x, SEKRET ]\n", "cloud-init: SEKRET",
		"{EnvVariables:map[A:SEKRET B:SEKRET] N:1}", `"EnvVariables":{"A":"}SEKRET","B":"a \"SEKRET"},"N":1`, `\"env_variables\": {\"A\":\"x\",\"B\":\"SEKRET\"}`, `"EnvVariables":{"A":"a SEKRET`,
	} {
		staysNowhere(t, text, "SEKRET")
	}
	const log = "cloud-init[812]: Cloud-init v. 23.1 running modules: final\ncloud-init.service: done, no userdata\nthe EnvVariables of it"
	if got := new(Redactor).Text(log); got != log {
		t.Errorf("it became %q", got)
	}
}

func TestASecretOfSeveralLinesGoes(t *testing.T) {
	text := "a line\npassword: \"one\ntwo\nthree\"\nan end\ntoken:\n  abc\n"
	want := "a line\npassword: \"(redacted)\"\nan end\ntoken:\n  (redacted)\n"
	if diff := cmp.Diff(want, Text(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{
		"write_files:\n- path: /etc/x\n  token: |\n  SEKRET\n",
		"    auth:\n    password: |\n    a SEKRET of several words\n",
		"spec:\n    userData: |\n  #cloud-config\n  - [ x, SEKRET ]\n",
	} {
		if got := Text(text); strings.Contains(got, "SEKRET") {
			t.Errorf("where the line is not indented it became %q", got)
		}
	}
}

func TestALongBlockOfYAMLGoesAsAWhole(t *testing.T) {
	for name, c := range map[string]struct{ front, indent, line, after string }{
		"token":                      {"token: |\n", "  ", "\n", "an end\n"},
		"with \\r":                   {"token: |\r\n", "  ", "\r\n", "an end\r\n"},
		"in a list":                  {"- - password: >-\n", "     ", "\n", strings.Repeat("    user: me\n", reach)},
		"cloud-init":                 {"- cloudInitNoCloud:\n    userData: |2\n", "      ", "\n\n \n", "- containerDisk:\n    image: x\n"},
		"a block that others follow": {"  userData: |\n", "    ", "\n", "  status:\n    phase: Running\n  nodeName: n1\n"},
	} {
		got := Text("a line\n" + c.front + strings.Repeat(c.indent+"SEKRET: a"+c.line, 300) + c.after)
		if strings.Contains(got, "SEKRET") || !strings.HasPrefix(got, "a line\n"+c.front) || !strings.HasSuffix(got, Hidden+"\n"+c.after) {
			t.Errorf("%s: it became %q", name, got)
		}
	}
	const log = "what the tokens are of: |\n"
	rest := strings.Repeat("  12 pods are gone\n", 2*reach)
	if got := Text(log + rest); got != log+rest {
		t.Errorf("it became %q", got)
	}
}

func TestAQuoteWithoutAnEndCostsItsLine(t *testing.T) {
	rest := strings.Repeat("a line\n", 2*reach) + `and a "quote"`
	if got, want := Text("pass=\"a b\n"+rest), "pass=\"(redacted)\n"+rest; got != want {
		t.Errorf("it became %q", got)
	}
}

func TestWhatIsNotSecretStays(t *testing.T) {
	for _, text := range []string{
		"waits for 1 pod: eve-kube-app/plc-0", "node/node-2", `{"Phase":"Emptying","Pods":{"Total":12}}`,
		"5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11", "https://10.0.0.1:6443/api", "2026-05-03T06:41:17.250000001Z",
		"the key is at /persist/certs/x.key and monkeys: 3", "password=\"\" user='u'", `"tokens": []`, "a significant sign=3",
		"secretRef:\n  name: x", "secretRef: {name: x}", "eve-user: none", "kube-upgrade -unit", "/import/readme.txt", "sort -u names: 3", "curl -u me https://x",
		base64.StdEncoding.EncodeToString([]byte("a certificate that everybody may read, of some length")),
	} {
		if got := new(Redactor).Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestWhatWasLearntGoesEverywhereInEachForm(t *testing.T) {
	var r Redactor
	r.LearnJSON([]byte(`{"EncryptedClusterToken":"blue \"horse\" 17","VncPasswd":"abc","Since":"2026-05-03T06:41:17Z"}`))
	r.LearnYAML([]byte("users:\n- user:\n    password: green/cow+3\n"))
	in64 := base64.StdEncoding.EncodeToString([]byte(`say blue "horse" 17 to nobody`))
	text := `blue "horse" 17, blue \"horse\" 17, green/cow+3, green%2Fcow%2B3, ` + in64 + ", abc, 2026-05-03T06:41:17Z"
	got := r.Text(text)
	want := "(redacted), (redacted), (redacted), (redacted), KHJlZGFjdGVkKQ==, abc, 2026-05-03T06:41:17Z"
	if got != want {
		t.Errorf("became %q, want %q", got, want)
	}
	if r.Places() != 5 {
		t.Errorf("%d places, want 5", r.Places())
	}
}

func TestEveryDocumentOfATextTeaches(t *testing.T) {
	for _, raw := range []string{
		"a: b\n---\ntoken: blue-horse-17\n", "---\na: b\n--- # two\r\ntoken: blue-horse-17\r\n", "a: b\n...\ntoken: blue-horse-17\n",
		"a: [\n---\ntoken: blue-horse-17\n", "--- {token: blue-horse-17}\n", "kind: x\n---\napiVersion: v1\nkind: Secret\ndata:\n  url: aHR0cHM6Ly94\n  token: Ymx1ZS1ob3JzZS0xNw==\n",
		"kind: x\n---\nkind: Secret\nstringData:\n  any: blue-horse-17\n",
	} {
		var r Redactor
		r.LearnYAML([]byte(raw))
		if got, want := r.Text("it is blue-horse-17, or not"), "it is (redacted), or not"; got != want {
			t.Errorf("after %q it became %q, want %q", raw, got, want)
		}
	}
}

func TestASecretOfKubernetesKeepsNoneOfItsData(t *testing.T) {
	raw := `{"kind":"Secret","metadata":{"name":"x"},"data":{"any":"Ymx1ZS1ob3JzZS0xNw=="},"stringData":{"other":"green-cow"}}`
	want := `{"kind":"Secret","metadata":{"name":"x"},"data":{"any":"(redacted)"},"stringData":{"other":"(redacted)"}}`
	if diff := cmp.Diff(parsed(t, want), parsed(t, string(new(Redactor).JSON([]byte(raw))))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAValueKeepsItsShape(t *testing.T) {
	raw := `{"ClusterName":"plant-7","EncryptedClusterToken":"t0p",
		"CipherToken":{"CipherBlockID":"5d0c","InitialValue":"AAEC","pubsub-large-CipherData":"c2VhbGVk","ClearTextHash":null,"IsCipher":true,"Error":"no certificate"},
		"GlobalSettings":{"k3s.config.override":{"Key":"k3s.config.override","ItemType":3,"StrValue":"dG9rZW46IHg="},"k3s.version":{"Key":"k3s.version","StrValue":"v1"}},
		"Env":[{"name":"DB_PASSWORD","value":"x"},{"name":"HOME","value":"/"}],
		"Secrets":{"a":["x",7,true,null,"2026-05-03T06:41:17Z"]},
		"Note":"{\"token\":\"x\",\"n\":18446744073709551615}","N":18446744073709551615}`
	want := `{"ClusterName":"plant-7","EncryptedClusterToken":"(redacted)",
		"CipherToken":{"CipherBlockID":"5d0c","InitialValue":"KHJlZGFjdGVkKQ==","pubsub-large-CipherData":"KHJlZGFjdGVkKQ==","ClearTextHash":null,"IsCipher":true,"Error":"no certificate"},
		"GlobalSettings":{"k3s.config.override":{"Key":"k3s.config.override","ItemType":3,"StrValue":"(redacted)"},"k3s.version":{"Key":"k3s.version","StrValue":"v1"}},
		"Env":[{"name":"DB_PASSWORD","value":"(redacted)"},{"name":"HOME","value":"/"}],
		"Secrets":{"a":["(redacted)",0,true,null,"2026-05-03T06:41:17Z"]},
		"Note":"{\"n\":18446744073709551615,\"token\":\"(redacted)\"}","N":18446744073709551615}`
	if diff := cmp.Diff(parsed(t, want), parsed(t, string(new(Redactor).JSON([]byte(raw))))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAKubeconfigLosesItsCredentialsOnly(t *testing.T) {
	raw := "clusters:\n- cluster:\n    server: https://127.0.0.1:6443\n    certificate-authority-data: LS0tLS1=\n" +
		"users:\n- user:\n    client-certificate-data: LS0tLS1=\n    client-key-data: c2VjcmV0\n    token: abc\n"
	got := string(new(Redactor).YAML([]byte(raw)))
	for _, stays := range []string{"https://127.0.0.1:6443", "certificate-authority-data: LS0tLS1=", "client-certificate-data: LS0tLS1="} {
		if !strings.Contains(got, stays) {
			t.Errorf("%q is gone from\n%s", stays, got)
		}
	}
	for _, goes := range []string{"c2VjcmV0", "abc"} {
		if strings.Contains(got, goes) {
			t.Errorf("%q is still in\n%s", goes, got)
		}
	}
}

func TestLinesOfJSONStayLinesOfJSON(t *testing.T) {
	raw := `{"msg":"token: abc","level":"info"}` + "\nplain password=abc\n" + pem + "\n" + `{"half":`
	want := `{"level":"info","msg":"token: (redacted)"}` + "\nplain password=(redacted)\n(redacted)\n" + `{"half":`
	if diff := cmp.Diff(want, string(new(Redactor).Lines([]byte(raw)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAKeyOverLinesOfJSONGoes(t *testing.T) {
	const key = "MHcCAQEEIBsecretsecretsecretsecretsecretsecret"
	line := func(text string) string { return `{"content":"` + text + `","pid":812}` + "\n" }
	before := line("/persist/newlog/collect/dev.log is read")
	raw := before + line("-----BEGIN EC PRIVATE KEY-----") + line(key) + line(`and\n`+key+"==") + line("-----END EC PRIVATE KEY-----") + before
	got := string(new(Redactor).Lines([]byte(raw)))
	if strings.Contains(got, "secretsecret") || !strings.HasPrefix(got, before) || !strings.HasSuffix(got, before) {
		t.Errorf("it became\n%s", got)
	}
	for line := range strings.Lines(got) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

func TestWhatDoesNotParseIsText(t *testing.T) {
	for _, raw := range []string{`{"token":"abc"`, "\x00\xff token: abc", `{"token":"abc"} {"token":"abc"}`} {
		if got := string(new(Redactor).JSON([]byte(raw))); strings.Contains(got, "abc") {
			t.Errorf("%q became %q", raw, got)
		}
	}
}

func FuzzRedactedJSONIsJSONWithoutItsSecret(f *testing.F) {
	f.Add(`{"a":"b","c":[1,{"d":null}]}`)
	f.Add(`{"note":"{\"x\":\"y\"}"}`)
	f.Fuzz(func(t *testing.T, around string) {
		if !json.Valid([]byte(around)) || strings.Contains(around, "s3cr3t-0f-m1ne") {
			t.Skip()
		}
		raw, _ := json.Marshal(map[string]any{"clusterToken": "s3cr3t-0f-m1ne", "around": json.RawMessage(around), "text": around + "s3cr3t-0f-m1ne"})
		var r Redactor
		r.LearnJSON(raw)
		got := r.JSON(raw)
		if !json.Valid(got) || strings.Contains(string(got), "s3cr3t-0f-m1ne") {
			t.Errorf("%s became %s", raw, got)
		}
	})
}

func parsed(t *testing.T, raw string) any {
	t.Helper()
	v, err := decode([]byte(raw))
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return v
}
