package audit

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// BenchmarkOperation records an operation like no other: two lines.
func BenchmarkOperation(b *testing.B) {
	log, _ := test.NewNullLogger()
	var info pubsub.Table[types.EdgeNodeInfo]
	_ = info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "N1"})
	r := &Record{Log: log, Info: &info, Dir: filepath.Join(b.TempDir(), "audit"), Segment: DefaultSegment}
	b.Cleanup(r.store.close)
	n := 0
	for b.Loop() {
		n++
		target := fmt.Sprintf("pod/eve-kube-app/cam-%d", n)
		r.Begin(types.Operation{Component: "drain", Op: "evict", Target: target, By: "OPERATOR", Why: "a disk is changed"})(types.OperationOK, nil)
	}
}
