// Package listwatch keeps a table true by list and watch.
//
// It drives client-go reflectors by itself (docs/decisions/0010-reflectors.md).
// A table stays as it is while the API server is silent, and is corrected, not
// emptied and filled again, when it answers.
//
//	view.go      one table: list, watch, and again
//	asking.go    what a reflector may ask for, so that no server is stormed
//	turns.go     how far apart the tries of tables that fail are
//	standing.go  how a table is, as people read it
//	group.go     kinds that a cluster may lack
//	rows.go      objects to rows
package listwatch
