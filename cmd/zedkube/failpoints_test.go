package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/watchdog"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cluster/clustertoken"
	"github.com/zedkube/zedkube/pkg/cluster/k3sconfig"
	"github.com/zedkube/zedkube/pkg/cluster/statusserver"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/pkg/workload/applogs"
	"github.com/zedkube/zedkube/pkg/workload/console"
	"github.com/zedkube/zedkube/test/cmdtest"
)

// effectsFile is what the test build lists, a line for each effect.
const effectsFile = "../../pkg/base/failpoint/effects.txt"

const (
	machines = "virtualmachines.kubevirt.io"
	vmis     = "virtualmachineinstances.kubevirt.io"
	vmiSets  = "virtualmachineinstancereplicasets.kubevirt.io"
	nads     = "network-attachment-definitions.k8s.cni.cncf.io"
	jobs     = "recurringjobs.longhorn.io"
)

// verbs are the writes of each verb of kubeapi that a component has in an interface:
// the operation on record, if it is on record, and the requests. A verb without one only reads.
var verbs = map[string][]string{
	"Cordon":             {"cordon: patch nodes"},
	"DeleteAttachment":   {"delete attachment: delete volumeattachments"},
	"DeleteNetworkNAD":   {"delete nad: delete " + nads},
	"DeleteNode":         {"delete node: delete nodes"},
	"DeleteSRIOVNetwork": {"delete nad: delete " + nads},
	"DeleteSnapshotJob":  {"delete snapshot job: delete " + jobs},
	"DeleteVMI":          {"delete vmi: delete " + vmis},
	"Designate":          {"set designations: patch nodes"},
	"DisableWorkloads":   {"disable workloads: create configmaps"},
	"EdgeStats":          nil,
	"EditAllocations":    {"write addresses: create configmaps", "write addresses: delete configmaps", "write addresses: patch configmaps"},
	"Elect":              {"create leases", "update leases"},
	"EnableWorkloads":    {"enable workloads: delete configmaps"},
	"EnsureNAD":          {"ensure nad: create " + nads, "ensure nad: patch " + nads},
	"EnsureNetworkNAD":   {"ensure nad: create " + nads, "ensure nad: patch " + nads},
	"EnsureSnapshotJob":  {"ensure snapshot job: create " + jobs, "ensure snapshot job: patch " + jobs},
	"Event":              {"create events", "patch events"},
	"Evict":              {"evict: create pods/eviction"},
	"Fence":              {"fence: patch nodes"},
	"ForceDeletePod":     {"force-delete pod: delete pods"},
	"ForgetVMI":          {"forget vmi: delete " + vmis, "forget vmi: patch " + vmis},
	"FreeDrainLock":      {"free drain lock: delete leases"},
	"IssueKubeconfig": {
		"issue kubeconfig: create clusterrolebindings", "issue kubeconfig: create serviceaccounts", "issue kubeconfig: create serviceaccounts/token",
		"issue kubeconfig: delete clusterrolebindings", "issue kubeconfig: delete serviceaccounts",
	},
	"MarkSRIOVPlugin":    {"annotate pod: patch pods"},
	"NoteRepair":         {"note repair: patch replicasets", "note repair: patch " + vmiSets},
	"PublishNames":       {"write names: create configmaps", "write names: patch configmaps", "write names: patch deployments"},
	"ReleaseNAD":         {"release nad: delete " + nads, "release nad: patch " + nads},
	"Repair":             {"create leases", "delete leases", "patch leases"},
	"RestartSRIOVPlugin": {"delete pod: delete pods"},
	"RevokeKubeconfig":   {"revoke kubeconfig: delete clusterrolebindings", "revoke kubeconfig: delete serviceaccounts"},
	"RunMachine":         {"disable machine: patch " + machines, "enable machine: patch " + machines},
	"ScaleSet": {
		"disable set: patch replicasets", "disable set: patch " + vmiSets, "enable set: patch replicasets", "enable set: patch " + vmiSets,
	},
	"SetAffinity":        {"set affinity: patch " + vmiSets}, // that of pods is domainmgr's
	"SetDrainConditions": {"set drain conditions: patch nodes/status"},
	"SetDrainLock":       {"take drain lock: create leases", "take drain lock: patch leases"},
	"SetLonghornSetting": {"set longhorn setting: patch settings.longhorn.io"},
	"SetReserved":        {"reserve storage: patch nodes.longhorn.io"},
	"SetSRIOVConfig":     {"set configmap: create configmaps", "set configmap: patch configmaps"},
	"SetWanted":          {"scale: patch replicasets", "scale: patch " + vmiSets},
	"Stamp":              {"stamp: patch nodes"},
	"StampK3s":           {"stamp k3s: patch nodes"},
	"Uncordon":           {"uncordon: patch nodes"},
	"UncordonLegacy":     {"uncordon: patch nodes"},
	"UncordonWorkloads":  {"uncordon: patch nodes"},
	"Unfence":            {"unfence: patch nodes"},
	"Unkeep":             {"unkeep cordon: patch nodes"},
	"Witness":            {"witness: patch nodes"},

	"AppPodsNow": nil, "ContainerLogs": nil, "DeprecatedAPIs": nil, "DisabledWorkloads": nil, "DrainLock": nil, "Events": nil, "FreshNodes": nil, "KubeletContainers": nil,
	"KubeletStats": nil, "Kubeconfigs": nil, "LogFile": nil, "LogFiles": nil, "Logs": nil, "NADs": nil, "NodeAttachments": nil,
	"NodeLease": nil, "NodeLeases": nil, "NodeStats": nil, "PodsToEvict": nil, "Ready": nil, "RunningPods": nil, "SRIOVConfig": nil,
	"SRIOVNetworks": nil, "SRIOVPlugins": nil, "Situations": nil, "Storage": nil, "VolumeUsers": nil,
}

