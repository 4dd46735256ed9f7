package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"math/big"
	"testing"

	"github.com/zedkube/zedkube/pkg/edge/cloud"
	"github.com/zedkube/zedkube/pkg/edge/object"
)

// sight is what is seen of a cluster.
type sight map[object.Ref]object.Object

func (s sight) Seen() (map[object.Ref]object.Object, bool) { return s, true }

// secret is one of cloudcore's, as the API server has it.
func secret(uid, version string, data map[string][]byte) object.Object {
	text := object.Map{}
	for name, content := range data {
		text[name] = base64.StdEncoding.EncodeToString(content)
	}
	return object.Object{"metadata": object.Map{"uid": uid, "resourceVersion": version}, "data": text}
}

func serving(t *testing.T, serial int64) map[string][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"cloudcoredata": certificate, "cloudcorekeydata": text}
}

func TestTheCertificateOfCloudcoreIsReadOnceForEachVersionOfItsSecret(t *testing.T) {
	seen := sight{cloud.RefCA: secret("a", "1", map[string][]byte{"cadata": []byte("CA"), "cakeydata": []byte("key")})}
	k := &signing{cluster: seen}
	one, two, three := serving(t, 1), serving(t, 2), serving(t, 3)
	for _, row := range []struct {
		what   string
		secret object.Object // nil for none
		want   []byte        // nil for an error
	}{
		{"there is none yet", nil, nil},
		{"there is one", secret("b", "2", one), one["cloudcoredata"]},
		{"it is not read again", secret("b", "2", two), one["cloudcoredata"]},
		{"it is another version", secret("b", "3", two), two["cloudcoredata"]},
		{"it was made again", secret("c", "3", three), three["cloudcoredata"]},
		{"it cannot be read", secret("c", "4", nil), nil},
		{"it still cannot be read", secret("c", "4", nil), nil},
		{"it is gone", nil, nil},
		{"it is the one of before", secret("c", "3", three), three["cloudcoredata"]},
	} {
		seen[cloud.RefServing] = row.secret
		a, err := k.Authority()
		if (err != nil) != (row.want == nil) || err == nil && !bytes.Equal(a.Serving.Certificate[0], row.want) {
			t.Errorf("%s: %v", row.what, err)
		}
	}
}
