//go:build linux

package main

import (
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
)

// scenes are all of them, in the order in which they run.
func scenes() []Scene {
	return append([]Scene{
		{
			Name: "drains", Takes: 3 * time.Minute, Run: drains,
			Does: "three devices drain again and again: reboots, updates, withdrawals, two requesters, drains that cannot end, foreign cordons; " +
				"their agents are killed and their API servers have faults meanwhile",
		},
		{
			Name: "killpoints", Run: killpoints, KillPoints: reachedBy("killpoints"),
			Does: "the same drains, kubeconfigs are issued and an application comes and goes; the agents kill themselves before and after their own effects, " +
				"at the points that the test build lists, those first that were hit least; some lose their power there",
		},
		{
			Name: "stories", Takes: 7 * time.Minute, Package: "cmd/zedkube", Test: "TestSoakStoriesOfAgentsThatKillThemselves", KillPoints: reachedBy("stories"),
			Does: "the stories of cmd/zedkube: joins, leaves, changes of k3s, requests of operators; the agents kill themselves at the points that no drain passes, " +
				"and what each story expects still comes",
		},
		{
			Name: "faultpoints", Run: faulty, FaultPoints: faultNames(),
			Does: "the same drains; what the agents ask of the API server in each state of a drain meets one fault after the other, those first that were hit least",
		},
		{Name: "clocks", Run: clocks, Does: "three devices drain while their clocks jump by seconds to years; one begins in 1970"},
		{Name: "disks", Run: disks, Needs: needsMounts, Does: "three devices drain while what zedkube keeps is on a disk that is full or read-only"},
		{Name: "journals", Run: journals, Does: "three devices drain; their agents are killed and start with a file cut or garbled"},
		{Name: "agents", Run: agents, Does: "three devices drain while EVE's agents restart; their topics are torn or hostile meanwhile"},
		{Name: "silences", Run: silences, Does: "three devices drain while their API servers refuse, hang, are slow, or let watches stall or expire, in every state"},
		{Name: "restores", Run: restores, Does: "three devices drain while etcd is set back: old objects, old resource versions"},
		{
			Name: "replicas", Run: replicas,
			Does: "one of three devices drains that has the last whole replica of a volume, until another one is whole again: one that has failed, is in error, is being rebuilt, or is not known to the engine",
		},
		{Name: "sizes", Run: sizes, Does: "two, three or five devices drain, one a worker, one the tie-breaker; their agents are killed or power is cut"},
		{Name: "partitions", Run: partitions, Needs: devcluster.CanHost, Does: "three hosts drain while the cable of one is cut: both ways, one way, flapping"},
		{
			Name: "alone", Run: alone,
			Does: "three devices drain while one or two of them reach no API server for so long that they go without it; the others wait for them",
		},
		{
			Name: "lost-nodes", Takes: 8 * time.Minute, Package: "test/apps", Test: "TestSoakKillPoints", Needs: devcluster.CanHost, KillPoints: reachedBy("lost-nodes"),
			Does: "a node with a virtual machine is cut off or killed and comes back, on hosts of their own with the real KubeVirt; agents are killed meanwhile, " +
				"many by themselves at what they do for lost nodes",
		},
		{
			Name: "reporters", Takes: 21 * time.Minute, Package: "test/hosts", Test: "TestSoakKilledReportersAreFollowed", Needs: devcluster.CanHost,
			Does: "the agent of the node that reports is killed, on hosts of their own",
		},
		{
			Name: "reports", Takes: 4 * time.Minute, Package: "test/report", Test: "TestSoakReportsAreHonest",
			Does: "everything that is reported on the cluster is compared with what was so, under faults and changes",
		},
		{
			Name: "publications", Package: "pubsub", Test: "TestSoakAProcessKilledWhileItPublishesLosesNothing",
			Does: "a process is killed while it publishes, a thousand times",
		},
		{
			Name: "k3s-files", Package: "pkg/cluster/k3supdate", Test: "TestSoakTheFilesOfK3sAreWholeWhereverTheAgentDies", KillPoints: reachedBy("k3s-files"),
			Does: "a process kills itself at what the agent does to the files of k3s: certificates that are moved aside and put back, copies, staged versions",
		},
		{
			Name: "kept-files", Package: "pkg/base/keptfile", Test: "TestSoakAKeptFileIsWholeWhereverTheAgentDies", KillPoints: reachedBy("kept-files"),
			Does: "a process kills itself while it keeps a file of a component that no other scene comes to: the file is the former one or the new one",
		},
		{
			Name: "console-file", Package: "pkg/workload/console", Test: "TestSoakTheOlderPlaceIsWholeWhereverTheAgentDies", KillPoints: reachedBy("console-file"),
			Does: "a process kills itself while it writes and removes the console file of older kube containers: it is whole or not there, and follows what is wanted",
		},
		{
			Name: "log-journal", Package: "pkg/workload/applogs", Test: "TestSoakEachLineComesOnceWhereverTheAgentDiesAtItsJournal", KillPoints: reachedBy("log-journal"),
			Does: "a process kills itself at the journal of the lines that it has logged: none is lost, and at most one batch comes twice",
		},
		{
			Name: "full-leader", Package: "pkg/cluster/leader", Test: "TestSoakALeaderThatDiesOnAFullDiskKeepsItsLease", KillPoints: reachedBy("full-leader"),
			Does: "a process kills itself while it withdraws that it leads, because there is no space to say so: its Lease is not given back before",
		},
		{
			Name: "upgrade", Takes: 10 * time.Minute, Package: "test/upgrade", Test: "TestSoak.*", Needs: devcluster.CanHost,
			Does: "three servers change their minor version, and their etcd, under load",
		},
		{
			Name: "edge", Takes: 15 * time.Minute, Package: "test/edge", Test: "TestSoak.*", Needs: devcluster.CanEdge,
			Does: "edge nodes behind routers with KubeEdge's own programs: logs, exec, statistics and kubectl top, a leader that is lost, strangers at the ports, another address, cloudcores and their servers that are lost, devices that leave",
		},
		{
			Name: "logs", Takes: 40 * time.Minute, Package: "test/applogs", Test: "TestSoak.*", Needs: devcluster.CanRunPods,
			Does: "many containers write, on real kubelets: each line is logged once",
		},
	}, simulations()...)
}

