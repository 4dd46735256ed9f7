package clustertoken

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/cipher"
	"github.com/zedkube/zedkube/types"
)

var (
	now   = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	early = now.Add(-10 * time.Minute)
	all   = cipher.Certificates{
		Controller: map[string]types.ControllerCert{"01": {CertHash: []byte{1}}, "aa": {}},
		Device:     map[string]types.EdgeNodeCert{"02": {CertID: []byte{2}}, "bb": {}},
	}
)

// heard is a node that knows all but answers.
func heard(m types.ClusterMembership, change ...func(*facts)) facts {
	f := facts{now: now, settled: true, known: true, membership: m, wants: questions(m, all)}
	for _, c := range change {
		c(&f)
	}
	return f
}

func answered(p part, a answer) func(*facts) {
	return func(f *facts) {
		a.of = *f.wants[p]
		f.answers[p] = &a
	}
}

func published(id uuid.UUID, text, problem string) func(*facts) {
	return func(f *facts) {
		f.hasRow, f.row = true, types.ClusterToken{ClusterID: id, Token: text}
		if problem != "" {
			f.row.Error = types.ErrorDescription{Error: problem, ErrorTime: early, ErrorSeverity: types.ErrorSeverityError}
		}
	}
}

func TestTheRowOfTheTokenFollowsFromTheRules(t *testing.T) {
	const why = "decrypt the cluster token: no"
	broken := func(at time.Time) types.ErrorDescription {
		return types.ErrorDescription{Error: why, ErrorTime: at, ErrorSeverity: types.ErrorSeverityError}
	}
	no := answer{err: "no", kind: cipher.NotReady, at: now, tries: 1}
	for name, r := range map[string]struct {
		f        facts
		want     *types.ClusterToken
		withdraw bool
	}{
		"nothing is known":                                 {facts{now: now, hasRow: true}, nil, false},
		"nothing is answered yet":                          {heard(member()), nil, false},
		"the same cluster's stays meanwhile":               {heard(member(), published(one, "old", why)), nil, false},
		"another cluster's goes":                           {heard(member(), published(other, "old", "")), nil, true},
		"a device that was never clustered has none":       {heard(types.ClusterMembership{State: types.MembershipNever}), nil, false},
		"one that has left has none any more":              {heard(types.ClusterMembership{State: types.MembershipLeft}, published(one, "old", "")), nil, true},
		"an answer is published":                           {heard(member(), answered(token, answer{clear: "new"})), &types.ClusterToken{ClusterID: one, Token: "new"}, false},
		"it replaces token and error":                      {heard(member(), published(one, "old", why), answered(token, answer{clear: "new"})), &types.ClusterToken{ClusterID: one, Token: "new"}, false},
		"a failure without a token has an error":           {heard(member(), answered(token, no)), &types.ClusterToken{ClusterID: one, Error: broken(now)}, false},
		"beside the last good one too":                     {heard(member(), published(one, "old", ""), answered(token, no)), &types.ClusterToken{ClusterID: one, Token: "old", Error: broken(now)}, false},
		"with the time at which its text first stood":      {heard(member(), published(one, "old", why), answered(token, no)), &types.ClusterToken{ClusterID: one, Token: "old", Error: broken(early)}, false},
		"with a new time where the text is new":            {heard(member(), published(one, "old", "else"), answered(token, no)), &types.ClusterToken{ClusterID: one, Token: "old", Error: broken(now)}, false},
		"never beside the token or time of another":        {heard(member(), published(other, "old", why), answered(token, no)), &types.ClusterToken{ClusterID: one, Error: broken(now)}, false},
		"the answer for the manifest says nothing of this": {heard(member(bootstrap), answered(manifest, answer{clear: "m"})), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := decide(r.f)
			if d := cmp.Diff(r.want, a.token); d != "" || a.withdraw != r.withdraw {
				t.Errorf("withdraw is %v; want -, got +\n%s", a.withdraw, d)
			}
		})
	}
}

func TestWhatIsDecryptedNext(t *testing.T) {
	failed := func(p part, kind cipher.Kind, ago time.Duration, tries int) func(*facts) {
		return answered(p, answer{err: "no", kind: kind, at: now.Add(-ago), tries: tries})
	}
	good := answer{clear: "x", at: now}
	bare := func(f *facts) { f.wants = questions(f.membership, cipher.Certificates{}) }
	for name, r := range map[string]struct {
		f     facts
		want  string // the id of the block
		again time.Duration
	}{
		"the token first":   {heard(member(bootstrap)), one.String(), period},
		"then the manifest": {heard(member(bootstrap), answered(token, good)), "manifest", period},
		"then nothing":      {heard(member(bootstrap), answered(token, good), answered(manifest, good)), "", period},
		"a token that cannot be had holds nothing up": {heard(member(bootstrap), failed(token, cipher.DecryptFailed, 0, 1)), "manifest", period},
		"one at a time": {heard(member(bootstrap), func(f *facts) { f.busy, f.asked = true, *f.wants[token] }), "", period},
		"no manifest for others than the bootstrap":    {heard(member(), answered(token, good)), "", period},
		"what is not ready is tried again":             {heard(member(), failed(token, cipher.NotReady, minRetry, 1)), one.String(), period},
		"after a while":                                {heard(member(), failed(token, cipher.NotReady, minRetry/2, 1)), "", minRetry / 2},
		"later and later":                              {heard(member(), failed(token, cipher.NotReady, minRetry, 2)), "", minRetry},
		"but once a minute":                            {heard(member(), failed(token, cipher.NotReady, maxRetry, 1000)), one.String(), period},
		"what time does not heal is not":               {heard(member(), failed(token, cipher.DecryptFailed, time.Hour, 1)), "", period},
		"a missing certificate is an answer":           {heard(member(), bare), one.String(), period},
		"but not before it can have been heard of":     {heard(member(), bare, func(f *facts) { f.settled = false }), "", period},
		"with certificates nothing is waited for":      {heard(member(), func(f *facts) { f.settled = false }), one.String(), period},
		"a configuration that names no cluster is not": {heard(member(func(c *types.EdgeNodeClusterConfig) { c.ClusterID.UUID = uuid.Nil })), "", period},
	} {
		t.Run(name, func(t *testing.T) {
			a := decide(r.f)
			got := ""
			if a.ask != nil {
				got = a.ask.block.CipherBlockID
			}
			if got != r.want || a.again > r.again || a.ask == nil && a.again != r.again {
				t.Errorf("got %q and again in %s, want %q and %s", got, a.again, r.want, r.again)
			}
		})
	}
}

func TestOtherCertificatesMakeNoOtherQuestion(t *testing.T) {
	more := cipher.Certificates{Controller: map[string]types.ControllerCert{"01": all.Controller["01"]}, Device: all.Device}
	if d := cmp.Diff(questions(member(bootstrap), all)[token].certs, questions(member(bootstrap), more)[token].certs); d != "" {
		t.Error(d)
	}
}
