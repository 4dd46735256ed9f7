package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

const (
	lostTitle = "Lost nodes of a large cluster"
	// wordEvery is how often an agent publishes what it sees of lost nodes,
	// wordSettled how often after wordsFast of them that said the same.
	wordEvery   = 5 * time.Second
	wordSettled = 12 * time.Second
	wordsFast   = 12
	// wordsAtMost is of how many lost nodes one does.
	wordsAtMost = 8

	stampKey, stampManager = "zedkube.github.io/agent", "zedkube-agent"
	wordKey, wordManager   = "zedkube.github.io/witness", "zedkube-apps"
)

// withLost is what was measured while so many nodes were lost.
type withLost struct {
	lost   int
	late   bool // they have been lost for more than a minute
	former bool // each node publishes, as before there was a limit
	words  float64
	answer bool // something answers the leader at the address of a lost node
	cost   watched
	load   float64
}

// lostRows are what is compared; the worst for the API server is last, since that
// has still to deliver what it took in.
var lostRows = []withLost{
	{}, {lost: 1}, {lost: 1, late: true}, {lost: 50}, {lost: 50, late: true}, {lost: 1, former: true}, {lost: 50, former: true},
}

// lost measures what the agents of a large cluster take while nodes of it are not
// Ready and the others' agents, which this process plays, publish what they see.
func (b *bench) lost(ctx context.Context, program, out string) error {
	none := func(int) []types.AppInstanceConfig { return nil }
	largest := sizes[len(sizes)-1]
	var rows []withLost
	err := b.on(ctx, program, devcluster.Options{Crowd: true}, none, b.bootAll, func(ctx context.Context) error {
		if err := b.cluster.AddCrowd(ctx, largest.nodes-len(b.fleet.Members), largest.pods); err != nil {
			return err
		}
		for _, row := range lostRows {
			if err := b.whileLost(ctx, largest.nodes-len(b.fleet.Members), &row); err != nil {
				return fmt.Errorf("%d lost nodes: %w", row.lost, err)
			}
			fmt.Fprint(os.Stderr, row)
			rows = append(rows, row)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return putSection(out, lostTitle, lostText(rows, b.idling))
}

// whileLost measures while the first nodes of the crowd are lost.
func (b *bench) whileLost(ctx context.Context, crowd int, row *withLost) error {
	config := b.cluster.RESTConfig()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	stamp := types.AgentStamp{Version: "bench", Witnesses: types.WitnessMost, Renewed: time.Now()}
	if row.former {
		stamp.Witnesses = 0
	}
	all := func(do func(i int) error) error {
		var working sync.WaitGroup
		errs := make([]error, crowd)
		for worker := range 16 {
			working.Go(func() {
				for i := worker; i < crowd && ctx.Err() == nil; i += 16 {
					errs[i] = do(i)
				}
			})
		}
		working.Wait()
		return errors.Join(errs...)
	}
	if err := all(func(i int) error {
		return errors.Join(annotateNode(ctx, client, i, stampManager, stampKey, stamp), setReady(ctx, client, i, i >= row.lost))
	}); err != nil {
		return err
	}
	words, err := witnessing(ctx, client, row)
	if err != nil {
		return err
	}
	writing, stop := context.WithCancel(ctx)
	var wrote atomic.Int64
	var agents sync.WaitGroup
	for n, i := range words {
		agents.Go(func() {
			_ = pause(writing, wordEvery*time.Duration(n)/time.Duration(len(words)))
			for round := int64(1); writing.Err() == nil; round++ {
				next := time.Now().Add(wordEvery)
				if round > wordsFast && !row.former {
					next = time.Now().Add(wordSettled)
				}
				word := types.Witness{Round: time.Now().Unix() + round}
				for j := range min(row.lost, wordsAtMost) {
					word.Sightings = append(word.Sightings, types.Sighting{Node: devcluster.CrowdNode(j), UID: "bench", Silent: int(round)})
				}
				if annotateNode(ctx, client, i, wordManager, wordKey, word) == nil {
					wrote.Add(1)
				}
				_ = pause(writing, time.Until(next))
			}
		})
	}
	defer agents.Wait()
	defer stop()
	rest := restBetween
	if row.late {
		rest = (wordsFast + 1) * wordEvery
	}
	if err := pause(ctx, rest); err != nil {
		return err
	}
	leader := b.fleet.Reporter()
	if leader == nil {
		return errors.New("no node reports")
	}
	began, before := time.Now(), wrote.Load()
	row.cost, err = b.watch(ctx, leader, func(ctx context.Context) error { return pause(ctx, b.idling) })
	stop()
	agents.Wait()
	row.words, row.load = float64(wrote.Load()-before)/time.Since(began).Seconds(), load()
	if err != nil || row.lost == 0 {
		return err
	}
	row.answer, err = b.sees(ctx, leader.Name)
	return err
}

// sees reports whether an agent says that a lost node answers it. It says of none
// whose address is one of the loopback, at which it does not look.
func (b *bench) sees(ctx context.Context, node string) (answers bool, err error) {
	o, err := b.cluster.Client().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	var word types.Witness
	if err := json.Unmarshal([]byte(o.Annotations[wordKey]), &word); err != nil || len(word.Sightings) == 0 {
		return false, fmt.Errorf("node %s does not say whether lost nodes answer it: %w", node, err)
	}
	return word.Sightings[0].Alive != "", nil
}

// witnessing are the numbers of the crowd's nodes whose agents publish.
func witnessing(ctx context.Context, client kubernetes.Interface, row *withLost) (numbers []int, err error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || row.lost == 0 {
		return nil, err
	}
	table := map[string]types.Node{}
	for i := range list.Items {
		n := asWitness(&list.Items[i])
		table[n.Name] = n
	}
	names, limited := types.WitnessNodes(table)
	if limited == row.former {
		return nil, fmt.Errorf("%d nodes are witnesses", len(names))
	}
	for _, name := range names {
		var i int
		if _, err := fmt.Sscanf(name, "crowd-%d", &i); err == nil {
			numbers = append(numbers, i)
		}
	}
	return numbers, nil
}

// asWitness is what of a Node says whether it is a witness.
func asWitness(o *corev1.Node) types.Node {
	n := types.Node{Name: o.Name, UID: string(o.UID), ControlPlane: o.Labels[types.LabelControlPlane] == "true"}
	_, n.Master = o.Labels[types.LabelMaster]
	_, n.Etcd = o.Labels[types.LabelEtcd]
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			n.Ready = types.ConditionTrue
		}
	}
	for _, a := range o.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			n.InternalIP = a.Address
		}
	}
	var stamp types.AgentStamp
	if json.Unmarshal([]byte(o.Annotations[stampKey]), &stamp) == nil {
		n.Agent = &stamp
	}
	return n
}

