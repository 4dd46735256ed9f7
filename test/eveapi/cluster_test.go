package eveapi_test

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/eveapi"
	"github.com/zedkube/zedkube/types"
)

// asJSON is v as it is published, for addresses have several forms in memory.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// plantConfig is the cluster of the sample.
func plantConfig() types.EdgeNodeClusterConfig {
	block := types.CipherBlockStatus{
		CipherBlockID: plant.String(), CipherContextID: "site",
		InitialValue: []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, CipherData: []byte("sealed"), ClearTextHash: []byte("digest"),
		IsCipher: true,
		CipherContext: &types.CipherContext{
			ContextID: "site", HashScheme: types.HashAlgorithmSHA256First16, KeyExchangeScheme: types.KeyExchangeECDH,
			EncryptionScheme: types.EncryptionAES256CFB, ControllerCertHash: []byte{16, 17, 18}, DeviceCertHash: []byte{19, 20, 21},
		},
	}
	return types.EdgeNodeClusterConfig{
		Initialized: true, Valid: true, ClusterName: "plant-7", ClusterID: types.UUIDandVersion{UUID: plant},
		ClusterInterface: "shop-lan", ClusterIPPrefix: &net.IPNet{IP: net.IPv4(10, 90, 7, 21), Mask: net.CIDRMask(24, 32)},
		JoinServerIP: net.IPv4(10, 90, 7, 20), CipherToken: block, CipherGzipRegistrationManifestYaml: block,
		ClusterType: types.ClusterTypeReplicatedStorage, TieBreakerNodeID: types.UUIDandVersion{UUID: other},
		EnableNativeK8SOrchestration: true, LBInterfaces: []types.LBInterface{{Interface: "office", IPPrefix: "172.28.40.64/28"}},
		MasterNodeIDs: []uuid.UUID{device, other},
	}
}

// cluster is what becomes of the sample's cluster after replacing now by then.
func cluster(t *testing.T, now, then string) (types.EdgeNodeClusterConfig, error) {
	t.Helper()
	changed := strings.Replace(sample(t), now, then, 1)
	if changed == sample(t) {
		t.Fatalf("the sample has no %s", now)
	}
	c := read(t, changed)
	return c.Cluster, c.ClusterFault
}

func TestClusterSectionThatCannotBeReadIsNotValid(t *testing.T) {
	for name, change := range map[string][3]string{
		"no prefix length":          {`10.90.7.21/24`, `10.90.7.21`, "cluster address"},
		"no address":                {`10.90.7.21/24`, ``, "cluster address"},
		"no join server":            {`"joinServerIp": "10.90.7.20"`, `"joinServerIp": ""`, "join server"},
		"a name as join server":     {`"joinServerIp": "10.90.7.20"`, `"joinServerIp": "node-1"`, "join server"},
		"no UUID":                   {`5D0C7A52-3a0e-4c7e-9f1b-2f6f0c3a9e11`, ``, "cluster UUID"},
		"a token without data":      {`"cipherData": "c2VhbGVk"`, `"cipherData": ""`, "no data"},
		"a token without a context": {`"cipherContextId": "site"`, `"cipherContextId": ""`, "no context"},
		"a name as tie-breaker":     {`"tieBreakerNodeId": "0d6c64e5`, `"tieBreakerNodeId": "node-2`, "tie-breaker"},
		"a type that is no type":    {`"CLUSTER_TYPE_REPLICATED_STORAGE"`, `258`, "cluster type"},
	} {
		got, err := cluster(t, change[0], change[1])
		if diff := cmp.Diff(types.EdgeNodeClusterConfig{Initialized: true}, got); diff != "" {
			t.Errorf("%s: more than initialized:\n%s", name, diff)
		}
		if err == nil || !strings.Contains(err.Error(), change[2]) {
			t.Errorf("%s: the error does not speak of the %s: %v", name, change[2], err)
		}
	}
}

