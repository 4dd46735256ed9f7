//go:build linux

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cloudcoreConfig is what the played cloudcore reads of its file.
type cloudcoreConfig struct {
	KubeAPIConfig struct{ QPS, Burst int }
	Modules       struct {
		CloudHub struct {
			AdvertiseAddress []string
			NodeLimit        int
		}
	}
}

// begin is the start of one cloudcore: its secrets where there are none, its file where KubeEdge would change it,
// and the next free port for its tunnels.
func (s *site) begin(ctx context.Context, pod *corev1.Pod) error {
	maps, secrets := s.kube.CoreV1().ConfigMaps(namespace), s.kube.CoreV1().Secrets(namespace)
	file, err := maps.Get(ctx, "cloudcore", metav1.GetOptions{})
	if err != nil {
		return err
	}
	var c cloudcoreConfig
	if err := json.Unmarshal([]byte(file.Data["cloudcore.yaml"]), &c); err != nil {
		return err
	}
	if n := c.Modules.CloudHub.NodeLimit; c.KubeAPIConfig.QPS != 5*n || c.KubeAPIConfig.Burst != 10*n {
		file.Data["cloudcore.yaml"] += " "
		if _, err := maps.Update(ctx, file, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	der, key, err := served(c.Modules.CloudHub.AdvertiseAddress)
	if err != nil {
		return err
	}
	for name, data := range map[string]map[string][]byte{
		"casecret": {"cadata": []byte("CA"), "cakeydata": []byte("key")}, "tokensecret": {"tokendata": []byte("token")},
		"cloudcoresecret": {"cloudcoredata": der, "cloudcorekeydata": key},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
		if _, err := secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return s.recordTunnel(ctx, pod.Status.PodIP)
}

func (s *site) recordTunnel(ctx context.Context, ip string) error {
	const record = "tunnelportrecord.kubeedge.io"
	maps := s.kube.CoreV1().ConfigMaps(namespace)
	var ports struct {
		IP   map[string]int  `json:"ipTunnelPort"`
		Used map[string]bool `json:"port"`
	}
	m, err := maps.Get(ctx, "tunnelport", metav1.GetOptions{})
	isNew := apierrors.IsNotFound(err)
	if isNew {
		m, err = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "tunnelport", Annotations: map[string]string{record: `{"ipTunnelPort":{},"port":{}}`}}}, nil
	}
	if err := errors.Join(err, json.Unmarshal([]byte(m.Annotations[record]), &ports)); err != nil {
		return err
	}
	port := 10351
	for ports.Used[fmt.Sprint(port)] {
		port++
	}
	if ports.IP[ip] == 0 {
		ports.IP[ip], ports.Used[fmt.Sprint(port)] = port, true
	}
	text, _ := json.Marshal(ports)
	m.Annotations[record] = string(text)
	if isNew {
		_, err = maps.Create(ctx, m, metav1.CreateOptions{})
	} else {
		_, err = maps.Update(ctx, m, metav1.UpdateOptions{})
	}
	return err
}

// served is a certificate for these addresses, and its key.
func served(addresses []string) (der, keyDER []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if keyDER, err = x509.MarshalECPrivateKey(key); err != nil {
		return nil, nil, err
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	for _, a := range addresses {
		c.IPAddresses = append(c.IPAddresses, net.ParseIP(a))
	}
	der, err = x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	return der, keyDER, err
}

// certifies reports that cloudcore's certificate names the address.
func certifies(secret *corev1.Secret, address string) bool {
	c, err := x509.ParseCertificate(secret.Data["cloudcoredata"])
	return err == nil && slices.ContainsFunc(c.IPAddresses, net.ParseIP(address).Equal)
}