// simulations are histories in fake time, a scene for each test that plays some.
// A run plays as many as take about a minute on an idle core.
func simulations() (all []Scene) {
	for _, s := range []struct {
		name, pkg, test string
		histories       int
		does            string
	}{
		{"sim-drain-rules", "pkg/workload/drain", "FuzzDecide", 10_000, "facts that change at random: no decision of a drain breaks what it promises"},
		{"sim-drain", "pkg/workload/drain", "TestWhateverComesTheDrainKeepsItsWord", 1000, "requests, kills, faults in any order: the drain keeps its word"},
		{"sim-drain-cluster", "pkg/workload/drain", "TestWhateverHappensAroundItTheDrainGivesTheNodeBack", 500, "and whatever happens in the cluster: the node is given back"},
		{"sim-lock", "pkg/workload/drain", "TestEveryRuleEnds", 200_000, "whatever is answered: no lock is taken that its holder needs, no Node deleted without quorum"},
		{"sim-turns", "test/turns", "TestNoTwoComponentsTakeAReplicaOrAQuorum", 15, "drains, changes of k3s and restarts for mounts on three nodes that die and whose replicas fail: one at a time, and none takes the last replica"},
		{"sim-k3s", "pkg/cluster/k3supdate", "TestSoakInShortHistoriesOneNodeChangesAtATime", 10_000, "changes of k3s on up to seven nodes that die and drain: one at a time"},
		{"sim-k3s-long", "pkg/cluster/k3supdate", "TestInRandomHistoriesOneNodeChangesAtATime", 500, "the same for longer: all arrive"},
		{"sim-election", "kubeapi", "TestThereAreNeverTwoLeadersAndOneWhenAllIsWell", 500, "faults of the API server, clocks that differ: never two leaders"},
		{"sim-workloads", "pkg/workload/workloads", "TestWhateverHappensEverythingIsAsItWasInTheEnd", 1000, "workloads are disabled and enabled while agents die: all is as it was"},
		{"sim-passthrough", "pkg/workload/passthrough", "TestNodesThatShareAttachmentsNeverTakeOneFromAnother", 500, "nodes share attachments: none takes one from another"},
		{"sim-leave", "pkg/cluster/membership", "TestNoOrderOfEventsLosesAReplicaWithoutConsent", 200, "a node leaves: no replica is lost without consent"},
		{"sim-logs", "pkg/workload/applogs", "TestEveryLineComesOnceWhateverHappens", 200, "kills, cuts, rotations: each line is logged once"},
		{"sim-k3s-kills", "pkg/cluster/k3supdate", "TestWhereverTheAgentDiesK3sIsEndedOnceAndASnapshotTakenOnce", 20, "an agent dies while it has k3s end or take a snapshot: each happens once, on one node at a time, and the lock is free again"},
		{"sim-mounts", "pkg/workload/mounts", "TestWhereverTheAgentDiesK3sIsRestartedOnceAndTheLockIsFreed", 20, "k3s is restarted for volumes while the agent dies at its effects: once, and the lock is free again"},
		{"sim-members", "pkg/cluster/members", "TestARemovalThatIsKilledAnywhereIsDoneAllTheSameAndLeavesNoLock", 20, "a node that is gone is removed while agents die at their requests: it alone, and no lock is left"},
		{"sim-apps", "pkg/workload/apps", "TestAnApplicationIsWellWhereverTheAgentOfItsRepairDies", 20, "applications are moved, failed over, scaled and made again while the agents die at that: each is well, and nothing is done twice"},
		{"sim-ports", "pkg/workload/passthrough", "TestWhereverTheAgentDiesItHasWhatItsApplicationsUseAndNoMore", 20, "an agent dies at what it does for the ports of applications: they have theirs, and those of other nodes too"},
		{"sim-machines", "pkg/workload/workloads", "TestWhereverTheAgentDiesMachinesRunAsBeforeInTheEnd", 20, "an agent dies while it disables and enables virtual machines: all run as before"},
		{"sim-snapshots", "pkg/workload/storage", "TestWhereverTheAgentDiesTheSnapshotsFollowTheirSetting", 20, "an agent dies while it changes and deletes the job of Longhorn's snapshots: that follows its setting"},
		{"sim-networks", "pkg/workload/networks", "TestWhereverTheAgentDiesTheAttachmentIsThatOfTheNetwork", 20, "an agent dies while it corrects and deletes the attachment of a network: there is none of another one"},
		{"sim-sriov-kills", "pkg/workload/sriov", "TestWhereverTheAgentDiesThePluginOffersItsOwn", 20, "an agent dies at what it does for SR-IOV: its plug-in offers its own, and nothing else is left"},
		{"sim-sriov", "pkg/workload/sriov", "TestWhateverHappensEveryPluginOffersItsOwnInTheEnd", 200, "kills and faults: each plug-in offers its own"},
		{"sim-sriov-config", "pkg/workload/sriov", "TestOnEveryNodeAResourceIsTheFunctionItIsNamedAfter", 20_000, "one configuration of many nodes: each resource is its own function"},
	} {
		all = append(all, Scene{Name: s.name, Does: s.does, Fake: true, Package: s.pkg, Test: s.test, Plays: s.histories, KillPoints: reachedBy(s.name)})
	}
	return all
}
