package eveapi

import (
	"errors"
	"slices"

	"github.com/lf-edge/eve-api/go/evecommon"

	"github.com/zedkube/zedkube/types"
)

// CipherBlock is what zedagent makes of m, nil for none, under the name id. Its
// context may be missing: it comes with a later configuration, and until then
// whoever decrypts says so. A block without data or without the name of its
// context is an error.
func CipherBlock(id string, m *evecommon.CipherBlock, contexts []*evecommon.CipherContext) (types.CipherBlockStatus, error) {
	if m == nil {
		return types.CipherBlockStatus{CipherBlockID: id}, nil
	}
	if len(m.GetCipherData()) == 0 {
		return types.CipherBlockStatus{}, errors.New("the cipher block holds no data")
	}
	if m.GetCipherContextId() == "" {
		return types.CipherBlockStatus{}, errors.New("the cipher block names no context")
	}
	return types.CipherBlockStatus{
		CipherBlockID: id, CipherContextID: m.GetCipherContextId(), InitialValue: m.GetInitialValue(),
		CipherData: m.GetCipherData(), ClearTextHash: m.GetClearTextSha256(), IsCipher: true,
		CipherContext: cipherContext(m.GetCipherContextId(), contexts),
	}, nil
}

// cipherContext is the context of that name, nil for none; of several of a
// name the last.
func cipherContext(id string, contexts []*evecommon.CipherContext) *types.CipherContext {
	for _, m := range slices.Backward(contexts) {
		if m.GetContextId() == id {
			return &types.CipherContext{
				ContextID:         id,
				HashScheme:        types.HashAlgorithm(m.GetHashScheme()),
				KeyExchangeScheme: types.KeyExchangeScheme(m.GetKeyExchangeScheme()),
				EncryptionScheme:  types.EncryptionScheme(m.GetEncryptionScheme()),
				DeviceCertHash:    m.GetDeviceCertHash(), ControllerCertHash: m.GetControllerCertHash(),
			}
		}
	}
	return nil
}

// cipherMessage is the block as the controller sent it, nil for none.
func cipherMessage(b types.CipherBlockStatus) *evecommon.CipherBlock {
	if !b.IsCipher {
		return nil
	}
	return &evecommon.CipherBlock{
		CipherContextId: b.CipherContextID, InitialValue: b.InitialValue, CipherData: b.CipherData, ClearTextSha256: b.ClearTextHash,
	}
}

// setContext puts a cipher context into the document, in place of one of the
// same name. There may be none.
func (d *Document) setContext(c *types.CipherContext) {
	if c == nil {
		return
	}
	d.Message.CipherContexts = put(d.Message.CipherContexts, &evecommon.CipherContext{
		ContextId: c.ContextID, HashScheme: evecommon.HashAlgorithm(c.HashScheme),
		KeyExchangeScheme: evecommon.KeyExchangeScheme(c.KeyExchangeScheme), EncryptionScheme: evecommon.EncryptionScheme(c.EncryptionScheme),
		DeviceCertHash: c.DeviceCertHash, ControllerCertHash: c.ControllerCertHash,
	}, (*evecommon.CipherContext).GetContextId)
}
