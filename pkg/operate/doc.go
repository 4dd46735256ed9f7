// Package operate groups what serves people at the device: what is shown (overview),
// what is wrong, by one registry of rules and checks (health), the whole cluster from any
// node (clusterview), plans of joins and leaves (joinplan), the page, the metrics endpoint, the server of both and of
// the agent's socket (localserver), requests of commands (operator), the audit trail, and
// topics and support bundles without secrets (topicview, bundle).
//
// The commands themselves are in pkg/cli.
package operate
