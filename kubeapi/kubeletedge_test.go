package kubeapi

import (
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// What answers for an edge node has a certificate of its address, not of its name.
func TestTheKubeletOfAnEdgeNodeProvesToHaveItsAddressAndIsShownNoToken(t *testing.T) {
	ca, other := kubetest.NewAuthority(t), kubetest.NewAuthority(t)
	node := types.Node{Name: "n1", InternalIP: "100.127.254.7", KubeletPort: 10352}
	for name, row := range map[string]struct {
		by    *kubetest.Authority
		names []string
		node  types.Node
		ok    bool
	}{
		"its address":         {ca, []string{"100.127.254.1", "100.127.254.7"}, node, true},
		"its name":            {ca, []string{"n1"}, node, false},
		"of somebody else":    {other, []string{"100.127.254.7"}, node, false},
		"another node's":      {ca, []string{"100.127.254.7"}, types.Node{Name: "n2", InternalIP: "100.127.254.7", KubeletPort: 10352}, false},
		"without a port":      {ca, []string{"100.127.254.7"}, types.Node{Name: "n1", InternalIP: "100.127.254.7"}, false},
		"without its address": {ca, []string{"100.127.254.7"}, types.Node{Name: "n1", KubeletPort: 10352}, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := playKubelet(t, ca, row.by, row.names, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "" || r.URL.String() != "/stats/summary" {
					t.Errorf("asks %s with %v", r.URL, r.Header)
				}
				_, _ = io.WriteString(w, wholeSummary)
			})
			k.cfg.TLSClientConfig.ServerName, k.cfg.BearerToken = "kube", "secret"
			c, _ := connected(t, k.cfg, &kubetest.InMemory{Handler: &fakeAPI{}})
			stats, err := c.EdgeStats(t.Context(), row.node)
			if (err == nil) != row.ok || row.ok && *stats.Node.CPU != 5 {
				t.Errorf("%+v, %v", stats, err)
			}
			if row.ok && !slices.Equal(k.dialed, []string{"100.127.254.7:10352"}) {
				t.Errorf("dialled %v", k.dialed)
			}
		})
	}
}
