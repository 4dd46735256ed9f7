package k3supdate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

type operations struct{ made []string }

func (o *operations) Begin(is types.Operation) func(types.OperationOutcome, error) {
	return func(outcome types.OperationOutcome, _ error) {
		o.made = append(o.made, is.Op+" "+is.Target+" "+string(outcome))
	}
}

func TestTheAuditHasEachCertificateThatWasMovedAside(t *testing.T) {
	var record operations
	c := &Component{LeafFiles: k3sFiles(t, ofServer), Operations: &record}
	var f facts
	f.request.RequestedAt = time.Unix(100, 0)
	f.journal.Restarts.Answers = f.request.RequestedAt
	// One that cannot be moved: a directory is in its place.
	if err := os.MkdirAll(filepath.Join(keptOf(c.LeafFiles.Dirs[1], f.request.RequestedAt), "server/tls/etcd/client.crt"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := c.files(t.Context(), renew, f); err == nil {
		t.Fatal("it was moved")
	}
	want := []string{"set certificates aside directory/" + kept + " failed", "set certificate aside file/server/tls/client-admin.crt ok", "set certificate aside file/server/tls/serving-kube-apiserver.crt ok"}
	slices.Sort(record.made[1:])
	if !slices.Equal(record.made, want) {
		t.Errorf("the audit has %q", record.made)
	}
	record.made = nil
	if err := c.files(t.Context(), putBack, f); err == nil && strings.Contains(strings.Join(record.made, " "), "set certificate aside") {
		t.Errorf("the audit has %q", record.made)
	}
}
