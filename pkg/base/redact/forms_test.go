package redact

import (
	"strings"
	"testing"
)

// forms are the usual ways in which secrets are written, SEKRET being one.
var forms = []string{
	// fields of JSON
	`{"pass":"SEKRET"}`, `{"pw":"SEKRET"}`, `{"pin":"SEKRET"}`, `{"otp":"SEKRET"}`, `{"key":"SEKRET"}`, `{"sshkey":"SEKRET"}`, `{"recoveryKey":"SEKRET"}`,
	`{"AccountKey":"SEKRET"}`, `{"seed":"SEKRET words of it"}`, `{"mnemonic":"SEKRET abandon ability"}`, `{"session":"SEKRET"}`, `{"AuthPass":"SEKRET"}`,
	`{"PrivPass":"SEKRET"}`, `{"community":"SEKRET"}`, `{"DB_PASS":"SEKRET"}`, `{"auths":{"reg.example":{"auth":"SEKRET"}}}`, `{"ntlm":"SEKRET"}`,
	`{"password":"SEKRET"}`, `{"passwd":"SEKRET"}`, `{"passphrase":"SEKRET"}`, `{"token":"SEKRET"}`, `{"apiKey":"SEKRET"}`, `{"clientSecret":"SEKRET"}`,
	`{"credential":"SEKRET"}`, `{"jwt":"SEKRET"}`, `{"cookie":"SEKRET"}`, `{"PreSharedKey":"SEKRET"}`, `{"wpaPsk":"SEKRET"}`, `{"privateKey":"SEKRET"}`,
	// text
	"DB_PASS=SEKRET", "pass: SEKRET", "pw=SEKRET", "pin: SEKRET", "otp=SEKRET", `key="SEKRET"`, "sshkey: SEKRET", "recoveryKey=SEKRET", "seed: SEKRET b c", "session=SEKRET",
	"snmp-server community SEKRET ro", "community: SEKRET",
	"DefaultEndpointsProtocol=https;AccountName=x;AccountKey=SEKRET;EndpointSuffix=core", "ghp_SEKRET0123456789", "glpat-SEKRET0123456789", "AKIASEKRET0123456789",
	"xoxb-SEKRET-0123456789", "sk-SEKRET0123456789", "sshpass -p SEKRET ssh me@x", "docker login -u me -p SEKRET reg", "mysql -u me -pSEKRET db", "root:$6$SEKRET$hash:1:",
	"Authorization: NTLM SEKRET", `Authorization: Digest username="me", response="SEKRET"`, "auth: SEKRET",
}

func TestNoUsualFormOfASecretStays(t *testing.T) {
	for _, form := range forms {
		inLog := `{"level":"info","msg":"x ` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(form) + `"}`
		for where, got := range map[string]string{
			"value":         string(new(Redactor).JSON([]byte(form))),
			"text":          new(Redactor).Text("a line\n" + form + "\nan end"),
			"line of a log": string(new(Redactor).Lines([]byte(inLog + "\n"))),
		} {
			if where == "value" && !strings.HasPrefix(form, "{") {
				continue
			}
			if strings.Contains(got, "SEKRET") {
				t.Errorf("as %s: %s became %s", where, form, got)
			}
		}
	}
	hash := "SAM: 8846f7eaee8fb117ad06bdd830b7586c:8846f7eaee8fb117ad06bdd830b7586c key"
	if got := new(Redactor).Text(hash); strings.Contains(got, "8846f7") {
		t.Errorf("a hash became %s", got)
	}
	if len(forms) < 54 {
		t.Errorf("only %d forms", len(forms))
	}
}

func TestNamesAreNotTakenForKeys(t *testing.T) {
	for _, text := range []string{
		`{"key":"global","topic":"zedkube/KubeConfig"}`, `{"Key":"timer.config.interval","IntValue":60}`, "key=9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34", "key: node-1",
		"bypass=true", `{"PublicKey":"AAAA"}`, "the session of today", "compass: 3",
	} {
		if got := new(Redactor).Text(text); got != text {
			t.Errorf("%s became %s", text, got)
		}
		if strings.HasPrefix(text, "{") {
			if got := strings.TrimSpace(string(new(Redactor).JSON([]byte(text)))); strings.Contains(got, Hidden) {
				t.Errorf("%s became %s", text, got)
			}
		}
	}
}
