// Package join says what lets a device become an edge node and leave again: the record of names, addresses, tokens, and
// what is carried to the device (docs/edge.md, "Joining"). It is pure.
package join

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/edge/settings"
)

// Keys of the record that are no names of nodes: no name begins so.
const (
	refusedAt = "_refused"
	leftAt    = "_left"
)

// maxPast is how many names that have left or were lost are remembered.
const maxPast = 100

var nameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// Name says what is wrong with the name of an edge node. It is a label of the Node, too, which takes 63 characters.
func Name(name string) error {
	if len(name) > 63 || !nameForm.MatchString(name) {
		return fmt.Errorf("%q is no name of a node: at most 63 of a-z, 0-9, - and ., with a letter or digit at both ends (RFC 1123)", name)
	}
	return nil
}

// Asked is one name that was asked to join.
type Asked struct {
	Address    string    `json:"address"`
	AskedAt    time.Time `json:"askedAt"`
	TokenUntil time.Time `json:"tokenUntil,omitzero"`
	TakenOver  bool      `json:"takenOver,omitempty"` // it had joined before there was a record
}

// Past is one name that has left, or was lost.
type Past struct {
	Since   time.Time `json:"since"`
	AskedAt time.Time `json:"askedAt,omitzero"`
}

// Record is who was asked to join, and who has left.
type Record struct {
	Asked   map[string]Asked
	Refused map[string]Past // lost, under which nobody joins until it is asked again
	Left    map[string]Past
}

// Read reads the data of the record's ConfigMap.
func Read(data map[string]any) (Record, error) {
	r := Record{Asked: map[string]Asked{}, Refused: map[string]Past{}, Left: map[string]Past{}}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[key].(string)
		var err error
		switch key {
		case refusedAt:
			err = json.Unmarshal([]byte(text), &r.Refused)
		case leftAt:
			err = json.Unmarshal([]byte(text), &r.Left)
		default:
			var a Asked
			if err = errors.Join(Name(key), json.Unmarshal([]byte(text), &a)); err == nil {
				r.Asked[key] = a
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("read %s of the record: %w", key, err))
		}
	}
	return r, errors.Join(errs...)
}

// Data is the record as its ConfigMap has it.
func (r Record) Data() (map[string]any, error) {
	data := map[string]any{}
	put := func(key string, v any) error {
		text, err := json.Marshal(v)
		data[key] = string(text)
		return err
	}
	errs := []error{put(refusedAt, newest(r.Refused)), put(leftAt, newest(r.Left))}
	for name, a := range r.Asked {
		errs = append(errs, put(name, a))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("write the record: %w", err)
	}
	return data, nil
}

// newest leaves out the oldest of too many.
func newest(all map[string]Past) map[string]Past {
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		if c := all[b].Since.Compare(all[a].Since); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	kept := map[string]Past{}
	for _, name := range names[:min(len(names), maxPast)] {
		kept[name] = all[name]
	}
	return kept
}

// Names are those that were asked to join, sorted.
func (r Record) Names() []string { return slices.Sorted(maps.Keys(r.Asked)) }

// Ask records the wish that name joins: at the address wanted, or "" for the one it has, else the lowest that is free.
// taken are the addresses of Nodes, by their names.
func (r Record) Ask(s settings.Settings, name, wanted string, taken map[string]string, now, until time.Time) (Asked, error) {
	if err := Name(name); err != nil {
		return Asked{}, err
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return Asked{}, fmt.Errorf("%q is an address, and no name for a node", name)
	}
	was, again := r.Asked[name]
	if !again && len(r.Asked) >= s.NodeLimit {
		return Asked{}, fmt.Errorf("%d edge nodes were asked to join, and nodeLimit is %d: zedkube-edge set nodeLimit=N, or let one leave", len(r.Asked), s.NodeLimit)
	}
	used := map[string]string{}
	for node, address := range taken {
		used[address] = node
	}
	for node, a := range r.Asked {
		used[a.Address] = node
	}
	address, err := free(s.EdgeBlock, name, wanted, was.Address, used)
	if err != nil {
		return Asked{}, err
	}
	a := Asked{Address: address, AskedAt: now.UTC().Truncate(time.Second), TokenUntil: until.UTC().Truncate(time.Second)}
	r.Asked[name] = a
	delete(r.Refused, name)
	delete(r.Left, name)
	return a, nil
}

// free is the address that name gets. used are those that are taken, by whom.
func free(block, name, wanted, was string, used map[string]string) (string, error) {
	network, err := netip.ParsePrefix(block)
	if err != nil {
		return "", fmt.Errorf("read edgeBlock: %w", err)
	}
	usable := func(a netip.Addr) bool {
		return network.Contains(a) && network.Contains(a.Next()) && a != network.Addr()
	}
	if wanted != "" {
		a, err := netip.ParseAddr(wanted)
		if err != nil || !usable(a) {
			return "", fmt.Errorf("%q is no address of edgeBlock %s", wanted, block)
		}
		if other := used[a.String()]; other != "" && other != name {
			return "", fmt.Errorf("address %s is that of %s", a, other)
		}
		return a.String(), nil
	}
	if a, err := netip.ParseAddr(was); err == nil && usable(a) {
		return was, nil
	}
	for a := network.Addr().Next(); usable(a); a = a.Next() {
		if other := used[a.String()]; other == "" || other == name {
			return a.String(), nil
		}
	}
	return "", fmt.Errorf("no address of edgeBlock %s is free", block)
}

// Leave takes a name out of the record and remembers it: as refused if it is lost.
func (r Record) Leave(name string, lost bool, now time.Time) {
	past := Past{Since: now.UTC().Truncate(time.Second), AskedAt: r.Asked[name].AskedAt}
	delete(r.Asked, name)
	if lost {
		r.Refused[name] = past
	} else {
		r.Left[name] = past
	}
}

// TakeOver records the edge nodes that had joined before there was a record.
func TakeOver(addresses map[string]string, now time.Time) Record {
	r := Record{Asked: map[string]Asked{}, Refused: map[string]Past{}, Left: map[string]Past{}}
	for name, address := range addresses {
		r.Asked[name] = Asked{Address: address, AskedAt: now.UTC().Truncate(time.Second), TakenOver: true}
	}
	return r
}