func annotateNode(ctx context.Context, client kubernetes.Interface, i int, manager, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: string(text)}}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, devcluster.CrowdNode(i), ktypes.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	return err
}

func setReady(ctx context.Context, client kubernetes.Interface, i int, ready bool) error {
	status := corev1.ConditionTrue
	if !ready {
		status = corev1.ConditionUnknown
	}
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, status)
	_, err := client.CoreV1().Nodes().Patch(ctx, devcluster.CrowdNode(i), ktypes.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// String is a row of the table.
func (r withLost) String() string {
	who := "ten"
	switch {
	case r.lost == 0:
		who = "none"
	case r.former:
		who = "all"
	case r.late:
		who = "ten, after a minute"
	}
	return fmt.Sprintf("| %d | %s | %.1f | %.1f / %.1f | %.0f / %.0f | %.0f / %.0f | %.0f / %.0f | %.1f |\n", r.lost, who, r.words,
		r.cost.led.core(), r.cost.followed.core(), r.cost.led.rss, r.cost.followed.rss, r.cost.led.received, r.cost.followed.received,
		r.cost.led.requests, r.cost.followed.requests, r.load)
}

func lostText(rows []withLost, lasted time.Duration) string {
	said := "nothing"
	if rows[len(rows)-1].answer {
		said = "something of this machine's network"
	}
	var s strings.Builder
	fmt.Fprintf(&s, `Measured on %s (`+"`go run ./test/bench -only lost -idle %s`"+`) with 1,000 nodes and 10,000 pods that do not change.
Three nodes have agents, which are among the ten that publish; the bench plays the other agents, which publish what they see of lost
nodes every five seconds, after a minute every 12 s. The lost nodes have addresses in 10.100.0.0/16, at which the agents look; %s
answered there. "All" is what happens beside an agent of a release that knows no limit of witnesses. The goal is 3 %% of a core on each agent with ten
witnesses. The load is the average of the machine's last minute, this program and the control plane included.

| lost nodes | who publishes | changes/s of the played agents | CPU leader / follower, %% of a core | RSS, MB | kB/min received | API requests/min | load |
|---|---|---|---|---|---|---|---|
`, time.Now().UTC().Format(time.DateOnly), lasted, said)
	for _, row := range rows {
		s.WriteString(row.String())
	}
	return s.String()
}
