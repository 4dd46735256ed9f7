// Package base groups what every other group stands on: libraries that know no
// topic and no component. Here live the loop that drives a component, how long
// something has held (span), files that
// others write and are read safely (safefile) or are kept for another program
// (keptfile), encrypted blocks (cipher), proofs between members (proof), dialing
// peers (reach), who is at the other end of a unix socket (peer), questions and
// servers by HTTP with limits (boundedhttp), texts from outside in sentences
// (phrase), text for terminals (printable), secrets in text (redact), and the two
// components without rules: the log level and the watchdog.
//
// What knows a topic of EVE by its meaning does not belong here.
package base
