package types

import (
	"maps"
	"slices"
)

const (
	// mostDesignations is how many applications fit in the annotation.
	mostDesignations = 200
	// mostChanges bounds a count: what is beyond it is garbage.
	mostChanges = 1_000_000_000
)

// Designations are the applications whose designated node a node is according to
// its controller, as its zedkube writes it on its own Node (docs/wire.md,
// "Nodes").
type Designations struct {
	Apps    map[string]Designation `json:"apps,omitempty"`    // by UUID
	Omitted int                    `json:"omitted,omitempty"` // more than those
}

// Designation is what a node was configured with for one application. Of two nodes that both
// hold themselves for designated, the one with the higher count was told later.
type Designation struct {
	Count  int64 `json:"n"`            // grows with each time that the node became the designated one; at least 1
	Yields int64 `json:"to,omitempty"` // the higher count of another node, which this one accepts; 0 for none
}

// Get is the designation of an application; its count is 0 where there is none,
// or none that can be meant.
func (d *Designations) Get(app string) Designation {
	if d == nil {
		return Designation{}
	}
	if one := d.Apps[app]; one.Count > 0 && one.Count <= mostChanges && one.Yields >= 0 && one.Yields <= mostChanges {
		return one
	}
	return Designation{}
}

// Fit is d with as many applications as fit in an annotation, the first by UUID.
func (d Designations) Fit() Designations {
	if len(d.Apps) <= mostDesignations {
		return d
	}
	fit := Designations{Apps: map[string]Designation{}, Omitted: d.Omitted + len(d.Apps) - mostDesignations}
	for _, app := range slices.Sorted(maps.Keys(d.Apps))[:mostDesignations] {
		fit.Apps[app] = d.Apps[app]
	}
	return fit
}

// Equal reports whether both say the same.
func (d Designations) Equal(other Designations) bool {
	return d.Omitted == other.Omitted && maps.Equal(d.Apps, other.Apps)
}
