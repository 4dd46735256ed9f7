// Package kubelet has the verbs that kubelets answer: measurements, logs, and
// which pods run.
package kubelet
