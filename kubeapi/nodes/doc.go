// Package nodes has the verbs on Nodes, and the rows of their table.
//
//	cordon.go  cordons, and how a Node is patched
//	stamps.go  the stamps of the nodes' agents, and how old they are; the nodes' clocks
//	marks.go   fences, witnesses, designations, conditions, Events that are written
//	events.go  Events that are read
//	rows.go    a Node's row; lists of Nodes and of their Leases as they are now
package nodes
