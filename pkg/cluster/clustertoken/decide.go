package clustertoken

import (
	"cmp"
	"encoding/hex"
	"reflect"
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
	now        time.Time // with its monotonic reading
	settled    bool      // a certificate that is not there is missing, and not only late
	known      bool      // there is a membership
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

const (
	// patience is how long after the start a certificate may be missing
	// before it counts as missing, and how long a disk may take.
	patience = 10 * time.Second
	// A TPM that is busy, or a key file that is not there yet, rings for nobody.
	minRetry = 2 * time.Second
	maxRetry = time.Minute
)

// action is everything decide may ask for.
type action struct {
	token    *types.ClusterToken // to be published
	withdraw bool                // the published one is to be withdrawn
	blocks   map[string]types.CipherBlockStatus
	stale    []string // keys of blocks to be withdrawn

	ask    *question // to be decrypted now
	about  part
	cancel bool // what is being decrypted is not asked for any more

	keep  *keptfile.Desired // what the file is to be now
	idle  bool              // nothing is wanted of the file any more
	stuck bool              // the disk does not answer
	again time.Duration
}

// decide says what to publish, what to decrypt and what to make of the file.
func decide(f facts) action {
	a := action{again: period}
	if f.known {
		a.token, a.withdraw = row(f)
		a.blocks, a.stale = blocks(f)
	}
	ask(f, &a)
	file(f, &a)
	return a
}

// row is the token's. While nothing is known of a new question, the token of
// the same cluster stays; that of another goes at once.
func row(f facts) (publish *types.ClusterToken, withdraw bool) {
	q, a := f.wants[token], f.answers[token]
	if q == nil {
		return nil, f.hasRow
	}
	same := f.hasRow && f.row.ClusterID == q.cluster
	if a == nil {
		return nil, f.hasRow && !same
	}
	r := types.ClusterToken{ClusterID: q.cluster, Token: a.clear}
	if a.err != "" {
		var old types.ErrorDescription
		if same {
			r.Token, old = f.row.Token, f.row.Error
		}
		r.Error = types.Dated("decrypt the cluster token: "+a.err, old, f.now.UTC())
	}
	return &r, false
}

// blocks are the states of the encrypted blocks, by their ids. A configuration
// may give both the same id: one that failed then stands for both, the token's
// before the manifest's.
func blocks(f facts) (want map[string]types.CipherBlockStatus, stale []string) {
	want = map[string]types.CipherBlockStatus{}
	for p, q := range f.wants {
		if q == nil || empty(q.block) {
			continue
		}
		key := cmp.Or(q.block.CipherBlockID, q.cluster.String())
		b := state(q.block, f.answers[p], f.published[key], f.now)
		if other, taken := want[key]; !taken || other.Error == "" && b.Error != "" {
			want[key] = b
		}
	}
	for key := range f.published {
		if _, wanted := want[key]; !wanted {
			stale = append(stale, key)
		}
	}
	return want, stale
}

// state is a block with what came of it. Before that is known, what a former
// run made of the same block stands.
func state(b types.CipherBlockStatus, a *answer, old types.CipherBlockStatus, now time.Time) types.CipherBlockStatus {
	former := old.ErrorDescription
	b.ErrorDescription, old.ErrorDescription = types.ErrorDescription{}, types.ErrorDescription{}
	switch {
	case a == nil && reflect.DeepEqual(old, b):
		b.ErrorDescription = former
	case a != nil && a.err != "":
		b.ErrorDescription = types.Dated(a.err, former, now.UTC())
	}
	return b
}

// ask chooses what to decrypt next, the token first, one at a time.
func ask(f facts, a *action) {
	if f.busy {
		q := f.wants[f.about]
		a.cancel = q == nil || !reflect.DeepEqual(*q, f.asked)
		return
	}
	for p, q := range f.wants {
		if q == nil {
			continue
		}
		switch wait := due(f, *q, f.answers[p]); {
		case wait <= 0:
			a.ask, a.about = q, part(p)
			return
		default:
			a.again = min(a.again, wait)
		}
	}
}

// due is how long to wait before a question is asked. One that is answered is
// asked again only where time may help: what else it depends on is part of it.
func due(f facts, q question, last *answer) time.Duration {
	switch {
	case last == nil && !q.complete() && !f.settled:
		return period
	case last == nil:
		return 0
	case last.err == "" || last.kind != cipher.NotReady:
		return period
	}
	retry := min(minRetry<<min(last.tries-1, 10), maxRetry)
	return retry - f.now.Sub(last.at)
}

// file says what to make of the manifest's file: now where that is another
// thing than at the last look, else every period, since others may touch it.
func file(f facts, a *action) {
	w := wantedFile(f)
	switch due := f.file.Due(w, f.now, period); {
	case f.file.Busy:
		a.stuck = f.now.Sub(f.file.Since) >= patience
	case w.Do == keptfile.Leave:
		a.idle = true
	case due <= 0:
		a.keep = &w
	default:
		a.again = min(a.again, due)
	}
}

// wantedFile is what the file should be. It is removed only where it is known
// that this node has none to register with: a later bootstrap node of another
// cluster would else hand in the papers of the first.
func wantedFile(f facts) keptfile.Desired {
	switch q := f.wants[manifest]; {
	case f.membership.State == types.MembershipLeft:
		return keptfile.Desired{Do: keptfile.Remove}
	case f.wants[token] == nil:
		return keptfile.Desired{} // no cluster is known, or nothing of it that can be acted on
	case q == nil:
		return keptfile.Desired{Do: keptfile.Remove}
	case f.good.cluster == q.cluster && f.good.clear != "":
		return keptfile.Desired{Do: keptfile.Write, Content: f.good.clear}
	case f.good.cluster != uuid.Nil:
		return keptfile.Desired{Do: keptfile.Remove}
	}
	return keptfile.Desired{}
}
