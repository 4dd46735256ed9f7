package cipher

import (
	"os"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport"
	"github.com/google/go-tpm/tpm2/transport/linuxtpm"
	"github.com/google/go-tpm/tpm2/transport/linuxudstpm"
)

// keyHandle is where tpmmgr makes the key, without a password (docs/wire.md,
// "Token decryption").
const keyHandle tpm2.TPMHandle = 0x81000005

func (d *Device) agreeInTPM(p parties) (point, error) {
	tpm, err := openTPM(d.tpm)
	if err != nil {
		return point{}, failure(NotReady, "open the TPM: %w", err)
	}
	defer tpm.Close()
	public, err := tpm2.ReadPublic{ObjectHandle: keyHandle}.Execute(tpm)
	if err != nil {
		return point{}, failure(NotReady, "read key %#x of TPM %s: %w", uint32(keyHandle), d.tpm, err)
	}
	if !isKeyOf(public.OutPublic, p) {
		return point{}, failure(NotReady, "key %#x of TPM %s is not that of the device certificate", uint32(keyHandle), d.tpm)
	}
	xy := p.controller.Bytes()[1:] // after the byte that says uncompressed
	made, err := tpm2.ECDHZGen{
		KeyHandle: tpm2.AuthHandle{Handle: keyHandle, Name: public.Name, Auth: tpm2.PasswordAuth(nil)},
		InPoint: tpm2.New2B(tpm2.TPMSECCPoint{
			X: tpm2.TPM2BECCParameter{Buffer: xy[:32]}, Y: tpm2.TPM2BECCParameter{Buffer: xy[32:]},
		}),
	}.Execute(tpm)
	if err != nil {
		return point{}, failure(NotReady, "agree on a key in TPM %s: %w", d.tpm, err)
	}
	out, err := made.OutPoint.Contents()
	if err != nil {
		return point{}, failure(NotReady, "agree on a key in TPM %s: the answer cannot be parsed", d.tpm)
	}
	shared, err := pointOf(out.X.Buffer, out.Y.Buffer)
	if err != nil {
		return point{}, failure(NotReady, "agree on a key in TPM %s: %w", d.tpm, err)
	}
	return shared, nil
}

// openTPM opens a device, or the socket of an emulator.
func openTPM(path string) (transport.TPMCloser, error) {
	if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		return linuxudstpm.Open(path)
	}
	return linuxtpm.Open(path)
}

// isKeyOf reports whether the TPM's key is the one in the device's certificate.
func isKeyOf(public tpm2.TPM2BPublic, p parties) bool {
	area, err := public.Contents()
	if err != nil {
		return false
	}
	xy, err := area.Unique.ECC()
	if err != nil {
		return false
	}
	key, err := keyOf(xy.X.Buffer, xy.Y.Buffer)
	return err == nil && key.Equal(p.device)
}
