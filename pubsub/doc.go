// Package pubsub turns directories of JSON files and the unix sockets beside
// them into typed, keyed tables that ring when they change, and back
// (docs/wire.md, "Pubsub"). It names no topic and knows no Kubernetes.
//
// A Publication writes: its rows are files in a directory and messages on a
// socket, for readers that only know one of the two. A Subscription reads: from
// the socket while there is one, from the directory otherwise. A Bus holds the
// publications and subscriptions of one agent.
//
// On both sides a value that cannot be valid changes nothing: it is refused
// with an error, or logged once, and the last good value stays.
package pubsub
