package outlook

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

// twelve is when these tests take place.
var twelve = time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)

const byBudget = "evict pod shop/till: refused by a PodDisruptionBudget: Cannot evict pod"

func past(d time.Duration) time.Time { return twelve.Add(-d) }

// till is a pod of a replica set that has been in the way for five seconds.
func till(change func(*StuckPod)) StuckPod {
	o := StuckPod{
		Situation: types.PodSituation{
			Pod: types.Pod{
				Namespace: "shop", Name: "till", NodeName: "n1", UID: "1",
				Owner: types.Owner{Kind: "ReplicaSet", Name: "tills", UID: "2"},
			},
			Grace: 30 * time.Second, Fits: 2,
		},
		Since: past(5 * time.Second), KubeletReady: true,
	}
	change(&o)
	return o
}

// deleted is that pod, deleted some time ago.
func deleted(since time.Duration, change func(*StuckPod)) StuckPod {
	return till(func(o *StuckPod) {
		change(o)
		o.Situation.Pod.Deleted = past(since).Add(o.Situation.Grace)
	})
}

// under is that pod, refused by a budget.
func under(b types.PodBudget, change func(*StuckPod)) StuckPod {
	return till(func(o *StuckPod) {
		b.Name = "shop/open"
		o.RefusedBy, o.Situation.Budgets = byBudget, []types.PodBudget{b}
		change(o)
	})
}

func plain(*StuckPod)       {}
func deaf(o *StuckPod)      { o.KubeletReady = false }
func heldTwice(o *StuckPod) { o.Situation.Finalizers = []string{"a.io/x", "b.io/y"} }
func heldOnce(o *StuckPod)  { o.Situation.Finalizers = []string{"a.io/x"} }
func pinned(o *StuckPod)    { o.Situation.Pinned, o.Situation.Fits = true, 0 }
func cramped(o *StuckPod)   { o.Situation.Fits, o.Situation.Lacks = 0, "n2 is full" }

// forAMinute has it in the way for that long.
func forAMinute(o *StuckPod) { o.Since = past(time.Minute) }

func machineOf(strategy, immovable string, more ...func(*StuckPod)) func(*StuckPod) {
	return func(o *StuckPod) {
		o.Situation.Pod.VMI, o.Situation.Strategy, o.Situation.Immovable, o.RefusedBy = "vm", strategy, immovable, byBudget
		for _, m := range more {
			m(o)
		}
	}
}

func TestAnOwnerThatIsNoObjectsNameIsInNoRemedy(t *testing.T) {
	for _, owner := range []types.Owner{{Kind: "Job", Name: "x; kubectl delete ns shop"}, {Kind: "Job; reboot", Name: "x"}, {Kind: "-f", Name: "x"}, {Kind: "Job", Name: "-f"}} {
		owner.UID = "2"
		for name, change := range map[string]func(*StuckPod){
			"pinned": pinned, "it comes back": func(o *StuckPod) { o.Returns = 3 }, "pods like it come back": func(o *StuckPod) { o.Returns, o.Shared = 3, true },
			"it comes back, pinned": func(o *StuckPod) { o.Returns, o.Situation.Pinned = 3, true },
		} {
			o := till(change)
			o.Situation.Pod.Owner = owner
			b := Blockers(twelve, []StuckPod{o})[0]
			if strings.Contains(b.Remedy, owner.Name+" ") || strings.Contains(strings.ToLower(b.Remedy), strings.ToLower(owner.Kind)+" ") || !strings.Contains(b.Why, owner.Name) {
				t.Errorf("%s, %s %s: %+v", name, owner.Kind, owner.Name, b)
			}
		}
	}
}

