package clustertoken

import (
	"encoding/hex"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/cipher"
	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/types"
)

// part is one of the secrets of a configuration. Each is encrypted, asked for
// and answered on its own.
type part int

const (
	token part = iota
	manifest
	parts int = iota
)

// question is all that an answer depends on. Where it changes, an answer to
// the one before is worth nothing.
type question struct {
	cluster uuid.UUID
	block   types.CipherBlockStatus
	certs   cipher.Certificates // those the block names, as far as they are there
}

// complete reports whether the certificates are there.
func (q question) complete() bool { return len(q.certs.Controller) > 0 && len(q.certs.Device) > 0 }

// answer is what came of a question.
type answer struct {
	of    question
	at    time.Time
	clear string      // the token, or the manifest unzipped: "" where none is sent
	err   string      // why there is none; "" where there is
	kind  cipher.Kind // of err
	tries int         // how often in a row there was none
}

// goodManifest is the last manifest that could be obtained, "" where none is sent.
type goodManifest struct {
	cluster uuid.UUID
	clear   string
}

// facts is everything decide may look at.
type facts struct {
	now        time.Time
	settled    bool // a certificate that is not there is missing, and not only late
	known      bool // there is a membership
	membership types.ClusterMembership
	wants      [parts]*question // nil where there is nothing to ask
	answers    [parts]*answer   // nil where there is none to what is wanted
	good       goodManifest

	busy  bool // a decryption is under way
	about part
	asked question

	row       types.ClusterToken // what is published
	hasRow    bool
	published map[string]types.CipherBlockStatus

	file keptfile.State // of the manifest's
}

// questions are what a membership's configuration holds in encrypted form: the
// token for everybody, the manifest for the bootstrap node if there is one.
func questions(m types.ClusterMembership, certs cipher.Certificates) (wants [parts]*question) {
	c := m.Config
	if c == nil || !m.Belongs() || c.Lack() != "" {
		return wants
	}
	ask := func(b types.CipherBlockStatus) *question {
		return &question{cluster: c.ClusterID.UUID, block: b, certs: named(b.CipherContext, certs)}
	}
	wants[token] = ask(c.CipherToken)
	if b := c.CipherGzipRegistrationManifestYaml; c.BootstrapNode && !empty(b) {
		wants[manifest] = ask(b)
	}
	return wants
}

// empty reports that the controller sends no such block.
func empty(b types.CipherBlockStatus) bool { return !b.IsCipher && len(b.CipherData) == 0 }

// named leaves of the certificates those that a context names, so that the
// others may change without a question becoming another.
func named(c *types.CipherContext, all cipher.Certificates) (certs cipher.Certificates) {
	if c == nil {
		return certs
	}
	key := hex.EncodeToString(c.ControllerCertHash)
	if cert, ok := all.Controller[key]; ok {
		certs.Controller = map[string]types.ControllerCert{key: cert}
	}
	key = hex.EncodeToString(c.DeviceCertHash)
	if cert, ok := all.Device[key]; ok {
		certs.Device = map[string]types.EdgeNodeCert{key: cert}
	}
	return certs
}
