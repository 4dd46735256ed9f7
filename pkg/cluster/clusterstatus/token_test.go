package clusterstatus

import (
	"testing"

	"github.com/zedkube/zedkube/types"
)

// had is a row of the token's table.
func had(f facts, id types.UUIDandVersion, text string, problem types.ErrorDescription) facts {
	f.token = types.ClusterToken{ClusterID: id.UUID, Token: text, Error: problem}
	return f
}

func TestTheTokenIsThatOfTheCluster(t *testing.T) {
	broken := types.ErrorDescription{Error: "no certificate", ErrorTime: now, ErrorSeverity: types.ErrorSeverityError}
	older := broken
	older.ErrorTime = early
	none := types.ErrorDescription{}
	fresh := func(s *types.EdgeNodeClusterStatus) { s.EncryptedClusterToken = "fresh" }
	failed := func(e types.ErrorDescription) func(*types.EdgeNodeClusterStatus) {
		return func(s *types.EdgeNodeClusterStatus) { s.Error = e }
	}
	elsewhere := func(s *types.EdgeNodeClusterStatus) { s.ClusterID = other }
	moved := config(func(c *types.EdgeNodeClusterConfig) { c.ClusterID = other })
	check(t, map[string]row{
		"the status does not wait for it": {
			f:    known(config(), eth0()),
			want: want(status(ready)),
		},
		"it is published when it is there": {
			f:    had(before(known(config(), eth0()), status(ready)), one, "fresh", none),
			want: want(status(ready, fresh)),
		},
		"so is why it cannot be had": {
			f:    had(before(known(config(), eth0()), status(ready)), one, "", broken),
			want: want(status(ready, failed(broken))),
		},
		"the last good one stands beside it": {
			f:    had(before(known(config(), eth0()), status(ready, token)), one, "secret", broken),
			want: want(status(ready, token, failed(broken))),
		},
		"one that a former run published too": {
			f:    had(before(known(config(), eth0()), status(ready, token)), one, "", broken),
			want: want(status(ready, token, failed(broken))),
		},
		"an error that a former run published keeps its time": {
			f:    had(before(known(config(), eth0()), status(ready, failed(older))), one, "", broken),
			want: want(status(ready, failed(older))),
		},
		"and stands until the table says more": {
			f:    before(known(config(), eth0()), status(ready, token, failed(older))),
			want: want(status(ready, token, failed(older))),
		},
		"a new token replaces both": {
			f:    had(before(known(config(), eth0()), status(ready, token, failed(older))), one, "fresh", none),
			want: want(status(ready, fresh)),
		},
		"that of another cluster is not shown": {
			f:    had(before(known(moved, eth0()), status(ready, token, failed(older))), one, "secret", broken),
			want: want(status(ready, elsewhere)),
		},
		"that of the next one is not either": {
			f:    had(before(known(config(), eth0()), status(ready, token)), other, "fresh", broken),
			want: want(status(ready, token)),
		},
		"the table's speaks before nim does": {
			f:    had(facts{hasConfig: true, config: config()}, one, "fresh", none),
			want: want(status(fresh)),
		},
	})
}
