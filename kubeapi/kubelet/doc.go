// Package kubelet has the requests that kubelets answer: measurements, logs, and
// which pods run.
package kubelet
