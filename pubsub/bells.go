package pubsub

import "sync"

// Ring rings a bell, a channel of capacity 1. One that rings already is left alone,
// and nil is none.
func Ring(bell chan<- struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// Bells are those of all who want to hear of the same news. The zero value is ready.
type Bells struct {
	mu  sync.Mutex
	all []chan<- struct{}
}

// Notify makes the news ring bell from now on.
func (b *Bells) Notify(bell chan<- struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, bell)
}

// Ring rings all of them.
func (b *Bells) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, bell := range b.all {
		Ring(bell)
	}
}
