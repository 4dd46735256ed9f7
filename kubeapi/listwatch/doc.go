// Package listwatch keeps a table up to date by list and watch.
//
// It drives client-go reflectors by itself (docs/decisions/0010-reflectors.md).
// A table stays as it is while the API server is silent, and is corrected, not
// emptied and filled again, when it answers.
//
//	table.go    one table: list, watch, relist; its status, as people read it
//	limiter.go  what a reflector may request, and how far apart the retries of tables
//	            that fail are, so that no server is overloaded
//	groups.go   what is listed and watched, also of kinds that a cluster may lack
package listwatch
