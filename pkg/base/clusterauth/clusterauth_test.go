package clusterauth

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const knownToken = "test-join-token"

func derive(t *testing.T, token string) *Credentials {
	t.Helper()
	c, err := Derive(token)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestKnownAnswer(t *testing.T) {
	for _, token := range []string{knownToken, " " + knownToken + "\n"} {
		c := derive(t, token)
		if got := c.Bearer(); got != "8e9df6c76b89b9a2965bc34190469f2dac724bbe5ce18beb08a1214d94e6ddfc" {
			t.Errorf("%q gives the bearer %s", token, got)
		}
		sum := sha256.Sum256(c.DER())
		if got := hex.EncodeToString(sum[:]); got != "b2cd067de4af8389b7abb9a86f549f82420d82aebe08b984e483b49ac130e90b" {
			t.Errorf("%q gives the certificate %s", token, got)
		}
	}
	t.Setenv("GODEBUG", "x509sha256skid=0") // as releases of Go before 1.25 made it
	if !bytes.Equal(derive(t, knownToken).DER(), derive(t, knownToken).DER()) || derive(t, knownToken).Bearer() == derive(t, "other").Bearer() {
		t.Error("a token gives its own credentials, and each time the same")
	}
	sum := sha256.Sum256(derive(t, knownToken).DER())
	if hex.EncodeToString(sum[:4]) != "b2cd067d" {
		t.Error("the certificate differs with the release of Go")
	}
}

func TestNoTokenNoCredentials(t *testing.T) {
	for _, token := range []string{"", " \n\t"} {
		if c, err := Derive(token); !errors.Is(err, ErrNoToken) || c != nil {
			t.Errorf("%q: %v, %v", token, c, err)
		}
	}
}

func TestCredentialsAreNotPrinted(t *testing.T) {
	c := derive(t, knownToken)
	for _, format := range []string{"%v", "%+v", "%s"} {
		if text := fmt.Sprintf(format, c); strings.Contains(text, c.Bearer()) || text != "(redacted)" {
			t.Errorf("%s prints %.40q", format, text)
		}
	}
}

// EVE's client takes the certificate for its only root.
func TestCertificateIsItsOwnRoot(t *testing.T) {
	is, err := x509.ParseCertificate(derive(t, knownToken).DER())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(is)
	for at, want := range map[time.Time]bool{
		time.Date(2025, 12, 31, 23, 59, 59, 0, time.UTC): false,
		time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC):      true,
		time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC):    true,
	} {
		if _, err := is.Verify(x509.VerifyOptions{Roots: roots, DNSName: ServerName, CurrentTime: at}); (err == nil) != want {
			t.Errorf("at %s: %v", at, err)
		}
	}
	if len(is.DNSNames) != 1 || len(is.IPAddresses) != 0 || is.Subject.CommonName != ServerName {
		t.Errorf("it names %q, %v, %s", is.DNSNames, is.IPAddresses, is.Subject)
	}
}
