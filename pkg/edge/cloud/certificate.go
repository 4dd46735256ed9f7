package cloud

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/zedkube/zedkube/pkg/edge/object"
)

// The certificate of the stream is one of a kubelet, because the API server takes what answers there for one: it
// names every address that an edge node can have, since cloudcore reads it only when it starts.
const (
	signer         = "kubernetes.io/kubelet-serving"
	requestedFor   = 365 * 24 * time.Hour
	requestPEM     = "CERTIFICATE REQUEST"
	certificatePEM = "CERTIFICATE"
)

// addressesIn are all that edge nodes of a block can have, and this host.
func addressesIn(block string) ([]net.IP, error) {
	network, err := netip.ParsePrefix(block)
	if err != nil {
		return nil, fmt.Errorf("read edgeBlock: %w", err)
	}
	list := []net.IP{net.IPv4(127, 0, 0, 1)}
	for a := network.Masked().Addr().Next(); network.Contains(a.Next()); a = a.Next() {
		list = append(list, a.AsSlice())
	}
	return list, nil
}

// newKey is a private key for the stream, as a file has it.
func newKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key for the stream: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("make a key for the stream: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// readKey reads what newKey has made.
func readKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no PEM block")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	if key, is := key.(*ecdsa.PrivateKey); is {
		return key, nil
	}
	return nil, errors.New("no ECDSA key")
}

// request asks for a certificate of that key.
func request(key []byte, block string) (object.Object, error) {
	signing, err := readKey(key)
	if err != nil {
		return nil, fmt.Errorf("read the key of the stream: %w", err)
	}
	addresses, err := addressesIn(block)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: "system:node:" + refRequest.Name, Organization: []string{"system:nodes"}},
		IPAddresses: addresses,
	}, signing)
	if err != nil {
		return nil, fmt.Errorf("make a request for the stream's certificate: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: requestPEM, Bytes: der})
	return labelled(refRequest).With(m{"spec": m{
		"request": base64.StdEncoding.EncodeToString(text), "signerName": signer,
		"expirationSeconds": int64(requestedFor / time.Second), "usages": l{"digital signature", "key encipherment", "server auth"},
	}}), nil
}

// asksFor reports that the request was made with that key.
func asksFor(csr object.Object, key []byte) bool {
	signing, err := readKey(key)
	if err != nil {
		return false
	}
	text, err := base64.StdEncoding.DecodeString(csr.Text("spec", "request"))
	block, _ := pem.Decode(text)
	if err != nil || block == nil {
		return false
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	return err == nil && signing.PublicKey.Equal(asked.PublicKey)
}

// streamSecret is the Secret with what was issued.
func streamSecret(certificate string, key []byte, ca string) object.Object {
	return labelled(refStreamKey).With(m{"type": "Opaque", "data": m{
		"stream.crt": certificate, "stream.key": base64.StdEncoding.EncodeToString(key),
		"streamCA.crt": base64.StdEncoding.EncodeToString([]byte(ca)),
	}})
}

// data is one file of a Secret.
func data(secret object.Object, name string) []byte {
	text, err := base64.StdEncoding.DecodeString(secret.Text("data", name))
	if err != nil {
		return nil
	}
	return text
}

// Authority is what cloudcore signs with, of its casecret: nil while there is none.
func Authority(casecret object.Object) (ca, key []byte) {
	return data(casecret, "cadata"), data(casecret, "cakeydata")
}

// Serving is what cloudcore serves by, of its cloudcoresecret.
func Serving(cloudcoresecret object.Object) (tls.Certificate, error) {
	text := func(kind, name string) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data(cloudcoresecret, name)})
	}
	c, err := tls.X509KeyPair(text("CERTIFICATE", "cloudcoredata"), text("PRIVATE KEY", "cloudcorekeydata"))
	if err != nil {
		return c, fmt.Errorf("read %s: %w", RefServing, err)
	}
	return c, nil
}

// stream says whether the Secret has a certificate that serves, until when, and what is wrong with it; "" for nothing.
func stream(secret object.Object, block string, now time.Time) (until time.Time, why string) {
	if secret == nil {
		return until, "there is none"
	}
	pair, err := tls.X509KeyPair(data(secret, "stream.crt"), data(secret, "stream.key"))
	if err != nil {
		return until, "it cannot be read"
	}
	leaf := pair.Leaf
	until = leaf.NotAfter
	if renew := leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) * 2 / 3); now.After(renew) {
		return until, "two thirds of its time are over"
	}
	addresses, err := addressesIn(block)
	if err != nil {
		return until, err.Error()
	}
	if lacks(leaf, addresses) != nil {
		return until, "it is not for the addresses of " + block
	}
	return until, ""
}

// lacks is the first of these addresses that the certificate does not name; nil for none.
func lacks(c *x509.Certificate, addresses []net.IP) net.IP {
	named := map[string]bool{}
	for _, a := range c.IPAddresses {
		named[string(a.To16())] = true
	}
	for _, a := range addresses {
		if !named[string(a.To16())] {
			return a
		}
	}
	return nil
}

// serves reports that cloudcoresecret names every address that edge nodes dial. What cannot be read is not ours to
// judge.
func serves(secret object.Object, advertise []string) bool {
	der := data(secret, "cloudcoredata")
	if block, _ := pem.Decode(bytes.TrimSpace(der)); block != nil {
		der = block.Bytes
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return true
	}
	var addresses []net.IP
	for _, a := range advertise {
		if ip := net.ParseIP(a); ip != nil {
			addresses = append(addresses, ip)
		}
	}
	return lacks(c, addresses) == nil
}