// onDevice are the effects on files, on k3s and on links. * stands for what differs. Who
// writes a file is known by its name.
var onDevice = map[string][]string{
	"applogs":      {"write /persist/kube-status/zedkube-applogs.jsonl", "write to /run/zedkube.applogs"},
	"audit":        {"append to /persist/zedkube/audit/operations-*.jsonl", "remove /persist/zedkube/audit/operations-*.jsonl"},
	"clustertoken": {"remove /persist/vault/manifests/registration.yaml", "write /persist/vault/manifests/registration.yaml"},
	"console": {
		"remove /run/edgeview/VncParams/vmiVNC.run", "remove /run/zedkube/vmiVNC.run",
		"write /run/edgeview/VncParams/vmiVNC.run", "write /run/zedkube/vmiVNC.run",
	},
	"drain": {"remove /persist/kube-status/force-NodeDrainStatus-global.json", "remove /tmp/force-NodeDrainStatus-global.json"},
	"k3sconfig": {
		"remove /persist/vault/k3s-user-override.yaml", "remove /persist/vault/k3s-user-override.yaml.former",
		"write /persist/vault/k3s-user-override.yaml", "write /persist/vault/k3s-user-override.yaml.former",
	},
	"k3supdate": {
		"ask supervisor", "end k3s", "save snapshot of etcd",
		"move server/tls/*.crt", "move server/tls/*/*.crt", "restore server/tls/*.crt", "restore server/tls/*/*.crt",
		"remove server/tls-before-reset", "remove server/tls-before-reset/*",
		"remove server/db/zedkube-copy-*", "write server/db/zedkube-copy-*",
		"restore k3s/bin/k3s", "write k3s/bin/.k3s-v*", "write k3s/bin/k3s", "write k3s/bin/k3s.old",
	},
	"localserver": {
		"remove /run/zedkube/page-token.json", "remove /run/zedkube/zedkube.sock", "write /run/zedkube/page-token.json", "write /run/zedkube/zedkube.sock",
	},
	"mounts":       {"ask supervisor", "end k3s"},
	"passthrough":  {"set up link"},
	"podnetworks":  {"remove /run/zedkube/kubeapp-net/*", "write /run/zedkube/kubeapp-net/*"},
	"sriov":        {"write to /sys/bus/pci/devices/*/driver_override", "write to /sys/bus/pci/drivers_probe"},
	"statusserver": {"write /persist/zedkube/all-prove", "write /persist/zedkube/peers-with-tls"},
	"watchdog":     {"remove /run/zedkube.pid", "touch /run/zedkube.touch", "write /run/zedkube.pid"},
}

