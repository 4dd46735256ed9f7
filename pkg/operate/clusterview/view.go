// Package clusterview shows the whole cluster from any of its nodes: each node tells
// the others of itself when they ask, and nothing is asked, read or kept up to date
// while nobody looks.
//
//	reads:  an overview of the device's files, the audit trail, the nodes, EdgeNodeClusterStatus
//	writes: nothing
//	serves: what this node tells, through the status server (docs/wire.md, "Overview of a
//	        node"), and the whole through the local server (docs/wire.md, "Cluster view")
package clusterview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/base/redact"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// View is what a node tells the others of itself. Its times are by its own clock.
type View struct {
	At         time.Time          // the moment that ages count from
	Zedkube    string             // version of its agent
	Phase      types.ClusterPhase `json:",omitzero"` // of the cluster, as this node sees it
	Since      time.Time          `json:",omitzero"` // of Phase
	Why        string             `json:",omitzero"` // of Phase
	Membership types.Membership   `json:",omitzero"`
	API        overview.API       // whether it reaches the API server
	Problems   []types.Finding    // the worst first
	Drain      overview.Drain     // of this node
	Apps       []overview.App     `json:",omitempty"` // without pods, steps and evidence
	Volumes    []overview.Volume  `json:",omitempty"` // where it reports for the cluster
	Operations []types.Operation  `json:",omitempty"` // the newest of its audit trail, the newest first
	Remarks    []string           `json:",omitempty"` // what is missing in Operations and why
	Cut        []string           `json:",omitempty"` // what was left out for the size, and how many of it
}

const (
	// MaxAnswer bounds what one node tells, in bytes.
	MaxAnswer = 256 << 10
	// fresh is for how long a view that was made serves others who ask.
	fresh = time.Second
	// Far more than people read of one node, and than a node has.
	maxListed  = 200
	maxText    = 1 << 10 // bytes of one text
	maxObjects = 8 << 10 // what is read of an answer may not become much more in memory
)

// Teller makes what this node tells of itself, at most once a second. Every exported
// field is required.
type Teller struct {
	Version    string
	Overview   func(now time.Time) overview.Overview       // judged
	Operations func() ([]types.Operation, []string, error) // the newest first, and what is missing in them
	Status     pubsub.Reader[types.EdgeNodeClusterStatus]  // its token is not told

	turn chan struct{} // held by the one who reads
	made []byte        // with turn
	at   time.Time     // when that began; zero for never; with turn
}

// Ready prepares a literal for use, and returns it.
func (t *Teller) Ready() *Teller {
	t.turn = make(chan struct{}, 1)
	return t
}

// Tell returns the view as JSON. A disk that hangs holds up nobody longer than ctx: one
// goroutine alone stays with it.
func (t *Teller) Tell(ctx context.Context) ([]byte, error) {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("read the files of this node: %w", ctx.Err())
	}
	type outcome struct {
		content []byte
		err     error
		fault   *boundedhttp.Fault
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-t.turn }()
		var o outcome
		o.fault = boundedhttp.Catch(func() { o.content, o.err = t.renew(time.Now()) })
		done <- o
	}()
	select {
	case o := <-done:
		o.fault.Raise()
		return o.content, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("read the files of this node: %w", ctx.Err())
	}
}

func (t *Teller) renew(now time.Time) ([]byte, error) {
	if !t.at.IsZero() && now.Sub(t.at).Abs() < fresh {
		return t.made, nil
	}
	operations, remarks, err := t.Operations()
	if err != nil {
		remarks = append(slices.Clone(remarks), err.Error())
	}
	v := ViewOf(t.Overview(now))
	v.Zedkube, v.Operations, v.Remarks = t.Version, operations, remarks
	status, _ := t.Status.Get(types.Global)
	made, err := fit(v, status.EncryptedClusterToken)
	if err != nil {
		return nil, err
	}
	t.made, t.at = made, now
	return made, nil
}

