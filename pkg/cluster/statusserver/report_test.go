package statusserver

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

var update = flag.Bool("update", false, "write testdata anew")

const (
	appUUID     = "b3e2f1a0-9111-4222-8333-444455556666"
	volumeUUID  = "d8c1a2b3-0000-4111-8222-333344445555"
	contentUUID = "e9d2b3c4-0000-4111-8222-333344445555"
	networkUUID = "f0e3c4d5-0000-4111-8222-333344445555"
	token       = "K10deadbeef0123456789::server:very-secret"
)

// golden compares got with testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// files are the topics of a device with one application, below /run.
var files = map[string]string{
	"zedagent/EdgeNodeInfo/global.json":                        `{"DeviceName":"N1","DeviceID":"` + deviceID + `","ProjectName":"press","EnterpriseName":"works <&>"}`,
	"zedkube/EdgeNodeClusterStatus/global.json":                `{"ClusterInterface":"eth0","ClusterIPPrefix":{"IP":"10.244.244.2","Mask":"////8A=="},"ClusterIPIsReady":true,"JoinServerIP":"10.244.244.2","BootstrapNode":true,"EncryptedClusterToken":"` + token + `"}`,
	"zedkube/KubeLeaderElectInfo/global.json":                  `{"InLeaderElection":true,"IsStatsLeader":false,"LeaderIdentity":"n2","LatestChange":"2026-05-03T08:05:09.5+02:00"}`,
	"zedagent/AppInstanceConfig/" + appUUID + ".json":          `{"UUIDandVersion":{"UUID":"` + appUUID + `","Version":"1"},"DisplayName":"Panel","Activate":true,"IsDesignatedNodeID":true,"CipherBlockStatus":{"pubsub-large-CipherData":"c2VjcmV0"},"VolumeRefConfigList":[{"VolumeID":"` + volumeUUID + `"}],"AppNetAdapterList":[{"Network":"` + networkUUID + `"}]}`,
	"zedagent/VolumeConfig/" + volumeUUID + "#0.json":          `{"VolumeID":"` + volumeUUID + `","ContentID":"` + contentUUID + `","DisplayName":"disk","IsReplicated":true}`,
	"zedrouter/NetworkInstanceStatus/" + networkUUID + ".json": `{"DisplayName":"line","Activated":true,"IPAssignments":{"02:16:3e:00:00:01": {"IPv4Addrs":["10.1.0.2"]}}}`,
	"zedkube/ENClusterAppStatus/" + appUUID + ".json":          `{"AppUUID":"` + appUUID + `","IsDNidNode":true,"ScheduledOnThisNode":true,"StatusRunning":true,"AppKubeStatus":4}`,
	"zedmanager/AppNetworkConfig/" + appUUID + ".json":         `{"DisplayName":"Panel","Activate":true,"AppNetAdapterList":[{"Name":"eth0","AppMacAddr":"AhY+AAAB","AppIPAddr":"10.1.0.2"}]}`,
	"zedrouter/AppNetworkStatus/" + appUUID + ".json":          `{"DisplayName":"Panel","Activated":true,"AppNum":7,"AppNetAdapterList":[{"AssignedAddresses":{"IPv4Addrs":["10.1.0.2"]}}]}`,
	"volumemgr/VolumeStatus/" + volumeUUID + "#0.json":         `{"ReferenceName":"pvc-1","State":111,"IsReplicated":true,"TotalSize":100,"CurrentSize":40}`,
	"volumemgr/ContentTreeStatus/" + contentUUID + ".json":     `{"DisplayName":"image","State":108,"RelativeURL":"images/panel.qcow2?X-Amz-Signature=abc","TotalSize":100,"CurrentSize":100}`,
	"zedmanager/AppInstanceStatus/" + appUUID + ".json":        `{"DomainName":"` + appUUID + `.1.7","Activated":true,"State":115,"IsDesignatedNodeID":true}`,
	"zedmanager/DomainConfig/" + appUUID + ".json":             `{"DisplayName":"Panel","Activate":true,"IsDNidNode":true,"AppNum":7,"KubeImageName":"works/panel:1"}`,
	"domainmgr/DomainStatus/" + appUUID + ".json":              `{"DisplayName":"Panel","Activated":true,"State":115,"IsDNidNode":true,"AppNum":7,"NodeName":"n1"}`,
	"domainmgr/DomainMetric/" + appUUID + ".json":              `{"Activated":true,"AllocatedMB":2048,"UsedMemoryPercent":12.5,"LastHeard":"2026-05-03T06:05:09Z"}`,
	"volumemgr/AppDiskMetric/" + volumeUUID + ".json":          `{"DiskPath":"/dev/longhorn/pvc-1","DiskType":"raw","ProvisionedBytes":100,"UsedBytes":40,"Dirty":false}`,
}

