package main

import (
	"cmp"
	"path/filepath"
	"time"

	"github.com/zedkube/zedkube/pkg/base/cipher"
	"github.com/zedkube/zedkube/pkg/cluster/clustertoken"
	"github.com/zedkube/zedkube/pkg/cluster/k3sconfig"
	"github.com/zedkube/zedkube/pkg/cluster/statusserver"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/pkg/workload/applogs"
	"github.com/zedkube/zedkube/pkg/workload/console"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/pkg/workload/sriov"
)

// options are what the command line says.
type options struct {
	version    string // of this program
	root       string
	kubeconfig string
	logRecord  int
	page       pageFlag
	reports    statusserver.Reports
	onCluster  bool          // the page, too
	hour       time.Duration // how long an hour is, where a test wants a shorter one; no flag of the program sets it
}

// paths are the files outside pubsub (docs/wire.md, "Files"), each below root,
// and how long an hour is.
type paths struct {
	version        string // of this program
	hour           time.Duration
	root           string
	kubeconfig     string
	hypervisor     string
	pid            string
	touch          string
	bootID         string   // readBootID
	boot           string   // what it says
	forceDrain     []string // the first that speaks wins
	faultInjection string
	goingDown      []string // with content while the device goes down
	deviceKey      string   // where the device has no TPM
	tpm            string
	manifest       string // of the cluster's registration
	k3sOverride    string // of the kube container's configuration
	k3sBinary      string
	k3sPID         string
	installLog     string // of the kube container
	reports        statusserver.Reports
	provers        string   // note that all nodes of the cluster have proofs
	topicDirs      []string // where all agents' topics lie
	console        string
	consoleOld     string // the same, where older kube containers look
	kubeInit       string
	logJournal     string
	logCheckpoints string
	logRecord      int    // bytes of one line of an application's log
	audit          string // directory of what was done
	proc           string
	sysfs          string
	socket         string // where commands ask the agent
	pageAddress    string // on loopback, "" for none
	pageToo        bool   // there, and not the numbers alone
	pageToken      string // file with the reading token
	pageOnCluster  int    // the port on the cluster address, 0 for none
}

// paths are those of a device with these options.
func (o options) paths() paths {
	in := func(path string) string { return filepath.Join("/", o.root, path) }
	if o.root != "" && !filepath.IsAbs(o.root) {
		in = func(path string) string { return filepath.Join(o.root, path) }
	}
	p := paths{
		version:        o.version,
		hour:           cmp.Or(o.hour, time.Hour),
		root:           o.root,
		kubeconfig:     o.kubeconfig,
		hypervisor:     in("/run/eve-hv-type"),
		pid:            in("/run/zedkube.pid"),
		touch:          in("/run/zedkube.touch"),
		bootID:         in(bootIDFile),
		forceDrain:     []string{in(drain.DefaultForceFile), in(drain.OtherForceFile)},
		faultInjection: in(drain.DefaultFaultMarker),
		goingDown:      []string{in(drain.RebootReason), in(drain.BootReason), in(drain.ScheduledShutdown)},
		deviceKey:      in(cipher.DefaultKeyFile),
		tpm:            in(cipher.DefaultTPM),
		manifest:       in(clustertoken.DefaultManifest),
		k3sOverride:    in(k3sconfig.DefaultOverrideFile),
		k3sBinary:      in(k3sconfig.DefaultBinary),
		k3sPID:         in(k3sconfig.DefaultPID),
		installLog:     in("/persist/kubelog/k3s-install.log"),
		reports:        o.reports,
		provers:        in("/persist/zedkube/all-prove"),
		topicDirs:      []string{in("/run"), in("/persist/status")},
		console:        in(console.DefaultFile),
		consoleOld:     in(console.DefaultOldFile),
		kubeInit:       in(console.DefaultKubeInit),
		logRecord:      min(max(cmp.Or(o.logRecord, applogs.DefaultMaxRecord), applogs.SmallestRecord), applogs.LargestRecord),
		logJournal:     in(applogs.DefaultJournal),
		logCheckpoints: in(applogs.DefaultCheckpoints),
		audit:          in(audit.DefaultDir),
		proc:           in(console.DefaultProc),
		sysfs:          in(sriov.DefaultSysfs),
		socket:         in(localserver.DefaultSocket),
		pageAddress:    o.page.address(o.root),
		pageToo:        o.page.too(),
		pageToken:      in(localserver.DefaultTokenFile),
		pageOnCluster:  o.page.clusterPort(o.onCluster),
	}
	if p.kubeconfig == "" {
		p.kubeconfig = in("/run/.kube/k3s/k3s.yaml")
	}
	return p
}
