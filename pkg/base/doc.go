// Package base groups what every other group builds on: libraries that know no
// topic and no component. Here live the loop that drives a component, how long
// something has lasted (span), files that
// others write and that are read safely (safefile), that are watched (filewatch) or that
// are kept for another program (keptfile), encrypted blocks (cipher), proofs between members (proof), dialing
// peers (reach), who is at the other end of a unix socket (peer), HTTP requests and
// servers with limits (boundedhttp), the process of k3s and its restart (k3sprocess), which nodes
// renew their Leases (alive), texts from outside in sentences
// (phrase), text for terminals (printable), secrets in text (redact), and the two
// components without rules: the log level and the watchdog.
//
// What knows the meaning of a topic of EVE does not belong here.
package base
