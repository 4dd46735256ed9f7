package types

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
)

// ReachOutcome is what became of a connection that was tried.
type ReachOutcome string

// The outcomes.
const (
	ReachOpen        ReachOutcome = "open"
	ReachRefused     ReachOutcome = "refused"     // the machine answers, nobody listens there, or a firewall says so
	ReachSilent      ReachOutcome = "silent"      // no answer in time: a firewall that drops, or nobody there
	ReachUnreachable ReachOutcome = "unreachable" // there is no way, or it could not be tried
)

// Reach is what the status server of a node answers to another that asks
// whether it can be reached from there (docs/wire.md, "Reach").
type Reach struct {
	Node    string        `json:"node"`    // of who answers; "" while not known
	Zedkube string        `json:"zedkube"` // its version
	At      time.Time     `json:"at"`      // its clock, as it answers
	From    string        `json:"from"`    // the address the question came from, which alone was tried
	Ports   []ReachPort   `json:"ports"`
	Cluster *ReachCluster `json:"cluster,omitempty"` // nil while its tables of the cluster are incomplete
}

// Open are the ports that were reached; of nil, none.
func (r *Reach) Open() (ports []int) {
	if r == nil {
		return nil
	}
	for _, p := range r.Ports {
		if p.Outcome == ReachOpen {
			ports = append(ports, p.Port)
		}
	}
	return ports
}

// ReachPort is one port of who asked.
type ReachPort struct {
	Port    int          `json:"port"`
	Outcome ReachOutcome `json:"outcome"`
}

// ReachCluster is what a joining node has to know of the cluster, and cannot
// ask the API server for.
type ReachCluster struct {
	Nodes      int       `json:"nodes"`
	Members    int       `json:"etcdMembers"`  // that vote
	Ready      int       `json:"etcdReady"`    // of these
	Learners   int       `json:"etcdLearners"` // they do not vote yet
	Addresses  []string  `json:"etcdAddresses"`
	TieBreaker string    `json:"tieBreaker,omitempty"` // name of its Node
	Kubelets   []string  `json:"kubelets"`             // versions of the Nodes, each once, in order
	Name       ReachName `json:"name,omitempty"`       // of the name and device asked about; "" where none was
}

// ReachName is whether a name is free for a device.
type ReachName string

// The answers.
const (
	ReachNameFree  ReachName = "free"
	ReachNameTaken ReachName = "taken" // by a Node of another device
	ReachNameOwn   ReachName = "own"   // by a Node of this very device
	ReachNameOther ReachName = "other" // it is free, but another Node is of this device
)

// ReachClusterOf counts the Nodes of a cluster.
func ReachClusterOf(nodes []Node) ReachCluster {
	q := QuorumOf(nodes)
	c := ReachCluster{
		Nodes: len(nodes), Members: q.Voters, Ready: q.Ready, Learners: q.Learners,
		Addresses: []string{}, Kubelets: []string{},
	}
	for _, n := range nodes {
		if n.KubeletVersion != "" {
			c.Kubelets = append(c.Kubelets, n.KubeletVersion)
		}
		if n.TieBreaker {
			c.TieBreaker = n.Name
		}
		if !n.Etcd {
			continue
		}
		if n.InternalIP != "" {
			c.Addresses = append(c.Addresses, n.InternalIP)
		}
	}
	slices.Sort(c.Addresses)
	slices.Sort(c.Kubelets)
	c.Kubelets = slices.Compact(c.Kubelets)
	return c
}

// ReachNameOf says whether a name is free for a device; without a name it says
// nothing.
func ReachNameOf(nodes []Node, name string, device uuid.UUID) ReachName {
	if name == "" {
		return ""
	}
	ours := func(n Node) bool { return device != uuid.Nil && n.UUID == device.String() }
	answer := ReachNameFree
	for _, n := range nodes {
		switch {
		case n.Name == name && ours(n):
			return ReachNameOwn
		case n.Name == name:
			return ReachNameTaken
		case ours(n):
			answer = ReachNameOther
		}
	}
	return answer
}

