// Package packaging holds the tests of what goes with the program: the script that starts it on a device, its units for
// other hosts, and how a release is made of them.
package packaging