// ViewOf is what an overview tells others.
func ViewOf(o overview.Overview) View {
	v := View{
		At: o.ReadAt, Phase: o.Cluster.Object.Phase, Since: o.Cluster.Object.Since, Why: o.Cluster.Object.Why,
		Membership: o.Cluster.Membership.State, API: o.API, Problems: o.Problems, Drain: o.Drain, Volumes: o.Storage.Volumes,
	}
	if p := o.Drain.Progress; p != nil {
		own := *p // whose lists are cut
		v.Drain.Progress = &own
	}
	for _, a := range o.Apps.List {
		a.Pods, a.VMIs = nil, nil
		if a.Repair != nil {
			repair := *a.Repair
			repair.Steps, repair.Evidence = nil, nil
			a.Repair = &repair
		}
		v.Apps = append(v.Apps, a)
	}
	return v
}

// list is one of those that are cut for the size.
type list struct {
	name string
	len  int
	keep func(n int)
}

func listOf[T any](name string, of *[]T) list {
	return list{name, len(*of), func(n int) { *of = slices.Clone((*of)[:n]) }} // what is left out takes no memory
}

func (v *View) lists() []list {
	all := []list{
		listOf("operations", &v.Operations), listOf("applications", &v.Apps), listOf("volumes", &v.Volumes),
		listOf("problems", &v.Problems), listOf("remarks", &v.Remarks),
	}
	if p := v.Drain.Progress; p != nil {
		all = append(all, listOf("pods that block the drain", &p.Blockers), listOf("volumes that block the drain", &p.Volumes),
			listOf("pods that can run only there", &p.Stranded), listOf("warnings of the drain", &p.Warnings))
	}
	return all
}

// fit is v as JSON, without secrets and short enough: the longest list is cut first.
func fit(v View, token string) ([]byte, error) {
	had := v.lists()
	for _, l := range had {
		l.keep(min(l.len, maxListed))
	}
	for {
		v.Cut = nil
		now := v.lists()
		for i, l := range now {
			if more := had[i].len - l.len; more > 0 {
				v.Cut = append(v.Cut, fmt.Sprintf("%d %s", more, l.name))
			}
		}
		raw, err := json.Marshal(v)
		if err == nil {
			raw, err = shown(raw, token)
		}
		longest := slices.MaxFunc(now, func(a, b list) int { return a.len - b.len })
		switch {
		case err != nil:
			return nil, fmt.Errorf("encode what this node tells: %w", err)
		case len(raw) <= MaxAnswer:
			return raw, nil
		case longest.len == 0:
			return nil, fmt.Errorf("encode what this node tells: it has %d bytes", len(raw))
		}
		longest.keep(longest.len / 2)
	}
}

// shown is a document without secrets, with texts of a bounded length.
func shown(raw []byte, token string) ([]byte, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	var secrets redact.Redactor
	secrets.Know(token)
	return json.Marshal(short(secrets.Value(v)))
}

func short(v any) any {
	switch v := v.(type) {
	case string:
		return phrase.Cut(v, maxText)
	case []any:
		for i := range v {
			v[i] = short(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = short(v[k])
		}
	}
	return v
}

var errNoView = errors.New("it does not tell of itself in JSON as expected")

// plausible reports that a time is one that can be converted to that of another clock, and written.
func plausible(at time.Time) bool { return at.Year() >= 1970 && at.Year() < 2200 }

// read is what another node tells. Nothing of it is believed to be in order: what is
// taken is of the form of a View, of bounded size and without the token.
func read(raw []byte, token string) (*View, error) {
	switch {
	case len(raw) > MaxAnswer:
		return nil, fmt.Errorf("it tells more than %d kB", MaxAnswer>>10)
	case bytes.Count(raw, []byte("{"))+bytes.Count(raw, []byte(",")) > 4*maxObjects:
		return nil, errNoView
	}
	raw, err := shown(raw, token)
	v := &View{}
	if err != nil || json.Unmarshal(raw, v) != nil || !plausible(v.At) {
		return nil, errNoView
	}
	v.Operations = slices.DeleteFunc(v.Operations, func(o types.Operation) bool { return !plausible(o.At) })
	for _, l := range v.lists() {
		l.keep(min(l.len, maxListed))
	}
	return v, nil
}
