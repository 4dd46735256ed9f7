// Package listwatch keeps a table true by list and watch.
//
// It drives client-go reflectors by itself (docs/decisions/0010-reflectors.md).
// A table stays as it is while the API server is silent, and is corrected, not
// emptied and filled again, when it answers.
//
//	table.go    one table: list, watch, and again
//	limiter.go  what a reflector may ask for, and how far apart the tries of tables
//	            that fail are, so that no server is stormed
//	status.go   how a table is, as people read it
//	groups.go   what is listed and watched, also of kinds that a cluster may lack
package listwatch