// Witness is what a node's zedkube tells, on its own Node, of the Nodes that are
// not Ready: whether their devices answer it (docs/wire.md, "Nodes").
type Witness struct {
	Round     int64      `json:"round"` // one more with every look, so that a dead witness is known
	Sightings []Sighting `json:"sightings,omitempty"`
	Omitted   int        `json:"omitted,omitempty"` // nodes not Ready of which it cannot tell: too many, or no way to them
}

// Sighting is one look at one node.
type Sighting struct {
	Node   string `json:"node"`
	UID    string `json:"uid"`    // of its Node
	Alive  string `json:"alive"`  // what answered, "" for nothing: an address with its port
	Silent int    `json:"silent"` // rounds in a row in which nothing answered
}

const (
	// WitnessFresh is how old a witness's last look may be. A look takes place
	// every 5 s, every 12 s where nothing has changed for long, and may last 4 s.
	WitnessFresh = 20 * time.Second
	// WitnessAnswered is for how long an answer that one of many nodes has published
	// keeps others from taking the device for gone: until another node that gets one,
	// and did not publish it too, has noticed that it is stale and has published its
	// own (12 s until its next look, 4 s for that, 4 s for the write).
	WitnessAnswered = 2 * WitnessFresh
	// witnessApart is how far apart two words of a witness are heard at most, unless one of them
	// cannot be published: 12 s between two looks, and for the second 5 s more to connect, 5 s to
	// write and a moment to be heard.
	witnessApart = 25 * time.Second
	// witnessAtOnce is how soon after another one a word is heard that was held up together with it.
	witnessAtOnce = 2 * time.Second
	// WitnessSilent is how many looks in a row nothing may have answered: one
	// lost packet is no death.
	WitnessSilent = 3
	// WitnessMost is how many nodes publish what they see of a lost one where there
	// are more: each look of each is a change of a Node, which all agents receive.
	WitnessMost = 10
	// WitnessNeeded is how many of these have to agree then. The others are spares:
	// an agent may hang, and two tables may differ in who is Ready.
	WitnessNeeded = 7
)

// WitnessNodes are the names of the nodes that have to say whether the device of a
// lost one answers them: all Ready ones whose stamp is not stale. Where there are
// more than WitnessMost, and each knows of this limit, they are so many, servers
// first, then in the order of a hash, so that they do not all stand beside each
// other; limited says that there are more.
func WitnessNodes(nodes map[string]Node) (names []string, limited bool) {
	type candidate struct {
		name   string
		second int // 1 for what is no server
		hash   uint32
	}
	compare := func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.second, b.second), cmp.Compare(a.hash, b.hash), cmp.Compare(a.name, b.name))
	}
	var first []candidate
	limited = true
	for name, n := range nodes {
		if n.Ready != ConditionTrue || n.Foreign() {
			continue
		}
		names = append(names, name)
		limited = limited && n.Agent.Witnesses == WitnessMost
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(n.UID)) // never fails
		c := candidate{name, 1, hash.Sum32()}
		if n.IsServer() {
			c.second = 0
		}
		at, _ := slices.BinarySearchFunc(first, c, compare)
		first = slices.Insert(first, at, c)
		first = first[:min(len(first), WitnessMost)]
	}
	if limited = limited && len(names) > WitnessMost; !limited {
		return names, false
	}
	names = names[:0]
	for _, c := range first {
		names = append(names, c.name)
	}
	return names, true
}

// Gone reports whether, as far as the network tells, the device of the Node lost
// is gone: its kubelet does not report, and nothing on it has answered any node
// that can tell. seen says when each witness's round last changed, by node name
// and the caller's own clock, as Witnesses.Seen does. Where it is not, why says in a sentence who does not
// agree or cannot tell; where it is, who agrees. It is closed: a node of ours that
// says nothing does not agree, and with more than two nodes two have to agree; in a
// large cluster WitnessNeeded of WitnessNodes have to. A node that is none of these,
// as a foreign one (Node.Foreign), is not waited for; that the device answers it is
// believed anyway (docs/wire.md, "Nodes").
func Gone(lost Node, nodes map[string]Node, seen map[string]time.Time, now time.Time) (gone bool, why string) {
	return ObservedBy(nodes, seen, now).Gone(lost)
}

// Silent is Gone of a Node that may be missing: whether nothing on the device of lost,
// of which its name and its UID have to be known, has answered any node that can tell.
func Silent(lost Node, nodes map[string]Node, seen map[string]time.Time, now time.Time) (silent bool, why string) {
	return ObservedBy(nodes, seen, now).Silent(lost)
}

