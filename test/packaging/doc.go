// Package packaging holds the tests of what is shipped with the program: the script that starts it on a device, its units for
// other hosts, and how a release is made from them.
package packaging