// effects are all of them, from the wiring and the tables above.
func effects(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile("wire.go")
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, m := range regexp.MustCompile(`NewPublication\[types\.(\w+)\]\(.*Persistent\(\)`).FindAllStringSubmatch(string(content), -1) {
		kept[m[1]] = true
	}
	all := map[string]bool{}
	add := func(component string, effects ...string) {
		for _, e := range effects {
			all[component+"/"+e] = true
		}
	}
	for name, c := range wired(t) {
		if name == "kubeapi" {
			continue // its tables are in memory
		}
		_, writes := flow(c)
		for _, w := range writes {
			topic, is := w.value.(fmt.Stringer)
			if !is {
				continue
			}
			add(name, "publish "+topic.String())
			persistent := kept[path.Base(topic.String())]
			if persistent {
				add(name, "back up "+topic.String())
			}
			if withdraws(t, c, w.field) {
				add(name, "withdraw "+topic.String())
				if persistent {
					add(name, "drop backup of "+topic.String())
				}
			}
		}
		for _, method := range verbsOf(c) {
			requests, known := verbs[method]
			if !known {
				t.Errorf("%s has a verb %s: what does it write?", name, method)
			}
			add(name, requests...)
		}
		add(name, onDevice[name]...)
	}
	for _, topic := range device.OperatorTopics() {
		add("localserver", "publish "+device.CommandAgent+"/"+topic.String(), "withdraw "+device.CommandAgent+"/"+topic.String())
	}
	return slices.Sorted(maps.Keys(all))
}

// verbsOf are the methods of the interfaces through which a component reaches kubeapi.
func verbsOf(c component) (names []string) {
	v := reflect.Indirect(reflect.ValueOf(c))
	for _, field := range reflect.VisibleFields(v.Type()) {
		if field.Type.Kind() != reflect.Interface || !field.IsExported() || len(field.Index) > 1 {
			continue
		}
		if _, is := v.FieldByIndex(field.Index).Interface().(*kubeapi.Client); is {
			for i := range field.Type.NumMethod() {
				names = append(names, field.Type.Method(i).Name)
			}
		}
	}
	return names
}

// withdraws reports whether the component's source withdraws anything of that field.
func withdraws(t *testing.T, c component, field string) bool {
	t.Helper()
	dir := filepath.Join("../..", strings.TrimPrefix(reflect.TypeOf(c).Elem().PkgPath(), module))
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source in %s: %v", dir, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), "c."+field+".Unpublish(") {
			return true
		}
	}
	return false
}

