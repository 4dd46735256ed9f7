package eveapi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/test/eveapi"
)

// FuzzDocument: whatever comes gives an error or a document that, written, is
// read the same.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(sample(f)))
	f.Add([]byte(`{"cluster":{"masterNodeUuids":null},"volumes":[{"uuid":"x","replica_node_id":["y"]},{"uuid":"x"}]}`))
	f.Add([]byte(`{"cluster":null,"volumes":null,"apps":[{}],"Cluster":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := eveapi.ParseJSON(data)
		if err != nil {
			return
		}
		c, err := d.For(device)
		if err != nil {
			if !cmp.Equal(c, eveapi.Configuration{}) {
				t.Fatalf("half a configuration: %+v", c)
			}
			return
		}
		if c.Cluster.Valid == (c.ClusterFault != nil) && d.Message.GetCluster() != nil {
			t.Fatalf("valid %v with %v", c.Cluster.Valid, c.ClusterFault)
		}
		c.ClusterFault = nil
		written, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := eveapi.ParseJSON(written)
		if err != nil {
			t.Fatalf("%v in %s", err, written)
		}
		c2, err := again.For(device)
		if err != nil {
			t.Fatalf("%v in %s", err, written)
		}
		c2.ClusterFault = nil
		if diff := cmp.Diff(asJSON(t, c), asJSON(t, c2)); diff != "" {
			t.Fatalf("-first +again\n%s", diff)
		}
	})
}
