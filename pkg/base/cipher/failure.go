package cipher

import (
	"errors"
	"fmt"

	"github.com/zedkube/zedkube/types"
)

// Kind says what came in the way, as the index of its counter in CipherMetrics
// (docs/wire.md, "Cipher topics").
type Kind int

// The kinds, with EVE's names. Nothing here falls back to clear text.
const (
	Invalid           Kind = iota // the block or a certificate cannot be used as it is
	NotReady                      // a certificate or the private key is not there, or does not answer
	DecryptFailed                 // it was decrypted with a key that is not the right one
	UnmarshalFailed               // it was decrypted to something else
	CleartextFallback             // EVE's: decryption failed and the configuration has it in clear text
	MissingFallback               // EVE's: and it does not
	NoCipher                      // it is not encrypted
	NoData                        // it holds nothing
	Kinds             = int(NoData) + 1
)

// Error is why a block cannot be decrypted.
type Error struct {
	Kind Kind
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of an error of Decrypt; DecryptFailed for others.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return DecryptFailed
}

func failure(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// about names the context: it is what the controller's operator knows the
// block's certificates by.
func about(block types.CipherBlockStatus, err error) error {
	if err == nil || block.CipherContextID == "" {
		return err
	}
	const longest = 64 // the controller chose it, and it goes into logs
	id := block.CipherContextID
	return failure(KindOf(err), "cipher context %q: %w", id[:min(len(id), longest)], err)
}
