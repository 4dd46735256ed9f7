package clustertoken

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zedkube/zedkube/pkg/base/cipher"
	"github.com/zedkube/zedkube/types"
)

// device is a Device that reads blocks of block.
type device struct {
	key    atomic.Bool // it is there
	hangs  atomic.Bool // until the context ends
	calls  atomic.Int32
	within atomic.Int32
	most   atomic.Int32  // at the same time
	slow   time.Duration // how long it takes to end when its context has; set before the start
}

func (d *device) Decrypt(ctx context.Context, b types.CipherBlockStatus, certs cipher.Certificates) (cipher.Secret, error) {
	d.calls.Add(1)
	d.most.Store(max(d.most.Load(), d.within.Add(1)))
	defer d.within.Add(-1)
	if d.hangs.Load() {
		<-ctx.Done()
		time.Sleep(d.slow)
		return cipher.Secret{}, fail(cipher.NotReady, "the TPM does not answer")
	}
	clear, ok := strings.CutPrefix(string(b.CipherData), "sealed ")
	switch {
	case !b.IsCipher:
		return cipher.Secret{}, fail(cipher.NoCipher, "the block is not encrypted")
	case len(certs.Controller) == 0:
		return cipher.Secret{}, fail(cipher.NotReady, "controller certificate 01 is not there")
	case len(certs.Device) == 0:
		return cipher.Secret{}, fail(cipher.NotReady, "device certificate 02 is not there")
	case !d.key.Load():
		return cipher.Secret{}, fail(cipher.NotReady, "the key file is not there")
	case !ok, wrong(certs):
		return cipher.Secret{}, fail(cipher.DecryptFailed, "the hash does not hold")
	}
	return cipher.Secret{ClusterToken: clear, Manifest: []byte(clear)}, nil
}

// wrong reports that a certificate is not one the block was made with.
func wrong(certs cipher.Certificates) bool {
	for _, c := range certs.Controller {
		if string(c.Cert) == "wrong" {
			return true
		}
	}
	for _, c := range certs.Device {
		if string(c.Cert) == "wrong" {
			return true
		}
	}
	return false
}

func fail(kind cipher.Kind, text string) error {
	return &cipher.Error{Kind: kind, Err: errors.New(text)}
}
