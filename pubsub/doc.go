// Package pubsub turns directories of JSON files and the unix sockets beside
// them into typed, keyed tables that ring when they change, and back
// (docs/wire.md, "Pubsub"). It names no topic and knows no Kubernetes.
package pubsub