// Observed is what all nodes have published of lost ones, for who asks of many.
type Observed struct {
	nodes   map[string]Node
	seen    map[string]time.Time
	now     time.Time
	needed  []string // WitnessNodes
	limited bool
	speak   []string // sorted: these, and all others that publish anything and count
	ready   int
}

// ObservedBy has the arguments of Gone.
func ObservedBy(nodes map[string]Node, seen map[string]time.Time, now time.Time) Observed {
	o := Observed{nodes: nodes, seen: seen, now: now}
	o.needed, o.limited = WitnessNodes(nodes)
	o.speak = slices.Clone(o.needed)
	for name, n := range nodes {
		if n.Ready == ConditionTrue {
			o.ready++
		} else if !o.limited { // in a large cluster its answer counts until somebody else has published one
			continue
		}
		if n.Agent != nil && n.Witness != nil && (n.Foreign() || o.limited && !slices.Contains(o.needed, name)) {
			o.speak = append(o.speak, name)
		}
	}
	slices.Sort(o.speak)
	return o
}

// Gone is the function of that name, of what was observed.
func (o Observed) Gone(lost Node) (gone bool, why string) {
	switch live, ok := o.nodes[lost.Name]; {
	case !ok:
		return false, fmt.Sprintf("node %s no longer exists", lost.Name)
	case lost.UID == "" || live.UID != lost.UID:
		return false, fmt.Sprintf("there is now another node %s", lost.Name)
	case lost.Ready != ConditionUnknown || live.Ready != ConditionUnknown:
		return false, fmt.Sprintf("node %s still reports", lost.Name)
	}
	return o.Silent(lost)
}

// Silent is the function of that name, of what was observed.
func (o Observed) Silent(lost Node) (silent bool, why string) {
	var agree []string
	absent := "" // why a spare witness says nothing
	ready, all, limited := o.ready, len(o.nodes), o.limited
	if _, there := o.nodes[lost.Name]; !there {
		all++
	}
	for _, name := range o.speak {
		n := o.nodes[name]
		at, heard := o.seen[name]
		why := n.disagrees(lost, at, o.now)
		// Of an answer that was published a moment ago nobody knows yet how old it is. One that is not the first word
		// of its node shows that an agent is there which would take it back.
		recent := fresh(at, o.now) || heard && at.IsZero() || limited && !n.Foreign() && (at.IsZero() || within(at, o.now, WitnessAnswered))
		answered := recent && n.answered(lost) != ""
		needs := !n.Foreign() && (!limited || slices.Contains(o.needed, name))
		switch {
		case !answered && !needs:
			continue // it is no witness, and was answered long ago, or nobody knows when
		case limited && !answered && !(fresh(at, o.now) && n.tells(lost)):
			absent = cmp.Or(absent, why)
			continue
		case why != "":
			return false, why
		}
		agree = append(agree, name)
	}
	switch {
	case limited && len(agree) < WitnessNeeded:
		return false, fmt.Sprintf("%d of %d nodes have to confirm that the device of node %s does not answer, and %d do: %s", WitnessNeeded, WitnessMost, lost.Name, len(agree), absent)
	case len(agree) == 0:
		return false, fmt.Sprintf("no Ready node knows whether the device of node %s answers", lost.Name)
	case ready < 2: // a single server that loses its cable calls all others gone
		return false, fmt.Sprintf("%s is the only node that is Ready: it may be cut off itself", agree[0])
	case len(agree) < 2 && all > 2:
		return false, fmt.Sprintf("only node %s knows whether the device of node %s answers: another node that runs zedkube must confirm it", agree[0], lost.Name)
	}
	return true, fmt.Sprintf("the device of node %s answers none of %v", lost.Name, agree)
}

// Answers says in a sentence which Ready node the device of lost has just answered, or may have, where nobody
// knows how old its word is, "" for none. The arguments are those of Gone.
func Answers(lost Node, nodes map[string]Node, seen map[string]time.Time, now time.Time) string {
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name]
		if at := n.answered(lost); at != "" && n.Ready == ConditionTrue && (seen[name].IsZero() || fresh(seen[name], now)) {
			return fmt.Sprintf("the device of node %s answers node %s at %s", lost.Name, name, at)
		}
	}
	return ""
}