func TestEachObstacleHasItsCauseItsNumbersAndItsOutlook(t *testing.T) {
	both := func(fs ...func(*StuckPod)) func(*StuckPod) {
		return func(o *StuckPod) {
			for _, f := range fs {
				f(o)
			}
		}
	}
	tight := types.PodBudget{Healthy: 2, Desired: 2, Expects: 2}
	roomy := types.PodBudget{Healthy: 2, Desired: 2, Expects: 3}
	for name, row := range map[string]struct {
		o    StuckPod
		want string // cause, outlook
		says []string
	}{
		// On its way out.
		"it ends within its grace period":     {deleted(10*time.Second, plain), "grace slow", []string{"30s ends in 20s"}},
		"it has just outlived it":             {deleted(31*time.Second, plain), "kubelet slow", []string{"30s ended 1s ago", "has not stopped it"}},
		"it outlives it for a minute":         {deleted(90*time.Second, plain), "kubelet never", []string{"ended 1m0s ago", "--force"}},
		"a finalizer, within the grace":       {deleted(10*time.Second, heldOnce), "finalizer slow", []string{"finalizer a.io/x", "ends in 20s"}},
		"two finalizers, after it":            {deleted(40*time.Second, heldTwice), "finalizer slow", []string{"finalizers a.io/x, b.io/y"}},
		"a finalizer for a minute":            {deleted(60*time.Second, heldOnce), "finalizer never", []string{"kubectl -n shop patch pod till"}},
		"the kubelet has ended it at once":    {deleted(54*time.Second, both(heldOnce, func(o *StuckPod) { o.Situation.Grace = 0 })), "finalizer slow", nil},
		"and a minute ago":                    {deleted(60*time.Second, both(heldOnce, func(o *StuckPod) { o.Situation.Grace = 0 })), "finalizer never", nil},
		"a long grace is not cut":             {deleted(300*time.Second, both(heldOnce, func(o *StuckPod) { o.Situation.Grace = 600 * time.Second })), "finalizer slow", nil},
		"the kubelet does not answer":         {deleted(10*time.Second, deaf), "kubelet slow", []string{"kubelet of n1 does not answer"}},
		"nor half a minute after the grace":   {deleted(60*time.Second, deaf), "kubelet never", []string{"--force"}},
		"nor half a minute after a short one": {deleted(36*time.Second, both(deaf, func(o *StuckPod) { o.Situation.Grace = 5 * time.Second })), "kubelet never", nil},
		"nor for a minute of a long grace":    {deleted(60*time.Second, both(deaf, func(o *StuckPod) { o.Situation.Grace = 600 * time.Second })), "kubelet never", nil},
		"and there is a finalizer, too":       {deleted(10*time.Second, both(deaf, heldOnce)), "kubelet slow", []string{"finalizer a.io/x"}},
		"it ends only to be made again":       {deleted(10*time.Second, pinned), "pinned slow", []string{"n1", "ReplicaSet tills"}},
		"stuck comes before made again":       {deleted(100*time.Second, both(pinned, heldOnce)), "finalizer never", nil},
		"its deletion is known by hearsay":    {till(func(o *StuckPod) { o.TerminatingSince = past(10 * time.Second) }), "grace slow", []string{"ends in 20s"}},
		"the clocks differ: still its grace":  {deleted(-10*time.Second, plain), "grace slow", []string{"ends in 40s"}},

		// Not evicted.
		"pinned and made again":              {till(pinned), "pinned slow", []string{"spec.nodeName is n1", "ReplicaSet tills", "scale it to 0"}},
		"pinned and of nobody":               {till(both(pinned, func(o *StuckPod) { o.Situation.Pod.Owner = types.Owner{} })), "pinned slow", []string{"spec.nodeName is n1"}},
		"pinned, made again, and refused":    {under(tight, pinned), "budget never", nil},
		"it has come back once":              {till(func(o *StuckPod) { o.Returns = 1 }), "returns slow", []string{"ReplicaSet tills has created it again on this cordoned node once;", "less and less often", "scale ReplicaSet tills to 0"}},
		"it tolerates the cordon":            {till(func(o *StuckPod) { o.Returns, o.Situation.Tolerates = 3, true }), "returns slow", []string{"3 times: it tolerates the taint node.kubernetes.io/unschedulable", "take that toleration out of the template of ReplicaSet tills, or scale"}},
		"pinned, it has come back":           {till(both(pinned, func(o *StuckPod) { o.Returns = 3 })), "returns slow", []string{"its spec.nodeName is n1", "take spec.nodeName out of the template"}},
		"it has come back too often":         {till(func(o *StuckPod) { o.Returns = MaxReturns }), "returns slow", []string{"no longer evicted", "goes down with the device"}},
		"nobody knows who makes it":          {till(func(o *StuckPod) { o.Returns, o.Situation.Pod.Owner = 2, types.Owner{} }), "returns slow", []string{"does not name as its owner", "--show-managed-fields"}},
		"its owner has a new name each time": {till(func(o *StuckPod) { o.Returns, o.Shared = 4, true }), "returns slow", []string{"the creator of ReplicaSet tills has created pods like it again on this cordoned node 4 times", "kubectl -n shop get replicaset tills -o yaml"}},
		"it ends, only to come back":         {deleted(10*time.Second, func(o *StuckPod) { o.Returns = 2 }), "returns slow", []string{"2 times"}},
		"it came back, and is refused":       {under(tight, func(o *StuckPod) { o.Returns = 2 }), "budget never", nil},
		"pinned, of nobody, and refused":     {under(tight, both(pinned, func(o *StuckPod) { o.Situation.Pod.Owner = types.Owner{} })), "budget never", nil},
		"it will be held by a finalizer":     {till(heldOnce), "finalizer slow", []string{"a.io/x"}},
		"it waits for its turn":              {till(plain), "", nil},
		"so it does with no room":            {till(cramped), "", nil},
		"it is shut down, not moved":         {till(func(o *StuckPod) { o.Situation.Immovable = "HostDevice: gpu" }), "immovable slow", []string{"HostDevice: gpu"}},
		"an error":                           {till(func(o *StuckPod) { o.RefusedBy = "HTTP 500: webhook down" }), "refused slow", []string{"webhook down"}},
		"an error for a minute":              {till(both(forAMinute, func(o *StuckPod) { o.RefusedBy = "HTTP 500: webhook down" })), "refused never", nil},
		"two budgets": {under(roomy, func(o *StuckPod) {
			o.Situation.Budgets = append(o.Situation.Budgets, types.PodBudget{Name: "shop/b2"})
			o.RefusedBy = "500"
		}), "refused never", []string{"2 PodDisruptionBudgets", "shop/open, shop/b2"}},
		"a budget that cannot open":       {under(tight, plain), "budget never", []string{"shop/open allows no disruption: of 2 pods 2 are healthy and 2 must remain"}},
		"a budget whose pods come":        {under(roomy, plain), "budget slow", []string{"of 3 pods 2 are healthy and 2 must remain", "-n shop get pods"}},
		"a budget whose pods cannot come": {under(roomy, cramped), "no-room never", []string{"shop/open", "2 are healthy", "n2 is full"}},
		"a budget that has just opened":   {under(types.PodBudget{Allowed: 1, Healthy: 3, Desired: 2, Expects: 3}, cramped), "budget slow", []string{"allows 1 disruption", "tried again"}},
		"a budget that lags behind":       {under(types.PodBudget{Healthy: 3, Desired: 2, Expects: 4}, cramped), "budget slow", nil},
		"a budget not counted yet":        {under(types.PodBudget{}, plain), "budget slow", nil},
		"a budget that counts no pod":     {under(types.PodBudget{}, forAMinute), "budget never", []string{"of 0 pods"}},
		"a budget that expects no pod":    {under(types.PodBudget{Healthy: 1}, plain), "budget never", []string{"percentage"}},
		"a budget in trouble":             {under(types.PodBudget{Trouble: "found no controller"}, plain), "budget never", []string{"found no controller"}},
		"no budget is known":              {till(func(o *StuckPod) { o.RefusedBy = byBudget }), "budget slow", []string{"Cannot evict pod", "get pdb"}},
		"none is known for a minute":      {till(both(forAMinute, func(o *StuckPod) { o.RefusedBy = byBudget })), "budget never", nil},

		// Virtual machines.
		"a machine that must and cannot move":   {till(machineOf("LiveMigrate", "DisksNotLiveMigratable: local")), "immovable never", []string{"DisksNotLiveMigratable: local"}},
		"by the cluster's strategy":             {till(machineOf("", "local")), "immovable never", nil},
		"one whose mover is elsewhere":          {till(machineOf("External", "local")), "immovable never", nil},
		"one that may be shut down, refused":    {under(tight, machineOf("None", "local")), "budget never", nil},
		"a machine that moves":                  {till(machineOf("LiveMigrate", "")), "budget slow", []string{"migrated", "get vmim"}},
		"a machine that moves, under a budget":  {under(types.PodBudget{Healthy: 1, Desired: 1, Expects: 1}, machineOf("LiveMigrate", "")), "budget slow", []string{"of 1 pod 1 is healthy"}},
		"a machine that would, had it room":     {till(machineOf("LiveMigrateIfPossible", "", cramped)), "no-room never", []string{"n2 is full"}},
		"a machine of no strategy under budget": {under(tight, machineOf("", "")), "budget never", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, text := "", ""
			for _, b := range Blockers(twelve, []StuckPod{row.o}) {
				got, text = b.Cause+" "+string(b.Outlook), b.Why+" | "+b.Remedy
				if b.Pod != "shop/till" || b.Node != "n1" || b.Why == "" || !b.Since.Equal(row.o.Since) {
					t.Errorf("blocker is %+v", b)
				}
				if b.Outlook == types.OutlookNever && b.Remedy == "" {
					t.Error("nobody is told what to do")
				}
			}
			if got != row.want {
				t.Errorf("got %q, want %q: %s", got, row.want, text)
			}
			for _, s := range row.says {
				if !strings.Contains(text, s) {
					t.Errorf("%q is not in: %s", s, text)
				}
			}
		})
	}
}