func TestNoClusterSectionIsNotValidAndNoError(t *testing.T) {
	d := eveapi.New(device)
	d.SetCluster(plantConfig())
	d.SetCluster(types.EdgeNodeClusterConfig{Initialized: true})
	got, err := d.For(device)
	if err != nil || got.ClusterFault != nil {
		t.Fatal(err, got.ClusterFault)
	}
	if diff := cmp.Diff(types.EdgeNodeClusterConfig{Initialized: true}, got.Cluster); diff != "" {
		t.Errorf("more than initialized:\n%s", diff)
	}
}

func TestClusterSectionIsReadByTheRules(t *testing.T) {
	const both = `"c4a1d7e2-90b3-4d58-8a6e-1be0f7723c05", "0d6c`
	for name, row := range map[string]struct {
		now, then string
		want      func(c *types.EdgeNodeClusterConfig)
	}{
		"the join server is the bootstrap node": {`"10.90.7.20"`, `"10.90.7.21"`, func(c *types.EdgeNodeClusterConfig) {
			c.JoinServerIP, c.BootstrapNode = net.IPv4(10, 90, 7, 21), true
		}},
		"the same address in another form": {`"10.90.7.20"`, `"::ffff:10.90.7.21"`, func(c *types.EdgeNodeClusterConfig) {
			c.JoinServerIP, c.BootstrapNode = net.IPv4(10, 90, 7, 21), true
		}},
		"one malformed master empties the list": {both, `"node-1", "0d6c`, func(c *types.EdgeNodeClusterConfig) { c.MasterNodeIDs = nil }},
		"no tie-breaker": {`"tieBreakerNodeId": "0d6c64e5-7d45-4f18-9f35-8ef1f5b86c33"`, `"tieBreakerNodeId": ""`, func(c *types.EdgeNodeClusterConfig) {
			c.TieBreakerNodeID = types.UUIDandVersion{}
		}},
		"no native orchestration, no load balancer": {`"enableNativeK8sOrchestration": true`, `"enableNativeK8sOrchestration": false`, func(c *types.EdgeNodeClusterConfig) {
			c.EnableNativeK8SOrchestration, c.LBInterfaces = false, nil
		}},
		"the k3s base is native without being told": {`"CLUSTER_TYPE_REPLICATED_STORAGE"`, `"CLUSTER_TYPE_K3S_BASE"`, func(c *types.EdgeNodeClusterConfig) {
			c.ClusterType = types.ClusterTypeK3sBase
		}},
		"no other type is native": {`"CLUSTER_TYPE_REPLICATED_STORAGE"`, `"CLUSTER_TYPE_HA"`, func(c *types.EdgeNodeClusterConfig) {
			c.ClusterType, c.LBInterfaces = types.ClusterTypeHA, nil
		}},
		"a context that comes later": {`"cipherContextId": "site"`, `"cipherContextId": "tomorrow"`, func(c *types.EdgeNodeClusterConfig) {
			for _, b := range []*types.CipherBlockStatus{&c.CipherToken, &c.CipherGzipRegistrationManifestYaml} {
				b.CipherContextID, b.CipherContext = "tomorrow", nil
			}
		}},
		"no token": {`"encryptedClusterToken"`, `"notAnyLonger"`, func(c *types.EdgeNodeClusterConfig) {
			c.CipherToken = types.CipherBlockStatus{CipherBlockID: plant.String()}
			c.CipherGzipRegistrationManifestYaml = c.CipherToken
		}},
		"an IPv6 cluster": {`"10.90.7.21/24",
    "joinServerIp": "10.90.7.20"`, `"fd00:7::21/64", "joinServerIp": "fd00:7::20"`, func(c *types.EdgeNodeClusterConfig) {
			c.ClusterIPPrefix = &net.IPNet{IP: net.ParseIP("fd00:7::21"), Mask: net.CIDRMask(64, 128)}
			c.JoinServerIP = net.ParseIP("fd00:7::20")
		}},
	} {
		want := plantConfig()
		row.want(&want)
		got, err := cluster(t, row.now, row.then)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}