// WitnessLook is the last look of a witness, and when it was heard of, by the time since the boot; At
// is zero where it may be older than that: it is the first one that is heard of, or was not listened for.
type WitnessLook struct {
	Round   int64
	At      time.Duration
	First   time.Duration // when it was first heard of
	Last    time.Duration // when it was last listened to, zero while the API server does not answer
	Changed bool          // another one was heard before
}

// Witnesses are those that a component has heard of, by node. The zero value has heard of none.
type Witnesses map[string]WitnessLook

// Hear returns w with what the nodes say now. A word that has changed while the API server did not answer, or
// since a step so long ago that it may have grown stale, may be as old as that. So may one that comes long after
// the one before it, where the table of nodes lags, and those that come with it: a watch brings all that it owes.
func (w Witnesses) Hear(nodes map[string]Node, answers bool, uptime time.Duration) Witnesses {
	heard := Witnesses{}
	for name, n := range nodes {
		if n.Witness == nil {
			continue
		}
		look, known := w[name]
		if former := look; look.Round != n.Witness.Round {
			look = WitnessLook{Round: n.Witness.Round, First: uptime, Changed: known}
			listens, apart := answers && former.Last > 0 && uptime-former.Last <= WitnessFresh, uptime-former.First
			if listens && apart <= witnessApart && (former.At > 0 || apart >= witnessAtOnce) {
				look.At = uptime
			}
		}
		look.Last = 0
		if answers {
			look.Last = uptime
		}
		heard[name] = look
	}
	return heard
}

// Seen says when each witness looked, for Gone, as if the clock had always gone like now. Of one whose word has
// not changed since, though it may be older, it says when that was heard of once this is longer ago than any counts;
// until then the zero time, unless it is the first word.
func (w Witnesses) Seen(now time.Time, uptime time.Duration) map[string]time.Time {
	at := map[string]time.Time{}
	for name, look := range w {
		switch {
		case look.At > 0:
			at[name] = now.Add(look.At - uptime)
		case uptime-look.First > WitnessAnswered:
			at[name] = now.Add(look.First - uptime)
		case look.Changed:
			at[name] = time.Time{}
		}
	}
	return at
}

// fresh reports whether a word that was heard at seen still counts.
func fresh(seen, now time.Time) bool { return within(seen, now, WitnessFresh) }

// within reports whether a word was heard at most so long ago.
func within(seen, now time.Time, long time.Duration) bool {
	return !seen.IsZero() && !seen.After(now) && now.Sub(seen) <= long
}

// tells reports whether n says anything of lost.
func (n Node) tells(lost Node) bool {
	return n.Witness != nil && slices.ContainsFunc(n.Witness.Sightings, func(s Sighting) bool { return s.UID == lost.UID })
}

// answered is where the device of lost answered n, "" for nowhere.
func (n Node) answered(lost Node) string {
	if n.Witness == nil {
		return ""
	}
	for _, s := range n.Witness.Sightings {
		if s.UID == lost.UID && s.Alive != "" {
			return s.Alive
		}
	}
	return ""
}

// disagrees says why n, a Ready node with an agent, is no witness that the device
// of lost is gone; "" where it is one.
func (n Node) disagrees(lost Node, seen, now time.Time) string {
	if n.Witness == nil {
		return fmt.Sprintf("node %s does not publish whether the device of node %s answers it", n.Name, lost.Name)
	}
	if !fresh(seen, now) {
		return fmt.Sprintf("what node %s publishes about node %s is stale", n.Name, lost.Name)
	}
	if at := n.answered(lost); at != "" {
		return fmt.Sprintf("the device of node %s answers node %s at %s", lost.Name, n.Name, at)
	}
	told := false
	for _, s := range n.Witness.Sightings {
		switch {
		case s.UID != lost.UID:
			continue
		case s.Silent < WitnessSilent:
			return fmt.Sprintf("the device of node %s has not answered node %s in %d of %d probes", lost.Name, n.Name, s.Silent, WitnessSilent)
		}
		told = true
	}
	if !told {
		return fmt.Sprintf("node %s does not know whether the device of node %s answers it", n.Name, lost.Name)
	}
	return ""
}