func TestTheLongestStandingObstacleComesFirst(t *testing.T) {
	named := func(name string, since time.Duration) StuckPod {
		return under(types.PodBudget{}, func(o *StuckPod) { o.Situation.Pod.Name, o.Since = name, past(since) })
	}
	all := []StuckPod{named("b", time.Second), named("a", time.Second), named("c", time.Minute), till(plain)}
	for range 2 {
		var names []string
		for _, b := range Blockers(twelve, all) {
			names = append(names, b.Pod)
		}
		if diff := cmp.Diff([]string{"shop/c", "shop/a", "shop/b"}, names); diff != "" {
			t.Error(diff)
		}
		all[0], all[2] = all[2], all[0]
	}
}

func TestStrandedAreThosePodsThatNoOtherNodeTakes(t *testing.T) {
	row := func(name, lacks string, fits int) types.PodSituation {
		return types.PodSituation{Pod: types.Pod{Namespace: "shop", Name: name}, Fits: fits, Lacks: lacks}
	}
	got := Stranded([]types.PodSituation{row("z", "full", 0), row("moves", "", 1), row("unknown", "", 0), row("a", "tainted", 0)})
	if diff := cmp.Diff([]string{"shop/a", "shop/z"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNobodyIsToldToTakeLonghornsBudgetsOrPodsAway(t *testing.T) {
	tight := types.PodBudget{Healthy: 1, Desired: 1, Expects: 1}
	ofLonghorn := func(o *StuckPod) { o.Situation.Pod.Namespace = "longhorn-system" }
	for name, o := range map[string]StuckPod{
		"its budget":       under(tight, ofLonghorn),
		"in trouble":       under(types.PodBudget{Trouble: "x"}, ofLonghorn),
		"no pod expected":  under(types.PodBudget{Healthy: 1}, ofLonghorn),
		"two budgets":      under(tight, func(o *StuckPod) { ofLonghorn(o); o.Situation.Budgets = append(o.Situation.Budgets, tight) }),
		"no budget known":  till(func(o *StuckPod) { ofLonghorn(o); o.RefusedBy = byBudget }),
		"pinned by owners": till(func(o *StuckPod) { pinned(o); ofLonghorn(o) }),
	} {
		got := Blockers(twelve, []StuckPod{o})
		if len(got) != 1 || !strings.Contains(got[0].Remedy, "replica") || !strings.Contains(got[0].Remedy, "change neither the budget nor the pod") || strings.Contains(got[0].Remedy, "kubectl") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := Blockers(twelve, []StuckPod{under(tight, plain)}); len(got) != 1 || !strings.Contains(got[0].Remedy, "edit pdb") {
		t.Errorf("another one's budget: %+v", got)
	}
}
