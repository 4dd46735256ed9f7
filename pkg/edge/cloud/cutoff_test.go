package cloud

import (
	"slices"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/pkg/edge/settings"
)

func TestCutOff(t *testing.T) {
	const none = ""
	for name, row := range map[string]struct {
		from, to string
		joined   int
		want     string
	}{
		"nothing changes":                        {"", "", 5, none},
		"nobody has joined":                      {"", "websocketPort=31100 edgeBlock=100.127.253.0/24 nodeLimit=1", 0, none},
		"a port moves":                           {"", "websocketPort=31100", 5, "port 31000/tcp (cloudhub)"},
		"back to the default":                    {"httpsPort=31102", "httpsPort=0", 5, "port 31102/tcp (cloudhub-https)"},
		"its default as a number":                {"", "cloudTunnelPort=31004", 5, none},
		"the tunnel's moves":                     {"", "cloudTunnelPort=31104", 5, "port 31004/tcp (tunnelport)"},
		"it moves while there are no logs":       {"cloudStream=false", "cloudStream=false cloudTunnelPort=31104", 5, "port 31004/tcp (tunnelport)"},
		"no logs at all":                         {"", "cloudStream=false", 5, none},
		"logs again":                             {"cloudStream=false", "", 5, none},
		"the stream's, which no edge node dials": {"exposeCloudStream=true", "cloudStreamPort=31103", 5, none},
		"a port closes":                          {"", "https=false", 5, "port 31002/tcp (cloudhub-https)"},
		"and opens":                              {"https=false quic=false", "quic=true", 5, none},
		"QUIC closes":                            {"quic=true", "", 5, "port 31001/udp (cloudhub-quic)"},
		"its port moves while it is off":         {"", "quicPort=31101", 5, none},
		"another type of Service": {"", "serviceType=LoadBalancer", 5, "port 31000/tcp (cloudhub), port 31002/tcp (cloudhub-https), port 31004/tcp (tunnelport), " +
			"address 10.0.0.1, address 10.0.0.2"},
		"the same ports and addresses by it": {"", "serviceType=LoadBalancer websocketPort=31000 httpsPort=31002 cloudTunnelPort=31004 advertiseAddress=10.0.0.2,10.0.0.1", 5, none},
		"an address less":                    {"", "advertiseAddress=10.0.0.2", 5, "address 10.0.0.1"},
		"an address more":                    {"", "advertiseAddress=10.0.0.1,10.0.0.2,192.0.2.1", 5, none},
		"another block":                      {"", "edgeBlock=100.127.253.0/24", 5, "edgeBlock 100.127.254.0/24"},
		"fewer than there are":               {"", "nodeLimit=4", 5, "nodeLimit 100"},
		"room for all":                       {"", "nodeLimit=5", 5, none},
		"too few before, and a few more now": {"nodeLimit=2", "nodeLimit=3", 5, none},
		"what no edge node knows":            {"", "ha=true image=x controllerImage=y logPort=10351 metricsPort=10251 destinationAddress=192.0.2.1 destinationPort=31003", 5, none},
	} {
		parse := func(words string) settings.Settings {
			s := settings.Default()
			for word := range strings.FieldsSeq(words) {
				var err error
				k, v, _ := strings.Cut(word, "=")
				if s, err = s.Set(k, v); err != nil {
					t.Fatal(err)
				}
			}
			return s
		}
		if got := strings.Join(CutOff(whole(t).seen, parse(row.from), parse(row.to), row.joined), ", "); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

func TestJoinedAreThoseThatThereAreAndThoseThatWereAsked(t *testing.T) {
	w := whole(t)
	node := object.Ref{Kind: object.Node, Name: "edge-1"}
	w.put(node, m{"metadata": m{"name": node.Name, "labels": m{edgeRole: ""}}})
	w.put(RefNodes, m{"data": m{"edge-2": `{"address":"100.127.254.2"}`, "_left": `{"edge-3":{}}`, "_refused": `{"edge-4":{}}`}})
	if got := Judge(w.seen, now).Joined(); !slices.Equal(got, []string{"edge-1", "edge-2"}) {
		t.Errorf("they are %q", got)
	}
}