func TestEveryEffectOfTheProgramIsAKillPoint(t *testing.T) {
	want := strings.Join(effects(t), "\n") + "\n"
	if *cmdtest.Update {
		if err := os.WriteFile(effectsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(effectsFile)
	if err != nil || string(got) != want {
		t.Errorf("%s is stale (%v): go test ./cmd/zedkube -run KillPoint -update", effectsFile, err)
	}
}

func TestEveryKeptFileIsAKillPoint(t *testing.T) {
	var listed []string
	for _, list := range onDevice {
		listed = append(listed, list...)
	}
	for name, file := range filesOf(wired(t)) {
		if !slices.ContainsFunc(listed, func(effect string) bool { return strings.HasSuffix(effect, " "+file) }) {
			t.Errorf("%s keeps %s, whose writing is no kill point", name, file)
		}
	}
}

// filesOf are the files that components keep, by who keeps them.
func filesOf(c map[string]component) map[string]string {
	inRoot := func(file string) string { return file[strings.Index(file, "/001/")+len("/001"):] }
	return map[string]string{
		"applogs":      inRoot(c["applogs"].(*applogs.Component).Checkpoints),
		"applogs' own": inRoot(c["applogs"].(*applogs.Component).Journal),
		"clustertoken": inRoot(c["clustertoken"].(*clustertoken.Component).Manifest),
		"console":      inRoot(c["console"].(*console.Component).File),
		"console's":    inRoot(c["console"].(*console.Component).OldFile),
		"k3sconfig":    inRoot(c["k3sconfig"].(*k3sconfig.Component).OverrideFile),
		"localserver":  inRoot(c["localserver"].(*localserver.Component).TokenFile),
		"provers":      inRoot(c["statusserver"].(*statusserver.Component).ProversFile),
		"peers":        inRoot(c["statusserver"].(*statusserver.Component).PeersFile),
		"watchdog":     inRoot(c["watchdog"].(*watchdog.Component).TouchFile),
	}
}

// direct are the calls that change something outside of the process.
var direct = regexp.MustCompile(`\b(os\.(Rename|Remove|RemoveAll|Link|Symlink|WriteFile|Truncate|Chtimes)\(|\.WriteAt\(|LinkSetUp\(|PidfdSendSignal\(|syscall\.Unlink)`)

// aside are files of the agent's packages with such calls beside kill points, and how many of
// them: what nobody else reads, and what is no file.
var aside = map[string]struct {
	calls int
	why   string
}{
	"pkg/base/k3setcd/sqlite.go":              {1, "the copy that is not whole"},
	"pkg/base/k3sbinary/stage.go":             {2, "what is not verified; what was staged before, after the new one"},
	"pkg/base/k3sbinary/swap.go":              {1, "the other name of the former binary"},
	"pkg/base/k3sprocess/k3sprocess.go":       {1, "within \"end k3s\""},
	"pkg/base/keptfile/keptfile.go":           {1, "within \"remove\", and of the part of a file"},
	"pkg/base/safefile/safefile.go":           {3, "the part of a file"},
	"pkg/base/watchdog/watchdog.go":           {1, "the touch that follows where the file was missing"},
	"pkg/operate/localserver/server.go":       {2, "the directory in which a socket is made"},
	"pkg/workload/console/file.go":            {7, "the part of a file, and what is put back"},
	"pkg/workload/podnetworks/podnetworks.go": {1, "the part of a file"},
	"pubsub/client.go":                        {2, "large fields of messages, which nobody reads twice"},
	"pubsub/file.go":                          {2, "the temporary file"},
	"pubsub/large.go":                         {3, "large fields of messages, which nobody reads twice"},
	"pubsub/packet.go":                        {1, "a socket that a dead process left"},
	"pubsub/server.go":                        {1, "its socket, at the end"},
	"pubsub/store.go":                         {1, "its socket, at the end"},
	"pubsub/withdrawn.go":                     {3, "what only its next run reads, before \"withdraw\""},
}

func TestNoCallChangesTheDeviceBesideKillPoints(t *testing.T) {
	found := map[string]int{}
	for _, dir := range []string{"cmd", "kubeapi", "pkg", "pubsub", "types"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(file string, d os.DirEntry, err error) error {
			name := strings.TrimPrefix(file, "../../")
			if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") ||
				strings.HasPrefix(name, "pkg/cli/") || strings.HasPrefix(name, "pkg/base/failpoint/") {
				return err // a command is not the agent
			}
			content, err := os.ReadFile(file)
			for line := range strings.Lines(string(content)) {
				if code, _, _ := strings.Cut(line, "//"); direct.MatchString(code) && !strings.Contains(code, "failpoint.") {
					found[name]++
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, n := range found {
		if n != aside[name].calls {
			t.Errorf("%s has %d calls that change files or the device beside failpoint.Do, not %d", name, n, aside[name].calls)
		}
	}
	for name, known := range aside {
		if found[name] == 0 {
			t.Errorf("%s has none any more (%s)", name, known.why)
		}
	}
}