// disk is a directory with files and a log; change may leave some out.
func disk(t *testing.T, without ...string) *Component {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		put(t, filepath.Join(dir, "run", name), content)
	}
	for _, name := range without {
		if err := os.Remove(filepath.Join(dir, "run", name)); err != nil {
			t.Fatal(err)
		}
	}
	var log strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&log, "line %d\n", i)
	}
	log.WriteString("k3s agent --token " + token + " --server https://10.244.244.2:6443\n")
	log.WriteString(`config {"password":"hunter2", "x": 1}` + "\n")
	put(t, filepath.Join(dir, "k3s-install.log"), log.String())
	status := &pubsub.Table[types.EdgeNodeClusterStatus]{}
	_ = status.Publish(types.Global, withToken(token))
	return &Component{
		Status:    status,
		TopicDirs: []string{filepath.Join(dir, "run"), filepath.Join(dir, "status")}, InstallLog: filepath.Join(dir, "k3s-install.log"),
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// told is the report as it goes out, with one time for all.
func told(t *testing.T, c *Component, id string) string {
	t.Helper()
	r := c.collect(t.Context(), id)
	if _, err := time.Parse(time.RFC3339, r.CollectTime); err != nil {
		t.Error(err)
	}
	r.CollectTime = "2026-05-03T06:07:00Z"
	var out bytes.Buffer
	if err := writeJSON(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestReportHasTheFormOfTheWire(t *testing.T) {
	golden(t, "app.json", told(t, disk(t), appUUID))
	golden(t, "node.json", told(t, disk(t), ""))
	golden(t, "nothing.json", told(t, &Component{Status: &pubsub.Table[types.EdgeNodeClusterStatus]{}, InstallLog: "/none", TopicDirs: []string{t.TempDir()}}, appUUID))
}

func TestNoSecretIsInAReport(t *testing.T) {
	for _, id := range []string{"", appUUID} {
		got := told(t, disk(t), id)
		for _, secret := range []string{token, "very-secret", "hunter2", "c2VjcmV0", "X-Amz-Signature"} {
			if strings.Contains(got, secret) {
				t.Errorf("report about %q holds %q", id, secret)
			}
		}
	}
}

// keys are the keys of a report in their order; those that are missing have a "!".
func keys(r report) string {
	var out []string
	for _, e := range r.AppInfo {
		key := e.Key
		if !e.Value.Exist {
			key += "!"
		}
		out = append(out, key)
	}
	return strings.Join(out, " ")
}

func TestReportEndsWhereSomethingNeededIsMissing(t *testing.T) {
	const node = "zedagent-EdgeNodeInfo zedkube-EdgeNodeClusterStatus zedkube-KubeLeaderElectInfo k3s-install.log"
	rows := map[string]struct{ without, want string }{
		"no node":    {"zedagent/EdgeNodeInfo/global.json", "zedagent-EdgeNodeInfo!"},
		"no cluster": {"zedkube/EdgeNodeClusterStatus/global.json", ""},
		"no app":     {"zedagent/AppInstanceConfig/" + appUUID + ".json", node + " zedagent-AppInstanceConfig!"},
		"no volume":  {"zedagent/VolumeConfig/" + volumeUUID + "#0.json", node + " zedagent-AppInstanceConfig-b3e2f zedagent-VolumeConfig!"},
		"no network": {"zedrouter/NetworkInstanceStatus/" + networkUUID + ".json", node + " zedagent-AppInstanceConfig-b3e2f zedagent-VolumeConfig-d8c1a zedrouter-NetworkInstanceStatus!"},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			got := disk(t, r.without).collect(t.Context(), appUUID)
			if r.want != "" && keys(got) != r.want {
				t.Errorf("got %s", keys(got))
			}
			if (got.Hostname == "unknown") != (name == "no node") {
				t.Errorf("hostname %q", got.Hostname)
			}
			if r.want == "" && len(got.AppInfo) != 18 {
				t.Errorf("got %d items: %s", len(got.AppInfo), keys(got))
			}
		})
	}
	got := disk(t, "zedmanager/DomainConfig/"+appUUID+".json").collect(t.Context(), appUUID)
	if !strings.HasSuffix(keys(got), "zedmanager-AppInstanceStatus-b3e2f zedmanager-DomainConfig!") {
		t.Errorf("got %s", keys(got))
	}
}

func TestOfSeveralVolumesTheFirstThatIsMissingEndsTheReport(t *testing.T) {
	c := disk(t)
	put(t, filepath.Join(c.TopicDirs[0], "zedagent/AppInstanceConfig", appUUID+".json"),
		`{"VolumeRefConfigList":[{"VolumeID":"`+contentUUID+`"},{"VolumeID":"`+volumeUUID+`"}]}`)
	if got := keys(c.collect(t.Context(), appUUID)); !strings.HasSuffix(got, "zedagent-AppInstanceConfig-b3e2f zedagent-VolumeConfig!") {
		t.Errorf("got %s", got)
	}
}

func TestAnApplicationWithTooManyPartsIsCutOff(t *testing.T) {
	c := disk(t)
	var refs []string
	for i := range 5 * maxEach {
		id := uuid.MustParse(fmt.Sprintf("%08x-0000-4111-8222-333344445555", i))
		refs = append(refs, fmt.Sprintf(`{"VolumeID":%q}`, id))
		put(t, filepath.Join(c.TopicDirs[0], "zedagent/VolumeConfig", id.String()+".json"), `{}`)
	}
	put(t, filepath.Join(c.TopicDirs[0], "zedagent/AppInstanceConfig", appUUID+".json"), `{"VolumeRefConfigList":[`+strings.Join(refs, ",")+`]}`)
	if got := strings.Count(keys(c.collect(t.Context(), appUUID)), "zedagent-VolumeConfig"); got != maxEach {
		t.Errorf("got %d volumes", got)
	}
}

func TestReportThatIsNotWantedAnyMoreGivesItsPlaceBack(t *testing.T) {
	c := disk(t)
	source := netip.MustParseAddr("10.0.0.1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.report(ctx, source, appUUID); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	c.making.Wait()
	for range maxReportsEach {
		if !c.limits.reports.enter(source, maxReports, maxReportsEach) {
			t.Fatal("its place is not given back")
		}
	}
	if _, err := c.report(t.Context(), source, appUUID); !errors.Is(err, errBusy) {
		t.Errorf("one more than allowed: %v", err)
	}
}
